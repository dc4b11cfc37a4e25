package dag_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/racetest"
	"github.com/plait-dev/plait/node"
)

// lazyAsEager checks that reading data with Lazy ends as reading it without has: in the conversation eager, or in err.
func lazyAsEager(t *testing.T, data []byte, eager dag.DAG, err error) {
	t.Helper()
	d, lazyErr := dag.Loader{MaxNode: 1 << 20, Lazy: true}.Read(bytes.NewReader(data))
	if lazyErr == nil {
		lazyErr = d.Write(io.Discard) // decodes every node that is saved
	}

	if err == nil {
		require.NoError(t, lazyErr)
		require.NoError(t, d.Err())
		require.Equal(t, written(t, eager), written(t, d))
		require.True(t, dag.Equal(eager, d))
		return
	}

	// A journal may hold nodes that its last append does not reach. They are never decoded.
	if lazyErr == nil {
		require.Contains(t, string(data[:min(len(data), 1000)]), "journal")
		return
	}
	var where *dag.LoadError
	require.ErrorAs(t, lazyErr, &where)
}

func TestLazyConversationIsThatOfTheFile(t *testing.T) {
	d := conversation(300)
	for name, text := range map[string]string{
		"document": written(t, d), "journal": journalOf(t, d),
		"every kind of node": written(t, sample(t)), "its journal": journalOf(t, sample(t)), "another tool's": foreign(t),
	} {
		t.Run(name, func(t *testing.T) {
			eager, err := dag.Read(strings.NewReader(text))
			require.NoError(t, err)
			lazyAsEager(t, []byte(text), eager, err)
		})
	}
}

func TestLazyConversationCanBeContinuedAndSaved(t *testing.T) {
	eager := read(t, written(t, conversation(50)))
	lazy, err := dag.Loader{Lazy: true}.Read(strings.NewReader(written(t, eager)))
	require.NoError(t, err)

	more := func(d dag.DAG) string {
		return written(t, d.WithSource(node.Counting(start.AddDate(9, 0, 0))).User("more").Assistant("yes"))
	}
	require.Equal(t, more(eager), more(lazy))
	require.Equal(t, len(eager.Validate()), len(lazy.Validate()))
	require.True(t, lazy.Verify().OK())
	require.Len(t, lazy.Messages(), len(eager.Messages()))
}

// TestLazyReportsABrokenNodeAsLoadDoes breaks the content of one node. Load refuses the file; lazily it can be opened,
// and the same error is found when the node is used.
func TestLazyReportsABrokenNodeAsLoadDoes(t *testing.T) {
	d := dag.New().User("one").Assistant("the broken one").User("three")
	for name, text := range map[string]string{"document": written(t, d), "journal": journalOf(t, d)} {
		t.Run(name, func(t *testing.T) {
			broken := strings.Replace(text, `"text":"the broken one"`, `"text":["the broken one"]`, 1)
			path := filepath.Join(t.TempDir(), "a.json")
			require.NoError(t, os.WriteFile(path, []byte(broken), 0o600))
			_, want := dag.Load(path)
			if name == "journal" {
				require.ErrorIs(t, want, dag.ErrDamaged)
			}

			lazy, err := dag.Loader{Lazy: true}.Load(path)
			require.NoError(t, err)
			require.Equal(t, 3, lazy.Len())
			last, _ := lazy.Head().Message()
			require.Equal(t, "three", last.Blocks.Text())
			require.NoError(t, lazy.Err())

			bad := lazy.Nodes()[1]
			require.Equal(t, "message", bad.Kind())
			require.IsType(t, node.Unknown{}, bad.Payload())
			var wanted, where *dag.LoadError
			require.ErrorAs(t, want, &wanted)
			require.ErrorAs(t, lazy.Err(), &where)
			require.Equal(t, wanted.Line, where.Line)
			require.Equal(t, wanted.Node, where.Node)
			require.Equal(t, path, where.File)
			require.ErrorIs(t, where, node.ErrParse)
			var field *node.FieldError
			require.ErrorAs(t, where, &field)
			require.Equal(t, bad.ID().String(), field.ID)

			// What is made of it reports the error too, and does not replace a file.
			require.ErrorIs(t, lazy.User("more").Err(), where)
			require.ErrorIs(t, dag.New().Join(lazy).Err(), where)
			require.ErrorIs(t, lazy.WriteLog(io.Discard, nil), where)
			require.ErrorIs(t, lazy.Save(path), where)
			require.Equal(t, broken, contentOf(t, path))
			require.True(t, bytes.Contains(bad.Append(nil), []byte(`["the broken one"]`)), "its line is kept")
		})
	}
}

func TestLazyRefusesABrokenStructureAtOnce(t *testing.T) {
	text := written(t, conversation(20))
	for name, broken := range map[string]string{
		"a node before its parent": strings.Replace(text, `"parents":[]`, `"parents":["01890000-0000-7000-8000-000000000000"]`, 1),
		"cut":                      text[:len(text)/2],
		"another version":          strings.Replace(text, `"version":1`, `"version":2`, 1),
		"an unknown head":          strings.Replace(text, `"heads":["0`, `"heads":["1`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			_, want := dag.Read(strings.NewReader(broken))
			require.Error(t, want)
			_, err := dag.Loader{Lazy: true}.Read(strings.NewReader(broken))
			require.EqualError(t, err, want.Error())
		})
	}
}

// TestLazyReportsANodeThatIsDecodedWhileTheFileIsRead breaks an execution, and removes the checksum of the message that
// shares its result: it is then decoded at once, and the execution with it, before the file is read to its end.
func TestLazyReportsANodeThatIsDecodedWhileTheFileIsRead(t *testing.T) {
	text := written(t, phaseOf(t, "sunny"))
	broken := strings.Replace(text, `"result":[{"type":"text"`, `"result":[{"type":7`, 1)
	require.NotEqual(t, text, broken)
	lines := strings.Split(broken, "\n")
	for i, line := range lines {
		if strings.Contains(line, `"result_of"`) {
			lines[i] = regexp.MustCompile(`,"sum":"[^"]*"`).ReplaceAllString(line, "")
			require.NotEqual(t, line, lines[i])
		}
	}
	broken = strings.Join(lines, "\n")

	_, err := dag.Read(strings.NewReader(broken))
	var want *dag.LoadError
	require.ErrorAs(t, err, &want)
	_, err = dag.Loader{Lazy: true}.Read(strings.NewReader(broken))
	require.EqualError(t, err, want.Error())
}

// TestZerosOfACrashAreNoNodesOfALazyJournal cuts an append of which a part did not reach the disk, as Load does.
func TestZerosOfACrashAreNoNodesOfALazyJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, err := dag.OpenJournal(path, nil)
	require.NoError(t, err)
	d := dag.New().User("one")
	require.NoError(t, j.Append(d))
	require.NoError(t, j.Append(d.User("two "+strings.Repeat("x", 100))))
	require.NoError(t, j.Close())

	torn := strings.Replace(contentOf(t, path), strings.Repeat("x", 50), strings.Repeat("\x00", 50), 1)
	lazy, err := dag.Loader{Lazy: true}.Read(strings.NewReader(torn))
	require.NoError(t, err)
	require.True(t, dag.Equal(d, lazy))
}

func TestLazyNodesAreDecodedByAnyNumberOfGoroutines(t *testing.T) {
	eager := read(t, written(t, conversation(100)))
	lazy, err := dag.Loader{Lazy: true}.Read(strings.NewReader(written(t, eager)))
	require.NoError(t, err)

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if len(eager.Messages()) != len(lazy.Messages()) {
				t.Error("the messages differ")
			}
			for _, n := range lazy.Nodes() {
				n.Meta()
				n.Append(nil)
			}
		})
	}
	wg.Wait()
	require.NoError(t, lazy.Err())
}

// TestLazyLoadAllocatesLittle: a node costs its envelope, whatever its content.
func TestLazyLoadAllocatesLittle(t *testing.T) {
	racetest.SkipCounting(t)
	allocs := func(blocks int) float64 {
		list := make([]content.Block, blocks)
		for i := range list {
			list[i] = content.Text{Text: "a\nb"}
		}
		d := dag.New()
		for range 100 {
			d = d.User("", list...)
		}
		text := written(t, d)
		return testing.AllocsPerRun(5, func() {
			_, err := dag.Loader{Lazy: true}.Read(strings.NewReader(text))
			require.NoError(t, err)
		})
	}
	require.InDelta(t, allocs(1), allocs(20), 30)
}
