package dag_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/racetest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

func openJournal(t testing.TB, path string) *dag.Journal {
	t.Helper()
	j, err := dag.OpenJournal(path, &dag.JournalOptions{NoSync: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func contentOf(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// openCopy opens a copy of the journal at path, which may be open.
func openCopy(t testing.TB, path string) *dag.Journal {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.WriteFile(to, []byte(contentOf(t, path)), 0o600))
	return openJournal(t, to)
}

// journalOf is a journal file that was made in one append.
func journalOf(t testing.TB, d dag.DAG) string {
	path := filepath.Join(t.TempDir(), "j")
	require.NoError(t, openJournal(t, path).Append(d))
	return contentOf(t, path)
}

// steps is a conversation as it grows, with a rewind and a change of the metadata.
func steps(t testing.TB) []dag.DAG {
	child := dag.New().WithSource(node.Counting(start.AddDate(1, 0, 0))).User("Inner.").Assistant("Done.")
	a := counting().System("Be \"brief\".\n").User("One?")
	b := a.Assistant("", content.ToolUse{ID: "x", Name: "f", Input: "{\"a\": 1} "}, content.ToolUse{ID: "x", Name: "f"})
	c := b.CloseTools(node.ToolExecution{Index: 0, Child: node.ListOf(child.Heads()...)}, node.ToolExecution{Index: 1, IsError: true})
	all := []dag.DAG{a, b, c, c.Back(1).User("Again?"), c.Back(1).User("Again?").Join(c).WithMetadata("k", "v"), c}
	all = append(all, all[4].Assistant("Both."), c.WithRef("c").Back(1).User("Then?").WithRef("then"))
	all = append(all, all[7].WithoutRef("c").Assistant("Now."))
	for _, d := range all {
		require.NoError(t, d.Err())
	}
	return all
}

func TestJournalHoldsItsAppends(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openJournal(t, path)
	require.Zero(t, j.DAG().Len())
	for _, d := range steps(t) {
		require.NoError(t, j.Append(d))
		require.True(t, dag.Equal(d, j.DAG()))
		size := len(contentOf(t, path))
		require.NoError(t, j.Append(d))
		require.Len(t, contentOf(t, path), size, "nothing new writes nothing")

		for _, reopened := range []func() dag.DAG{
			func() dag.DAG { return openCopy(t, path).DAG() },
			func() dag.DAG { d, err := dag.Load(path); require.NoError(t, err); return d },
		} {
			got := reopened()
			require.True(t, dag.Equal(d, got))
			require.Equal(t, d.Metadata().Get("k"), got.Metadata().Get("k"))
			require.Equal(t, written(t, d), written(t, got), "as a document too")
		}
	}
	require.Equal(t, 1, strings.Count(contentOf(t, path), `"Be \"brief\".\n"`), "each node is written once")
}

func TestJournalContinuesAfterReopening(t *testing.T) {
	one, two := filepath.Join(t.TempDir(), "j"), filepath.Join(t.TempDir(), "j")
	whole := openJournal(t, one)
	for _, d := range steps(t) {
		require.NoError(t, whole.Append(d))
		j, err := dag.OpenJournal(two, nil) // with fsync
		require.NoError(t, err)
		require.NoError(t, j.Append(d))
		require.NoError(t, j.Close())
	}
	require.Equal(t, contentOf(t, one), contentOf(t, two))
}

// TestCrashAtAnyByteLosesNoAppend cuts the file: what comes back is the last append that is there as a whole, the report
// says what was cut, and the journal goes on. It cuts around the ends of lines, and at some bytes between; PLAIT_LONG
// cuts at every byte.
func TestCrashAtAnyByteLosesNoAppend(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "j")
	j := openJournal(t, path)

	type mark struct {
		size int
		d    dag.DAG
	}
	marks := []mark{{0, dag.New()}, {len(contentOf(t, path)), dag.New()}}
	for _, d := range steps(t) {
		require.NoError(t, j.Append(d))
		marks = append(marks, mark{len(contentOf(t, path)), d})
	}
	text := contentOf(t, path)
	next := dag.New().WithSource(node.Counting(start.AddDate(5, 0, 0))).User("Next.")
	require.NoError(t, j.Close())

	stride := 29
	if seedtest.Long() {
		stride = 1
	}
	for at, k := 0, 0; at <= len(text); at++ {
		for k+1 < len(marks) && marks[k+1].size <= at {
			k++
		}
		if at%stride != 0 && !strings.Contains(text[max(0, at-2):min(len(text), at+2)], "\n") {
			continue
		}

		cut := filepath.Join(dir, "cut")
		require.NoError(t, os.WriteFile(cut, []byte(text[:at]), 0o600))
		if k > 0 {
			d, err := dag.Load(cut)
			require.NoError(t, err, "byte %d", at)
			require.True(t, dag.Equal(marks[k].d, d), "byte %d", at)
			require.Len(t, contentOf(t, cut), at, "Load changes nothing")
		}

		j, err := dag.OpenJournal(cut, &dag.JournalOptions{NoSync: true})
		require.NoError(t, err, "byte %d", at)
		require.True(t, dag.Equal(marks[k].d, j.DAG()), "byte %d", at)
		if marks[k].size > 0 {
			require.Len(t, contentOf(t, cut), marks[k].size, "byte %d: the rest is cut", at)
		}

		if at%7 > 0 { // going on is tried at every seventh byte
			require.NoError(t, j.Close())
			continue
		}
		require.NoError(t, j.Append(next))
		require.NoError(t, j.Close())
		d, err := dag.Load(cut)
		require.NoError(t, err, "byte %d", at)
		require.True(t, dag.Equal(next, d))
	}
}

func TestBlocksOfZerosAtTheEndAreCut(t *testing.T) {
	dir := t.TempDir()
	all := steps(t)
	path := filepath.Join(dir, "j")
	j := openJournal(t, path)
	require.NoError(t, j.Append(all[0]))
	before := contentOf(t, path)
	require.NoError(t, j.Append(all[2]))
	text := contentOf(t, path)
	for _, width := range []int{1, 100, 1000} {
		for at := len(before); at+width <= len(text); at += 37 {
			torn := []byte(text)
			clear(torn[at : at+width])
			cut := filepath.Join(dir, "cut")
			require.NoError(t, os.WriteFile(cut, torn, 0o600))
			j, err := dag.OpenJournal(cut, &dag.JournalOptions{NoSync: true})
			require.NoError(t, err)
			require.True(t, dag.Equal(all[0], j.DAG()))
			require.Equal(t, before, contentOf(t, cut))
			require.NoError(t, j.Close())
		}
	}
}

// TestDamageInTheMiddleIsAnError breaks every line in several ways. No way may pass in silence.
func TestDamageInTheMiddleIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openJournal(t, path)
	for _, d := range steps(t) {
		require.NoError(t, j.Append(d))
	}
	require.NoError(t, j.Close())
	lines := strings.SplitAfter(contentOf(t, path), "\n")
	lines = lines[:len(lines)-1]
	for i, line := range lines {
		for how, broken := range map[string]string{
			"garbage":  "garbage\n",
			"empty":    "\n",
			"cut":      line[:len(line)/2] + "\n",
			"joined":   strings.TrimSuffix(line, "\n"),
			"zeros":    strings.Repeat("\x00", len(line)-1) + "\n",
			"missing":  "",
			"id":       strings.Replace(line, "7000", "7001", 1),
			"repeated": line + line,
		} {
			if broken == line || i >= len(lines)-2 && how == "zeros" || i == len(lines)-1 && (how == "joined" || how == "missing") {
				continue // in the last append these are what a crash leaves
			}
			text := strings.Join(lines[:i], "") + broken + strings.Join(lines[i+1:], "")
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			_, err := dag.OpenJournal(path, nil)
			require.Error(t, err, "line %d %s", i+1, how)
			var where *dag.LoadError
			require.ErrorAs(t, err, &where)
			if i > 0 {
				require.ErrorIs(t, err, dag.ErrDamaged, "line %d %s: %v", i+1, how, err)
				require.GreaterOrEqual(t, where.Line, i+1, "%s", how)
			}
			require.Equal(t, text, contentOf(t, path), "the file stays as it is")
			d, err := dag.Load(path)
			require.Error(t, err)
			require.Nil(t, d.Heads())
		}
	}
}

func TestOpenJournalLeavesOtherFilesUnchanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	for _, text := range []string{"x", "{", `{"format":"plait-journal","version":1} x` + "\n", `{"format":"plait-journal"}` + "\n",
		`{"format":"plait-journal","version":1,"nodes":[]}` + "\n", written(t, sample(t)), "\n", " " + journalOf(t, sample(t))[:20]} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		j, err := dag.OpenJournal(path, nil)
		if text == "{" {
			require.NoError(t, err, "a first line that was cut after one byte")
			require.NoError(t, j.Close())
			continue
		}
		require.ErrorIs(t, err, dag.ErrFormat, "%.50q", text)
		require.Equal(t, text, contentOf(t, path))
	}
	require.NoError(t, os.WriteFile(path, []byte(`{"format":"plait-journal","version":2}`+"\n"), 0o600))
	_, err := dag.OpenJournal(path, nil)
	require.ErrorIs(t, err, dag.ErrVersion)
	_, err = dag.OpenJournal(t.TempDir(), nil)
	require.Error(t, err)
}

func TestJournalKeepsUnknownHeaderMembers(t *testing.T) {
	d := read(t, foreign(t))
	j := read(t, journalOf(t, d))
	require.Contains(t, written(t, j), `"theme":{"b" : 1.0,"a":[ ]},"metadata":{"k":"v"}`)
	require.Equal(t, d.Created(), j.Created())

	path := filepath.Join(t.TempDir(), "j")
	text := `{"format":"plait-journal","version":1,"x": 1}` + "\n"
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	opened := openJournal(t, path)
	require.NoError(t, opened.Append(opened.DAG().User("x")))
	require.NotContains(t, contentOf(t, path)[len(text):], "header")
	require.Contains(t, written(t, openCopy(t, path).DAG()), `"x":1`)
	require.NoError(t, opened.Append(counting().User("another conversation")))
	require.NotContains(t, written(t, openCopy(t, path).DAG()), `"x":1`)
}

func TestAppendErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openJournal(t, path)
	require.ErrorIs(t, j.Append(dag.New().User("")), dag.ErrEmpty)
	d := counting().User("one")
	require.NoError(t, j.Append(d))
	size := len(contentOf(t, path))
	require.ErrorIs(t, j.Append(counting().User("the same id")), dag.ErrDuplicateID)
	require.Len(t, contentOf(t, path), size)
	loaded, err := dag.Load(path)
	require.NoError(t, err)
	require.NoError(t, j.Append(loaded.Assistant("a node that was read is the one that was written")))
	require.NoError(t, j.Close())
	require.NoError(t, j.Close())
	require.ErrorIs(t, j.Append(d.User("two")), fs.ErrClosed)
	require.Equal(t, 2, j.DAG().Len())
	require.False(t, errors.Is(j.Append(dag.New().User("")), fs.ErrClosed))
}

func TestConcurrentAppendsAreComplete(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := openJournal(t, path)
	root := counting().System("s")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			d := root
			for range 20 {
				d = d.User("x")
				if err := j.Append(d); err != nil {
					t.Error(err)
				}
				_ = j.DAG().Len()
			}
		})
	}
	wg.Wait()
	require.True(t, dag.Equal(j.DAG(), openCopy(t, path).DAG()))
	require.Equal(t, 1+8*20, strings.Count(contentOf(t, path), `"id"`))
}

// FuzzJournal: nothing panics; a journal that opens is one that opens again without loss and takes an append.
func FuzzJournal(f *testing.F) {
	whole := journalOf(f, sample(f))
	f.Add([]byte(whole))
	f.Add([]byte(whole[:len(whole)-7]))
	f.Add([]byte(whole[:len(whole)/2]))
	f.Add([]byte(whole[:20]))
	f.Add([]byte(journalOf(f, read(f, foreign(f)))))
	f.Add([]byte(written(f, sample(f))))
	f.Add(append([]byte(whole), 0, 0, 0, '\n'))
	path := filepath.Join(f.TempDir(), "j")
	f.Fuzz(func(t *testing.T, data []byte) {
		require.NoError(t, os.WriteFile(path, data, 0o600))
		opts := &dag.JournalOptions{NoSync: true, MaxNode: 1 << 20}
		j, err := dag.OpenJournal(path, opts)
		if err != nil {
			require.Equal(t, string(data), contentOf(t, path), "a file that does not open is not changed")
			return
		}
		if text := contentOf(t, path); len(text) > len(whole) || len(data) > 50 {
			require.True(t, bytes.HasPrefix(data, []byte(text)))
		}
		d := j.DAG()
		more := d.WithSource(node.Counting(start.AddDate(9, 0, 0))).User("more")
		require.NoError(t, j.Append(more))
		require.NoError(t, j.Close())
		again, err := dag.Load(path)
		require.NoError(t, err)
		require.True(t, dag.Equal(more, again))
		require.NoError(t, again.Write(io.Discard))
	})
}

// TestJournalAppendAllocatesLittle appends one message at a time. The lines are built in a buffer that is kept: an
// append allocates the same for a long message as for a short one.
func TestJournalAppendAllocatesLittle(t *testing.T) {
	racetest.SkipCounting(t)
	bytesFor := func(text string) float64 {
		j, err := dag.OpenJournal(filepath.Join(t.TempDir(), "j"), &dag.JournalOptions{NoSync: true})
		require.NoError(t, err)
		defer j.Close()

		const appends = 200
		steps := make([]dag.DAG, appends+1)
		d := counting()
		for i := range steps {
			d = d.User(text)
			d.Head().Digest()
			steps[i] = d
		}
		require.NoError(t, j.Append(steps[0]))

		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, step := range steps[1:] {
			require.NoError(t, j.Append(step))
		}
		runtime.ReadMemStats(&after)
		require.LessOrEqual(t, after.Mallocs-before.Mallocs, uint64(20*appends))
		return float64(after.TotalAlloc-before.TotalAlloc) / appends
	}

	short, long := bytesFor("x"), bytesFor(strings.Repeat("x", 4000))
	require.Less(t, long, short+1000)
}
