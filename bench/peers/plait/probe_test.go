package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/bench/internal/probe"
)

// TestProbes holds the column of Plait in docs/robustness.md.
func TestProbes(t *testing.T) {
	document, err := os.ReadFile("../../../docs/robustness.md")
	require.NoError(t, err)
	library := probe.Subject{Converse: converse, Reload: reload}
	for _, p := range probe.All {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			o, err := probe.Ask(library, p.Name)
			require.NoError(t, err)
			text := o.Text
			if !o.Good {
				text = "**" + text + "**"
			}
			require.Contains(t, string(document), fmt.Sprintf("| %s | %s |", p.Name, text))
		})
	}
	require.Equal(t, len(probe.All), strings.Count(string(document), "\n| ")-1, "a row for each probe, and the head")

	// The README has some of its rows.
	readme, err := os.ReadFile("../../../README.md")
	require.NoError(t, err)
	shown := 0
	for _, p := range probe.All {
		_, row, found := strings.Cut(string(readme), "\n| "+p.Name+" |")
		if row, _, _ = strings.Cut(row, "\n"); found {
			shown++
			require.Contains(t, string(document), "\n| "+p.Name+" |"+row+"\n")
		}
	}
	require.Positive(t, shown)
}
