package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

func TestCostOfAResponseThatBrokeOffIsKnownInPart(t *testing.T) {
	dir := t.TempDir()
	file, prices := filepath.Join(dir, "talk.json"), filepath.Join(dir, "prices.json")
	require.NoError(t, os.WriteFile(prices, []byte(`{"date":"2026-11-01","currency":"USD","models":{"m":{"input":1000000,"output":1000000}}}`), 0o600))
	half := node.Message{Role: content.Assistant, Blocks: content.Words("half"), Answer: node.Answer{
		Model: "m", Stop: content.StopCut, Usage: content.Usage{Input: 2, Output: 1, Incomplete: true},
	}}
	require.NoError(t, dag.New().User("Why?").Append(half).Save(file))

	out, errs, code := command("", "cost", file, "--prices", prices)
	require.Equal(t, exitDone, code, errs)
	require.Contains(t, out, "at least 3.0000")
	out, _, _ = command("", "cost", file, "--prices", prices, "--json")
	require.Contains(t, out, `"cost": null`)
	require.Contains(t, out, `"known_cost": 3`)
}
