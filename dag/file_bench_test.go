package dag_test

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	json "github.com/goccy/go-json"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// plain is a document as plain structs, for a bare encode and decode of the same data.
type plain struct {
	Format  string      `json:"format"`
	Version int         `json:"version"`
	Created time.Time   `json:"created"`
	Heads   []string    `json:"heads"`
	Nodes   []plainNode `json:"nodes"`
}

type plainNode struct {
	ID      string    `json:"id"`
	Parents []string  `json:"parents"`
	Kind    string    `json:"kind"`
	Time    time.Time `json:"time"`
	Body    plainBody `json:"body"`
	Sum     string    `json:"sum"`
}

type plainBody struct {
	Text    string          `json:"text,omitempty"`
	Role    string          `json:"role,omitempty"`
	Blocks  []plainBlock    `json:"blocks,omitempty"`
	CallID  string          `json:"call_id,omitempty"`
	Index   int             `json:"index,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	Result  []plainBlock    `json:"result,omitempty"`
	IsError bool            `json:"is_error,omitempty"`
}

type plainBlock struct {
	Type     string          `json:"type"`
	Text     string          `json:"text,omitempty"`
	ID       string          `json:"id,omitempty"`
	Name     string          `json:"name,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"`
	ResultOf *int            `json:"result_of,omitempty"`
}

// conversation is about n nodes of a session with tools, of about 2 KB each.
func conversation(n int) dag.DAG {
	words := strings.Repeat("The quick brown fox \"jumps\" over the lazy dog.\nÄnd <so> on & on. ", 60)
	d := counting().System("Answer briefly.")
	for i := 1; i < n; i += 5 {
		d = d.User(words[:200+i*37%3500]).
			Assistant(words[:100+i*53%3500],
				content.ToolUse{ID: fmt.Sprint("call_a", i), Name: "read", Input: `{"path":"/tmp/a","limit":100}`},
				content.ToolUse{ID: fmt.Sprint("call_b", i), Name: "read", Input: `{"path":"/tmp/b","limit":100}`}).
			CloseTools(node.ToolExecution{Index: 1, Result: content.Words(words[:200+i*71%3500])},
				node.ToolExecution{Index: 2, Result: content.Words(words[:200+i*31%3500])})
	}
	return d
}

// pair runs ours and bare in turn and reports how much longer ours takes, by the median of the rounds: figures of two runs, one
// after the other, say little on a machine that others use too.
func pair(b *testing.B, bytes int, ours, bare func()) {
	ours()
	bare()
	var ratios []float64
	var total time.Duration
	for b.Loop() {
		start := time.Now()
		ours()
		middle := time.Now()
		bare()
		a, c := middle.Sub(start), time.Since(middle)
		total += a
		ratios = append(ratios, float64(a)/float64(c))
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x-bare-goccy")
	b.ReportMetric(float64(total.Microseconds())/1000/float64(len(ratios)), "ms/ours")
	b.ReportMetric(float64(bytes)*float64(len(ratios))/total.Seconds()/1e6, "MB/s-ours")
}

func must(b *testing.B, err error) {
	if err != nil {
		b.Fatal(err)
	}
}

func BenchmarkSaveAndLoad(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		d := conversation(n)
		text := []byte(written(b, d))
		var doc plain
		must(b, json.Unmarshal(text, &doc))
		loaded := read(b, string(text))
		b.Run(fmt.Sprintf("load/%d", n), func(b *testing.B) {
			pair(b, len(text), func() {
				_, err := dag.Read(bytes.NewReader(text))
				must(b, err)
			}, func() {
				var doc plain
				must(b, json.Unmarshal(text, &doc))
			})
		})
		b.Run(fmt.Sprintf("save built/%d", n), func(b *testing.B) {
			pair(b, len(text), func() { must(b, d.Write(io.Discard)) }, func() {
				_, err := json.MarshalWithOption(&doc, json.DisableHTMLEscape())
				must(b, err)
			})
		})
		b.Run(fmt.Sprintf("save loaded/%d", n), func(b *testing.B) {
			pair(b, len(text), func() { must(b, loaded.Write(io.Discard)) }, func() {
				_, err := json.MarshalWithOption(&doc, json.DisableHTMLEscape())
				must(b, err)
			})
		})
	}
}

// BenchmarkJournalAppend shows that an append costs the same at any length. Run it with -benchtime 2000x or so.
func BenchmarkJournalAppend(b *testing.B) {
	for _, n := range []int{10, 1_000, 100_000} {
		b.Run(fmt.Sprintf("after %d", n), func(b *testing.B) {
			j, err := dag.OpenJournal(b.TempDir()+"/j", &dag.JournalOptions{NoSync: true})
			must(b, err)
			defer j.Close()
			d := counting().System("s")
			for range n {
				d = d.User("x")
			}
			must(b, j.Append(d))
			words := strings.Repeat("x", 2000)
			for b.Loop() {
				d = d.User(words)
				must(b, j.Append(d))
			}
		})
	}
}
