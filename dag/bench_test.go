package dag

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
)

// BenchmarkAppend shows that appending costs the same at any length. The head of every length is extended in turn, so that all
// of them meet the same machine, 256 times each in an op.
func BenchmarkAppend(b *testing.B) {
	lengths := []int{10, 1_000, 100_000, 1_000_000}
	var heads []DAG
	for _, size := range lengths {
		heads = append(heads, chain(b, size).WithSource(node.Source{}))
	}
	p := node.Message{Role: content.User, Blocks: content.Words("and one more thing")}
	spent := make([]fastest, len(lengths))
	b.ReportAllocs()
	const batch = 256
	for b.Loop() {
		for i := range heads {
			spent[i].run(func() {
				for range batch {
					kept = heads[i].Append(p)
				}
			})
		}
	}
	for i, size := range lengths {
		b.ReportMetric(spent[i].ns/batch, fmt.Sprintf("ns/append@%d", size))
	}
	b.ReportMetric(spent[len(spent)-1].ns/spent[0].ns, "longest/shortest")
}

// kept holds results, so that what makes them is not left out.
var (
	kept      DAG
	keptNodes []*node.Node
	keptText  Transcript
)

// depthFirst is the usual way to put a graph in order: depth-first search with a set of the nodes that were seen.
func depthFirst(head *node.Node) []*node.Node {
	seen := map[*node.Node]bool{head: true}
	var out []*node.Node
	type frame struct {
		n       *node.Node
		parents []*node.Node
	}
	stack := []frame{{head, head.Parents()}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		if len(top.parents) == 0 {
			out = append(out, top.n)
			stack = stack[:len(stack)-1]
			continue
		}
		p := top.parents[0]
		top.parents = top.parents[1:]
		if !seen[p] {
			seen[p] = true
			stack = append(stack, frame{p, p.Parents()})
		}
	}
	return out
}

// phases is a conversation of that many nodes in tool phases of three calls.
func phases(b *testing.B, size int) DAG {
	d := New().User("go")
	calls := make([]content.Block, 3)
	for i := range calls {
		calls[i] = content.ToolUse{ID: fmt.Sprint(i), Name: "f", Input: "{}"}
	}
	asks, err := content.Of(calls...)
	if err != nil {
		b.Fatal(err)
	}
	for n := 1; n < size; n += 5 {
		d = d.Append(node.Message{Role: content.Assistant, Blocks: asks}).CloseTools()
	}
	return d
}

// fastest is the shortest time that something took: what a busy machine adds is left out.
type fastest struct{ ns float64 }

func (f *fastest) run(what func()) {
	began := time.Now()
	what()
	if ns := float64(time.Since(began).Nanoseconds()); f.ns == 0 || ns < f.ns {
		f.ns = ns
	}
}

// BenchmarkLinearise compares Nodes with the usual way and with copying a slice of as many pointers, which is the least that
// anything can cost. They run in turn, and the fastest run of each
// counts.
func BenchmarkLinearise(b *testing.B) {
	for _, shape := range []struct {
		name  string
		build func(*testing.B, int) DAG
	}{
		{"chain", func(b *testing.B, size int) DAG { return chain(b, size) }},
		{"phases", phases},
	} {
		for _, size := range []int{1_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", shape.name, size), func(b *testing.B) {
				if testing.Short() && size > 100_000 {
					b.Skip("SKIPPED: a million nodes are too much for -short")
				}
				d := shape.build(b, size)
				flat := d.Nodes()
				if !slices.Equal(flat, depthFirst(d.Head())) {
					b.Fatal("the baseline gives another order")
				}
				var ours, bare, transcript, usual fastest
				for b.Loop() {
					ours.run(func() { keptNodes = d.Nodes() })
					bare.run(func() { keptNodes = slices.Clone(flat) })
					transcript.run(func() { keptText = d.Transcript() })
					usual.run(func() { keptNodes = depthFirst(d.Head()) })
				}
				b.ReportMetric(ours.ns, "ns/Nodes")
				b.ReportMetric(transcript.ns, "ns/Transcript")
				b.ReportMetric(usual.ns/ours.ns, "x-faster-than-DFS")
				b.ReportMetric(ours.ns/bare.ns, "x-of-slice-copy")
			})
		}
	}
}
