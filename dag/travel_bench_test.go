package dag_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// turns is a conversation of n turns, of about 1 KB each.
func turns(n int) dag.DAG {
	d := dag.New().System("Answer briefly.")
	for i := range n {
		d = d.User(fmt.Sprintf("question %d: %0400d", i, i)).Assistant(fmt.Sprintf("answer %d: %0400d", i, i))
	}
	return d
}

// forked is a conversation with that many forks at turns all over it: each is a ref, and a node.
func forked(d dag.DAG, forks int) dag.DAG {
	nodes := d.Nodes()
	for i := range forks {
		d = d.WithHeads(nodes[i*len(nodes)/forks]).User("and now?").WithRef(fmt.Sprintf("fork %04d", i))
	}
	return d.WithHeads(nodes[len(nodes)-1])
}

// copied is what the forks are where a conversation is a slice of messages: the texts are shared, the slices are not.
func copied(d dag.DAG, forks int) [][]content.Message {
	messages := d.Messages()
	copies := make([][]content.Message, forks)
	for i := range copies {
		at := i * len(messages) / forks
		copies[i] = append(slices.Clone(messages[:at]), content.Message{Role: content.User, Blocks: content.Words("and now?")})
	}
	return copies
}

// heap is how many bytes what make returns takes.
func heap[T any](make func() T) (T, int) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	made := make()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return made, int(after.HeapAlloc) - int(before.HeapAlloc)
}

type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func TestThousandForksAddAThousandNodes(t *testing.T) {
	const forks = 1_000
	d := turns(1_000)
	var plain counter
	require.NoError(t, d.Write(&plain))
	all, memory := heap(func() dag.DAG { return forked(d, forks) })
	require.Less(t, memory, forks*1_500, "bytes in memory")

	var saved counter
	require.NoError(t, all.Write(&saved))
	require.Less(t, int(saved-plain), forks*500, "bytes in the file")
	got := read(t, written(t, all))
	nodes := map[node.ID]bool{}
	for _, r := range got.Refs() {
		for _, n := range got.AtRef(r.Name).Nodes() {
			nodes[n.ID()] = true
		}
	}
	for _, n := range got.Nodes() {
		nodes[n.ID()] = true
	}
	require.Len(t, nodes, d.Len()+forks)
	require.Len(t, got.Refs(), forks)

	path := filepath.Join(t.TempDir(), "j")
	j := openJournal(t, path)
	require.NoError(t, j.Append(d))
	before := len(contentOf(t, path))
	require.NoError(t, j.Append(all))
	require.Less(t, len(contentOf(t, path))-before, forks*500, "bytes in the journal")
	runtime.KeepAlive(all)
}

// BenchmarkForks makes 1,000 forks of a conversation of 1,000 turns, and beside each the same by copying a slice of messages: in
// memory, where the copies share the texts, and on disk, where a copy is a file of its own.
func BenchmarkForks(b *testing.B) {
	const forks = 1_000
	d := turns(1_000)
	var plain, saved, bare counter
	must(b, d.Write(&plain))
	all, ours := heap(func() dag.DAG { return forked(d, forks) })
	copies, theirs := heap(func() [][]content.Message { return copied(d, forks) })
	b.Run("memory", func(b *testing.B) {
		var fork, slice fastest
		for b.Loop() {
			fork.run(func() { forked(d, forks) })
			slice.run(func() { copied(d, forks) })
		}
		b.ReportMetric(float64(ours)/forks, "B/fork")
		b.ReportMetric(float64(theirs)/forks, "B/copy")
		b.ReportMetric(float64(theirs)/float64(ours), "x-less-memory")
		b.ReportMetric(fork.ns/forks, "ns/fork")
		b.ReportMetric(slice.ns/fork.ns, "x-faster")
	})
	b.Run("file", func(b *testing.B) {
		var file, files fastest
		for b.Loop() {
			file.run(func() {
				saved = 0
				must(b, all.Write(&saved))
			})
			files.run(func() {
				bare = 0
				for i := 0; i < forks; i += 10 { // a tenth of them, the short and the long
					c := copies[i]
					must(b, json.NewEncoder(&bare).Encode(c))
				}
			})
		}
		b.ReportMetric(float64(saved-plain)/forks, "B/fork")
		b.ReportMetric(float64(bare)/(forks/10), "B/copy")
		b.ReportMetric(files.ns*10/file.ns, "x-faster")
	})
	b.Run("journal", func(b *testing.B) {
		var one fastest
		size := 0
		for b.Loop() {
			path := filepath.Join(b.TempDir(), "j")
			j, err := dag.OpenJournal(path, &dag.JournalOptions{NoSync: true})
			must(b, err)
			must(b, j.Append(d))
			before := len(contentOf(b, path))
			nodes, on := d.Nodes(), d
			one.run(func() {
				for i := range forks {
					on = on.WithHeads(nodes[i*len(nodes)/forks]).User("and now?").WithRef(fmt.Sprintf("fork %04d", i))
					must(b, j.Append(on))
				}
			})
			size = len(contentOf(b, path)) - before
			must(b, j.Close())
		}
		b.ReportMetric(float64(size)/forks, "B/fork")
		b.ReportMetric(one.ns/forks/1000, "µs/append")
	})
	runtime.KeepAlive(all)
	runtime.KeepAlive(copies)
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

// BenchmarkDiff compares a conversation of 100,000 nodes, of about 2 KB each, with a fork of itself, with one whose middle was
// edited, and with a loaded copy of that, in which no node is shared. Beside each it runs the plain way to find where they part: a
// comparison of the texts of two slices of messages, which tells less.
func BenchmarkDiff(b *testing.B) {
	size := 100_000
	if testing.Short() {
		size = 5_000
	}
	d := conversation(size)
	fork := d.Back(3).User("Another question.").Assistant("Another answer.")
	nodes := d.Nodes()
	edited := again(d.WithHeads(nodes[size/2].Parents()...).System("Answer briefly, and in French."), nodes[size/2+1:]...)
	must(b, edited.Err())
	for _, c := range []struct {
		name     string
		old, new dag.DAG
	}{
		{"fork", d, fork},
		{"edited in the middle", d, edited},
		{"loaded", d, read(b, written(b, edited))},
	} {
		b.Run(c.name, func(b *testing.B) {
			old, new := textsOf(c.old), textsOf(c.new)
			var ratios []float64
			var total time.Duration
			for b.Loop() {
				start := time.Now()
				if len(dag.ChangesOf(dag.Diff(c.old, c.new))) == 0 {
					b.Fatal("nothing differs")
				}
				middle := time.Now()
				same := 0
				for same < min(len(old), len(new)) && old[same] == new[same] {
					same++
				}
				total += middle.Sub(start)
				ratios = append(ratios, float64(middle.Sub(start))/float64(max(time.Since(middle), 1)))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "x-comparing-text")
			b.ReportMetric(float64(total.Microseconds())/1000/float64(len(ratios)), "ms/Diff")
		})
	}
}

func textsOf(d dag.DAG) []string {
	var texts []string
	for _, m := range d.Messages() {
		text := m.Blocks.Text()
		for _, r := range m.Blocks.ToolResults() {
			text += r.Content.Text()
		}
		texts = append(texts, text)
	}
	return texts
}
