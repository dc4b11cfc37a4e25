package dag_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// small is a conversation of about n nodes that say little, so that what is measured is the graph and not the text. Each
// answer calls two tools.
func small(n int) dag.DAG {
	d := counting().System("Answer briefly.")
	for i := 1; i < n; i += 5 {
		d = d.User(fmt.Sprint("question ", i)).
			Assistant("Let me see.", use("a", "f", `{"x":1}`), use("b", "f", `{"x":2}`)).
			CloseTools(node.ToolExecution{Index: 1, Result: content.Words("18 °C")}, node.ToolExecution{Index: 2, Result: content.Words("22 °C")})
	}
	return d
}

// BenchmarkGrowth does to files of more and more nodes what a person does with one: load it, verify it, compare it with a fork of itself,
// print its log. What it costs for each node should stay the same. PLAIT_LONG=1 goes up to 1,000,000 nodes.
func BenchmarkGrowth(b *testing.B) {
	sizes := []int{1_000, 10_000, 100_000}
	if os.Getenv("PLAIT_LONG") != "" {
		sizes = append(sizes, 1_000_000)
	}
	for _, size := range sizes {
		text := []byte(written(b, small(size)))
		d := read(b, string(text))
		nodes := d.Nodes()
		fork := d.WithHeads(nodes[len(nodes)/2]).User("And now?").Assistant("Now, too.")
		for _, job := range []struct {
			name string
			do   func() error
		}{
			{"load", func() error { _, err := dag.Read(bytes.NewReader(text)); return err }},
			{"verify", func() error {
				if v := d.Verify(); !v.OK() {
					return fmt.Errorf("%v", v)
				}
				return nil
			}},
			{"diff", func() error { return dag.Diff(d, fork).Write(io.Discard, nil) }},
			{"log", func() error { _, err := fmt.Fprintln(io.Discard, d); return err }},
		} {
			b.Run(fmt.Sprintf("%s/%d", job.name, size), func(b *testing.B) {
				for b.Loop() {
					must(b, job.do())
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(nodes)), "ns/node")
				b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms")
			})
		}
	}
}
