package dag_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/plait-dev/plait/dag"
	"github.com/stretchr/testify/require"
)

// journalOfChild names the journal that this test binary opens when it runs as another program.
const journalOfChild = "PLAIT_TEST_JOURNAL"

func TestSecondWriterOfAJournalIsRefused(t *testing.T) {
	if !dag.LocksFiles {
		t.Skip("SKIPPED: this platform has no file locks")
	}
	path := filepath.Join(t.TempDir(), "j")
	j := openJournal(t, path)
	d := counting().User("one")
	require.NoError(t, j.Append(d))
	before := contentOf(t, path)

	refused := func(t *testing.T, name string) {
		_, err := dag.OpenJournal(name, nil)
		require.ErrorIs(t, err, dag.ErrLocked)
		var at *fs.PathError
		require.ErrorAs(t, err, &at)
		require.Equal(t, name, at.Path)
	}
	refused(t, path)
	t.Run("through a link", func(t *testing.T) {
		link := filepath.Join(t.TempDir(), "link")
		symlink(t, path, link)
		refused(t, link)
	})
	require.ErrorIs(t, dag.RewriteJournal(path, dag.New()), dag.ErrLocked)
	require.Equal(t, before, contentOf(t, path), "a refused writer changes nothing")
	loaded, err := dag.Load(path)
	require.NoError(t, err, "readers are not refused")
	require.True(t, dag.Equal(d, loaded))
	require.NoError(t, j.Append(d.User("two")))

	require.NoError(t, j.Close())
	again, err := dag.OpenJournal(path, nil)
	require.NoError(t, err, "Close gives the lock back")
	require.Equal(t, 2, again.DAG().Len())
	require.NoError(t, again.Close())
	require.NoError(t, dag.RewriteJournal(path, dag.New()))
}

func TestWriterInAnotherProgramIsRefused(t *testing.T) {
	if path := os.Getenv(journalOfChild); path != "" { // this is the other program
		j, err := dag.OpenJournal(path, nil)
		fmt.Printf("child: %v\n", err)
		if err == nil {
			_ = j.Append(j.DAG().User("from the child"))
		}
		os.Exit(0) // without Close: the lock ends with the program
	}
	if !dag.LocksFiles {
		t.Skip("SKIPPED: this platform has no file locks")
	}
	child := func(path string) string {
		command := exec.Command(os.Args[0], "-test.run=^TestWriterInAnotherProgramIsRefused$")
		command.Env = append(os.Environ(), journalOfChild+"="+path)
		out, err := command.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}

	path := filepath.Join(t.TempDir(), "j")
	j := openJournal(t, path)
	require.NoError(t, j.Append(counting().User("one")))
	require.Contains(t, child(path), dag.ErrLocked.Error())
	require.NoError(t, j.Close())
	require.Contains(t, child(path), "child: <nil>")

	j = openJournal(t, path)
	require.Equal(t, 2, j.DAG().Len(), "the other program has written, and its lock is gone")
}

func TestAppendRefusesAChangedJournal(t *testing.T) {
	one := counting().User("one")
	const removed, replaced = "it was removed", "another file has replaced it"
	reasons := map[string]string{
		"truncated": "it has 60 bytes, but had ", "emptied": "it has 0 bytes, but had ",
		"extended": " after the last append", "removed": removed, "moved": removed,
		"replaced by a copy": replaced, "written anew": replaced, "replaced by a document": replaced,
	}
	for name, change := range map[string]func(t *testing.T, path string){
		"truncated": func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 60)) },
		"emptied":   func(t *testing.T, path string) { require.NoError(t, os.Truncate(path, 0)) },
		"extended": func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			require.NoError(t, err)
			_, err = f.WriteString("x")
			require.NoError(t, err)
			require.NoError(t, f.Close())
		},
		"removed": func(t *testing.T, path string) { require.NoError(t, os.Remove(path)) },
		"moved":   func(t *testing.T, path string) { require.NoError(t, os.Rename(path, path+".old")) },
		"replaced by a copy": func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path+".new", []byte(contentOf(t, path)), 0o600))
			require.NoError(t, os.Rename(path+".new", path))
		},
		"written anew": func(t *testing.T, path string) {
			require.NoError(t, dag.RewriteJournal(path+".new", one))
			require.NoError(t, os.Rename(path+".new", path))
		},
		"replaced by a document": func(t *testing.T, path string) { require.NoError(t, one.Save(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && (reasons[name] == removed || reasons[name] == replaced) {
				t.Skip("SKIPPED: Windows lets nobody remove or replace an open file")
			}
			path := filepath.Join(t.TempDir(), "j")
			j, err := dag.OpenJournal(path, nil)
			require.NoError(t, err)
			require.NoError(t, j.Append(one))
			change(t, path)
			before, readErr := os.ReadFile(path)

			for what, d := range map[string]dag.DAG{"a new node": one.User("two"), "nothing new": one} {
				err := j.Append(d)
				require.ErrorIs(t, err, dag.ErrChanged, what)
				var at *fs.PathError
				require.ErrorAs(t, err, &at)
				require.Equal(t, path, at.Path)
				require.ErrorContains(t, err, "append "+path+": the journal was changed by another program: ")
				require.ErrorContains(t, err, reasons[name])
			}
			now, err := os.ReadFile(path)
			require.Equal(t, readErr != nil, err != nil)
			require.Equal(t, before, now, "the file is left alone")
			require.True(t, dag.Equal(one, j.DAG()))
			require.NoError(t, j.Close())
		})
	}
}

func TestJournalSurvivesAChangeOfTheWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	j := openJournal(t, "j")
	t.Chdir(t.TempDir())
	require.NoError(t, j.Append(counting().User("one")))
}

func TestZeroJournalRefusesAppends(t *testing.T) {
	var j dag.Journal
	require.ErrorIs(t, j.Append(counting().User("one")), fs.ErrClosed)
}

func TestZeroValuesOfFromNodeAndJournal(t *testing.T) {
	require.Zero(t, dag.FromNode(nil).Len())
	require.NoError(t, new(dag.Journal).Close())
}
