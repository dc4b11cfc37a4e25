package main

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/goldentest"
)

// TestHelp holds what "plait -h" prints.
func TestHelp(t *testing.T) {
	out, errs, code := command("", "-h")
	require.Equal(t, exitDone, code, errs)
	const golden = "testdata/help.golden"
	if *goldentest.Update {
		require.NoError(t, os.WriteFile(golden, []byte(out), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), out)
}

// TestHelpIsWhole looks at the help of each command as a user does, in a window of 80 columns: it says more than its name, names its
// flags, and has an example where there is something to choose.
func TestHelpIsWhole(t *testing.T) {
	var check func(path []string, cmd *cobra.Command)
	check = func(path []string, cmd *cobra.Command) {
		out, errs, code := command("", append(path, "-h")...)
		require.Equal(t, exitDone, code, errs)
		for line := range strings.Lines(out) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), 80, line)
		}
		require.NotEmpty(t, cmd.Long, path)
		require.NotContains(t, out, " string ", "%s has a flag whose value has no name", path)
		for _, sub := range cmd.Commands() {
			check(append(path[:len(path):len(path)], sub.Name()), sub)
		}
	}

	for _, cmd := range newRoot(&streams{}).Commands() {
		if cmd.GroupID != "" { // not cobra's own
			check([]string{cmd.Name()}, cmd)
		}
	}
}

// TestCompletion completes commands and files.
func TestCompletion(t *testing.T) {
	for line, want := range map[string]string{
		"re":                         "resume",
		"show ":                      ":0", // files
		"verify ":                    ":0",
		"resume x.json --results ":   ":0",
		"import --from anthropic x ": ":0",
	} {
		args := strings.Split(line, " ")
		out, _, code := command("", append([]string{cobra.ShellCompRequestCmd}, args...)...)
		require.Equal(t, exitDone, code)
		require.Contains(t, out, want, line)
	}
}
