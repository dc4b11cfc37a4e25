package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
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

	out, errs, code := command("", "report", file, "--prices", prices)
	require.Equal(t, exitDone, code, errs)
	require.Contains(t, out, "at least 3.0000")
	out, _, _ = command("", "report", file, "--prices", prices, "--json")
	require.Contains(t, out, `"cost": null`)
	require.Contains(t, out, `"known_cost": 3`)
}

func TestPagesPredictByTheSavedCachePolicy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "talk.json")
	reply := node.Message{Role: content.Assistant, Blocks: content.Words("Yes."), Answer: node.Answer{
		API: "openai-responses", Model: "gpt-5.6", Usage: content.Usage{Input: 5000},
	}}
	d := dag.New().User("Hi.").Append(reply).User("And now?").Append(reply)
	for policy, want := range map[api.Cache]string{
		api.CacheShort: "5,000 of 5,000 tokens predicted", api.CacheOff: "0 of 5,000 tokens predicted",
	} {
		require.NoError(t, d.WithMetadata(requestKey, savedRequest{API: "openai-responses", Cache: policy}).Save(file))
		out, errs, code := command("", "render", "--as", "html", file)
		require.Equal(t, exitDone, code, errs)
		require.Contains(t, out, want)
		serving(t, file).until(want)
	}
}

func TestRenderShowsTheCostOfEachResponse(t *testing.T) {
	dir := t.TempDir()
	file, prices := filepath.Join(dir, "talk.json"), filepath.Join(dir, "prices.json")
	require.NoError(t, os.WriteFile(prices, []byte(`{"date":"2026-11-01","currency":"USD","models":{"m":{"input":1000000,"output":1000000}}}`), 0o600))
	reply := node.Message{Role: content.Assistant, Blocks: content.Words("An oak."), Answer: node.Answer{Model: "m", Usage: content.Usage{Input: 2, Output: 1}}}
	require.NoError(t, dag.New().User("Name a tree.").Append(reply).Save(file))

	out, errs, code := command("", "render", "--as", "html", file, "--prices", prices)
	require.Equal(t, exitDone, code, errs)
	require.Contains(t, out, `"cost":3`)
	out, _, _ = command("", "render", "--as", "html", file)
	require.NotContains(t, out, `"cost":`)

	_, errs, _ = command("", "render", "--as", "dot", file, "--prices", prices)
	require.Contains(t, errs, "--prices is for --as html")
	_, errs, _ = command("", "render", "--as", "html", "-", "--prices", "-")
	require.Contains(t, errs, "only one input can be standard input")
}
