package dag_test

import (
	"bytes"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/stretchr/testify/require"
)

// repeated is a conversation in which two Sources have given the same ids.
func repeated() dag.DAG {
	at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	d := dag.New().WithSource(node.Counting(at)).User("one").Assistant("two")
	return d.WithSource(node.Counting(at)).User("three").Assistant("four")
}

func TestARepeatedIDIsNotSaved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	good := dag.New().User("good")
	require.NoError(t, good.Save(path))
	require.ErrorIs(t, repeated().Save(path), dag.ErrDuplicateID)
	loaded, err := dag.Load(path)
	require.NoError(t, err)
	require.True(t, dag.Equal(good, loaded))

	var out bytes.Buffer
	require.ErrorIs(t, repeated().Write(&out), dag.ErrDuplicateID)
	require.Zero(t, out.Len())

	j, err := dag.OpenJournal(filepath.Join(t.TempDir(), "j"), nil)
	require.NoError(t, err)
	defer j.Close()
	require.ErrorIs(t, j.Append(repeated()), dag.ErrDuplicateID)
}

func TestARepeatedIDIsDrawnAndFoundOnce(t *testing.T) {
	require.NotPanics(t, func() { _ = repeated().String() })
	seen := map[dag.Finding]int{}
	for _, f := range repeated().Validate() {
		seen[f]++
	}
	require.NotEmpty(t, seen)
	for f, times := range seen {
		require.Equal(t, 1, times, f.String())
	}
}

func TestCallsThatNobodyCanAnswerAreFound(t *testing.T) {
	said := fresh().Tools(declared("f", "")).User("q").Assistant("", use("a", "f", "{}"))
	require.Empty(t, said.Validate(), "the call is open")
	for name, d := range map[string]dag.DAG{"said more": said.Assistant("done"), "stopped": said.Stop("x")} {
		require.NoError(t, d.Err(), name)
		require.Nil(t, d.OpenCalls(), name)
		require.Equal(t, []dag.FindingKind{dag.CallWithoutResult}, kinds(d), name)
	}
}

func TestAnErrorOfAFileCannotDriveATerminal(t *testing.T) {
	for _, file := range []string{
		"{\"format\":\"plait\",\"version\":1,\"\\u001b[2J\":1,\"\\u001b[2J\":2,\"nodes\":[]}",
		"{\"format\":\"plait\",\"version\":1,\"nodes\":[{\"id\":\"\\u001b[2J\"}]}",
	} {
		_, err := dag.Read(strings.NewReader(file))
		require.Error(t, err)
		require.NotContains(t, err.Error(), "\x1b")
	}
}

func TestTheLargestLimitIsNoPanic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	require.NoError(t, dag.New().User("one").Save(path))
	_, err := dag.Loader{MaxNode: math.MaxInt}.Load(path)
	require.NoError(t, err)
	j, err := dag.OpenJournal(filepath.Join(t.TempDir(), "j"), &dag.JournalOptions{MaxNode: math.MaxInt})
	require.NoError(t, err)
	require.NoError(t, j.Append(dag.New().User("one")))
	require.NoError(t, j.Close())
	j, err = dag.OpenJournal(filepath.Join(filepath.Dir(path), "k"), &dag.JournalOptions{MaxNode: math.MaxInt})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	_, err = dag.OpenJournal(path, &dag.JournalOptions{MaxNode: math.MaxInt})
	require.ErrorIs(t, err, dag.ErrFormat)
}

func TestSaveFollowsALinkToNoFile(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink("next", link))
	require.NoError(t, os.Symlink("real", filepath.Join(dir, "next")))
	require.NoError(t, dag.New().User("one").Save(link))
	to, err := os.Readlink(link)
	require.NoError(t, err)
	require.Equal(t, "next", to)
	_, err = dag.Load(filepath.Join(dir, "real"))
	require.NoError(t, err)
}

func TestErrorsOfPathsNameThem(t *testing.T) {
	var at *fs.PathError
	path := filepath.Join(t.TempDir(), "none", "a.json")
	require.ErrorAs(t, dag.New().Save(path), &at)
	require.Equal(t, path, at.Path)
	require.ErrorIs(t, at, fs.ErrNotExist)
	require.EqualError(t, dag.New().Save(""), "save : no path is given")
	folder := filepath.Dir(filepath.Dir(path))
	require.EqualError(t, dag.New().Save(folder), "save "+folder+": it is not a regular file")

	_, err := dag.Load(path)
	var load *dag.LoadError
	require.ErrorAs(t, err, &load)
	require.Zero(t, load.Line)
	require.NotContains(t, err.Error(), "line")
}

func TestSaveTakesTheLongestName(t *testing.T) {
	require.NoError(t, dag.New().Save(filepath.Join(t.TempDir(), strings.Repeat("a", 255))))
}

func TestNothingIsOpenedAndClosed(t *testing.T) {
	require.Zero(t, dag.FromNode(nil).Len())
	require.NoError(t, new(dag.Journal).Close())
}
