package page_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/goldentest"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/report"
	"github.com/plait-dev/plait/viz/internal/viztest"
	"github.com/plait-dev/plait/viz/page"
)

// weatherRun returns a run whose tool call fails with why, unless that is "".
func weatherRun(i int, city, why string) dag.DAG {
	began := time.Date(2026, 11, 1, 10, 0, i, 0, time.UTC)
	call := node.ToolExecution{Index: 1, Result: content.Words("18 °C"), Started: began, Ended: began.Add(time.Duration(i+1) * 100 * time.Millisecond)}
	if why != "" {
		call.Result, call.IsError = content.Words(why), true
	}

	d := dag.New().WithSource(node.Counting(began)).WithMetadata("variant", []string{"short", "long"}[i%2]).
		User("Weather in "+city+"?").Assistant("I look.", content.ToolUse{ID: "1", Name: "get_weather", Input: `{"city":"Paris"}`}).CloseTools(call)
	if why != "" {
		return d.Stop(content.StopError)
	}
	return d.Append(node.Message{Role: content.Assistant, Blocks: content.Words("It is 18 °C."), Answer: node.Answer{
		Model: "m", Stop: content.StopEndTurn, Latency: time.Second, Usage: content.Usage{Input: 1000, Output: 50},
	}}).Stop(content.StopEndTurn)
}

// weatherRows returns the rows of five runs and of a broken file.
func weatherRows() []report.Row {
	prices := &report.Options{Prices: api.Prices{"m": {Input: 3, Output: 20}}}
	return []report.Row{
		report.Of("runs/0.json", weatherRun(0, "Paris", ""), prices),
		report.Of("runs/1.json", weatherRun(1, "Paris", ""), prices),
		report.Of("runs/2.json", weatherRun(2, "Paris", "connection refused: 10.0.0.2:40002"), prices),
		report.Of("runs/3.json", weatherRun(3, "Paris", "connection refused: 10.0.0.3:40003"), prices),
		report.Of("runs/it's 4.json", weatherRun(4, "Tokyo", "no such city"), prices),
		report.Unreadable("runs/torn.json", errors.New("it ends early")),
	}
}

// reportPage returns the page with the rows, and the data in it.
func reportPage(t *testing.T, rows []report.Row, o *page.ReportOptions) (whole, data string) {
	t.Helper()
	var out strings.Builder
	require.NoError(t, page.WriteReport(&out, rows, o))
	_, data, found := strings.Cut(out.String(), `id="data">`)
	require.True(t, found)
	data, _, _ = strings.Cut(data, "</script>")
	return out.String(), data
}

func TestReportPageHasItsDataOnce(t *testing.T) {
	_, data := reportPage(t, weatherRows(), &page.ReportOptions{Currency: "USD"})
	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, []byte(data), "", " "))
	goldentest.Require(t, "report.json", indented.String()+"\n")
}

func TestTextsCannotLeaveTheReportPage(t *testing.T) {
	var rows []report.Row
	for i, text := range viztest.Hostile {
		d := dag.New().WithMetadata("k"+text, text).User(text).Assistant(text, content.ToolUse{ID: "1", Name: "t" + text, Input: "{}"}).
			CloseTools(node.ToolExecution{Index: 1, Result: content.Words(text), IsError: true}).Stop(content.Stop("s" + text))
		rows = append(rows, report.Of(fmt.Sprint(i, text), d.WithoutErr(), nil))
	}

	whole, data := reportPage(t, rows, &page.ReportOptions{Title: viztest.Hostile[11], Currency: "<b>"})
	require.Equal(t, 2, strings.Count(whole, "</script>"), "the data, and the script")
	for _, char := range []string{"<", "\u2028", "\u202e", "\x1b"} {
		require.False(t, strings.Contains(data, char), "%q", char)
	}
}

func TestReportPageOfManyLongConversationsStaysSmall(t *testing.T) {
	var rows []report.Row
	for i := range 1000 {
		d := dag.New()
		for k := range 60 {
			d = d.User(fmt.Sprint("Question ", i, " ", k, strings.Repeat(" and more", 40))).Assistant(fmt.Sprint("Answer ", k))
		}
		rows = append(rows, report.Of("long.json", d, nil))
	}

	whole, data := reportPage(t, rows, nil)
	require.Less(t, len(whole), 20<<20)
	require.Contains(t, data, `"total":120`)
	require.Equal(t, 100_000, strings.Count(data, `"kind":`)-28, "beside the cells of the only path")
}

func TestKeysThatBeginAlikeHaveNamesOfTheirOwn(t *testing.T) {
	long := strings.Repeat("k", 60)
	run := weatherRun(0, "Paris", "").WithMetadata(long+"1", "one").WithMetadata(long+"2", "two").WithMetadata("a\tb", "tab").WithMetadata("a b", "space")
	_, data := reportPage(t, []report.Row{report.Of("a.json", run, nil), report.Of("b.json", run, nil)}, nil)

	var read struct {
		Rows []struct{ Labels map[string]string }
	}
	require.NoError(t, json.Unmarshal([]byte(data), &read))
	for _, row := range read.Rows {
		require.Equal(t, map[string]string{
			"variant": "short", strings.Repeat("k", 59) + "…": "one", strings.Repeat("k", 55) + "… (2)": "two", "a b": "tab", "a b (2)": "space",
		}, row.Labels)
	}
}

func TestGrowthOfReportPageWithKeysThatBeginAlike(t *testing.T) {
	growthtest.Run(t, []growthtest.Case{{Name: "WriteReport", Growth: growthtest.LogLinear, Setup: func(t testing.TB, n int) func() {
		d := dag.New().User("Go.")
		for i := range n {
			d = d.WithMetadata(fmt.Sprint(strings.Repeat("k", 60), i), 1)
		}
		rows := []report.Row{report.Of("a.json", d, nil)}
		return func() { require.NoError(t, page.WriteReport(io.Discard, rows, nil)) }
	}}})
}

func TestReportPageStopsAtTheFirstErrorOfItsWriter(t *testing.T) {
	full := errors.New("full")
	require.ErrorIs(t, page.WriteReport(failingWriter{full}, weatherRows(), nil), full)
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }
