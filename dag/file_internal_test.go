package dag

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAWriteThatFailsKeepsTheOldFileAndNoOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	full := errors.New("the disk is full")
	err := replaceFile(path, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return full
	})
	require.ErrorIs(t, err, full)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
	files, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, files, 1)
}

// TestAnAppendThatFailsLeavesNoTrace takes the file away from under a journal.
func TestAnAppendThatFailsLeavesNoTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j, err := OpenJournal(path, nil)
	require.NoError(t, err)
	d := New().User("one")
	require.NoError(t, j.Append(d))
	before, err := os.ReadFile(path)
	require.NoError(t, err)

	writable := j.file
	defer writable.Close()
	j.file, err = os.Open(path) // for reading only
	require.NoError(t, err)
	more := d.User("two")
	require.Error(t, j.Append(more))
	require.Equal(t, 1, j.DAG().Len())
	j.file.Close()
	j.file = writable
	require.Error(t, j.Append(more), "nothing could be undone either, so the journal takes no more")
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, now)

	j, err = OpenJournal(path, nil)
	require.NoError(t, err)
	defer j.Close()
	require.NoError(t, j.Append(more))
	require.Equal(t, 2, j.DAG().Len())
}
