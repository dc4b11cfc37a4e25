package dag

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// faultyDisk is a disk that records its operations and fails one of them.
type faultyDisk struct {
	systemDisk
	log  []string
	fail int // the operation that fails, from 1; 0 for none
	// write is what a failing write does; nil for an error without effect.
	write func(data []byte) (written []byte, err error)
}

var errFault = errors.New("the disk is broken")

// do records an operation, and returns an error if it is the one that fails.
func (d *faultyDisk) do(operation string) error {
	d.log = append(d.log, operation)
	if len(d.log) == d.fail {
		return errFault
	}
	return nil
}

// changes returns the operations so far that matter after a crash, and forgets them.
func (d *faultyDisk) changes() []string {
	log := slices.DeleteFunc(d.log, func(s string) bool { return strings.HasPrefix(s, "(") })
	d.log = nil
	return log
}

func (d *faultyDisk) OpenFile(path string, flag int, mode fs.FileMode) (file, error) {
	if err := d.do("open"); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, flag, mode)
	if err != nil {
		return nil, err
	}
	return faultyFile{f, d}, nil
}

func (d *faultyDisk) Stat(path string) (fs.FileInfo, error) {
	if err := d.do("(stat path)"); err != nil {
		return nil, err
	}
	return os.Stat(path)
}

func (d *faultyDisk) Rename(from, to string) error {
	if err := d.do("rename"); err != nil {
		return err
	}
	return os.Rename(from, to)
}

func (d *faultyDisk) Remove(path string) error {
	if err := d.do("remove"); err != nil {
		return err
	}
	return os.Remove(path)
}

func (d *faultyDisk) SyncFolder(string) error { return d.do("sync folder") }

func (d *faultyDisk) Lock(f file) error {
	if err := d.do("(lock)"); err != nil {
		return err
	}
	return d.systemDisk.Lock(f.(faultyFile).File)
}

func (d *faultyDisk) Unlock(f file) error { return d.systemDisk.Unlock(f.(faultyFile).File) }

type faultyFile struct {
	*os.File
	disk *faultyDisk
}

func (f faultyFile) Read(p []byte) (int, error) {
	if err := f.disk.do("(read)"); err != nil {
		return 0, err
	}
	return f.File.Read(p)
}

func (f faultyFile) ReadAt(p []byte, offset int64) (int, error) {
	if err := f.disk.do("(read)"); err != nil {
		return 0, err
	}
	return f.File.ReadAt(p, offset)
}

func (f faultyFile) Write(p []byte) (int, error) { return f.written(p, f.File.Write) }

func (f faultyFile) WriteAt(p []byte, offset int64) (int, error) {
	return f.written(p, func(p []byte) (int, error) { return f.File.WriteAt(p, offset) })
}

func (f faultyFile) written(p []byte, write func([]byte) (int, error)) (int, error) {
	fault := f.disk.do("write")
	switch {
	case fault == nil:
		return write(p)
	case f.disk.write == nil:
		return 0, fault
	}
	part, fault := f.disk.write(p)
	n, err := write(part)
	return n, errors.Join(err, fault)
}

func (f faultyFile) Stat() (fs.FileInfo, error) {
	if err := f.disk.do("(stat)"); err != nil {
		return nil, err
	}
	return f.File.Stat()
}

func (f faultyFile) Chmod(mode fs.FileMode) error {
	if err := f.disk.do("chmod"); err != nil {
		return err
	}
	return f.File.Chmod(mode)
}

func (f faultyFile) Truncate(size int64) error {
	if err := f.disk.do("truncate"); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// Sync only records: that the system makes a file durable is not tested here.
func (f faultyFile) Sync() error { return f.disk.do("sync") }

func (f faultyFile) Close() error {
	return errors.Join(f.disk.do("close"), f.File.Close())
}

// writeFaults are the ways in which a write fails.
var writeFaults = map[string]func([]byte) ([]byte, error){
	"nothing is written":    nil,
	"the disk is full":      func(p []byte) ([]byte, error) { return p[:len(p)/2], syscall.ENOSPC },
	"a short write":         func(p []byte) ([]byte, error) { return p[:len(p)/2], nil },
	"an error after it all": func(p []byte) ([]byte, error) { return p, errFault },
}

func TestJournalSyncsFileAndFolder(t *testing.T) {
	on, path := &faultyDisk{}, filepath.Join(t.TempDir(), "j")
	j, err := openJournal(on, path, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"open", "write", "sync", "sync folder"}, on.changes(), "a new journal and its name are durable")

	d := New().User("one")
	require.NoError(t, j.Append(d))
	require.Equal(t, []string{"write", "sync"}, on.changes())
	require.NoError(t, j.Append(d))
	require.Empty(t, on.changes(), "nothing is new")
	require.NoError(t, j.Close())
	require.Equal(t, []string{"close"}, on.changes())

	// The writer before may have ended before its last append or the name was durable.
	j, err = openJournal(on, path, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"open", "sync", "sync folder"}, on.changes())
	require.NoError(t, j.Close())

	torn, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = torn.WriteString(`{"id":`)
	require.NoError(t, err)
	require.NoError(t, torn.Close())
	on.changes()
	j, err = openJournal(on, path, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"open", "truncate", "sync", "sync folder"}, on.changes())
	require.NoError(t, j.Close())
}

func TestJournalWithoutSyncNeverSyncs(t *testing.T) {
	on := &faultyDisk{}
	j, err := openJournal(on, filepath.Join(t.TempDir(), "j"), &JournalOptions{NoSync: true})
	require.NoError(t, err)
	require.NoError(t, j.Append(New().User("one")))
	require.NoError(t, j.Close())
	require.Equal(t, []string{"open", "write", "write", "close"}, on.changes())
}

func TestSaveSyncsContentBeforeRenameAndFolderAfter(t *testing.T) {
	on, path := &faultyDisk{}, filepath.Join(t.TempDir(), "a.json")
	require.NoError(t, replaceFile(on, path, New().User("one").Write))
	require.Equal(t, []string{"open", "write", "sync", "close", "rename", "sync folder"}, on.changes())
	require.NoError(t, replaceFile(on, path, New().User("two").Write))
	require.Equal(t, []string{"open", "chmod", "write", "sync", "close", "rename", "sync folder"}, on.changes())
}

// TestJournalLosesNoAcknowledgedAppend fails every operation of a journal in turn.
func TestJournalLosesNoAcknowledgedAppend(t *testing.T) {
	first := New().User("one")
	steps := []DAG{first, first.Assistant("two"), first.Assistant("two").User("three")}
	for how, write := range writeFaults {
		for fail, reached := 1, true; reached; fail++ {
			name := fmt.Sprintf("%s, operation %d", how, fail)
			on, path := &faultyDisk{fail: fail, write: write}, filepath.Join(t.TempDir(), "j")

			acknowledged := New()
			j, err := openJournal(on, path, nil)
			for i := 0; err == nil && i < len(steps); i++ {
				failed := j.Append(steps[i])
				if failed != nil {
					name += ", " + on.log[fail-1]
					require.True(t, Equal(acknowledged, j.DAG()), "%s: the journal holds what it held before", name)
					if on.log[fail-1] == "sync" {
						require.Equal(t, failed, j.Append(steps[i]), "%s: nobody knows what is on disk", name)
						break
					}
					require.NoError(t, j.Append(steps[i]), "%s: the append is repeated", name)
				}
				acknowledged = steps[i]
			}
			if err == nil {
				_ = j.Close()
			}
			reached = len(on.log) >= fail

			again, err := OpenJournal(path, &JournalOptions{NoSync: true})
			require.NoError(t, err, name)
			held := again.DAG()
			for held.Len() > acknowledged.Len() { // an append that failed may be on disk
				held = held.WithHeads(held.Head().Parents()...)
			}
			require.True(t, Equal(acknowledged, held), name)
			require.NoError(t, again.Append(steps[2]), name)
			require.NoError(t, again.Close())
			loaded, err := Load(path)
			require.NoError(t, err, name)
			require.True(t, Equal(steps[2], loaded), name)
		}
	}
}

// TestJournalThatCannotTruncateRefusesAppends fails a write and the truncation after it.
func TestJournalThatCannotTruncateRefusesAppends(t *testing.T) {
	on, path := &faultyDisk{}, filepath.Join(t.TempDir(), "j")
	j, err := openJournal(on, path, nil)
	require.NoError(t, err)
	d := New().User("one")
	require.NoError(t, j.Append(d))
	before, err := os.ReadFile(path)
	require.NoError(t, err)

	more := d.User("two")
	written := false
	on.write = func(p []byte) ([]byte, error) {
		on.fail, written = len(on.log)+1, true // the next operation is the truncation
		return p[:10], syscall.ENOSPC
	}
	on.log, on.fail = nil, 2 // after the stat
	err = j.Append(more)
	require.True(t, written)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorIs(t, err, errFault)
	on.fail = 0
	require.Equal(t, err, j.Append(more))
	require.Equal(t, 1, j.DAG().Len())
	require.NoError(t, j.Close())

	j, err = OpenJournal(path, nil)
	require.NoError(t, err)
	defer j.Close()
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, now)
	require.NoError(t, j.Append(more))
}

// TestReplacingAFileIsAllOrNothing fails every operation of replacing a document and a journal in turn.
func TestReplacingAFileIsAllOrNothing(t *testing.T) {
	before, after := New().User("before"), New().User("after")
	replace := map[string]func(on disk, path string) error{
		"document": func(on disk, path string) error { return replaceFile(on, path, after.Write) },
		"journal":  func(on disk, path string) error { return rewriteJournal(on, path, after) },
	}
	for kind, write := range replace {
		for how, fault := range writeFaults {
			for fail, reached := 1, true; reached; fail++ {
				name := fmt.Sprintf("%s, %s, operation %d", kind, how, fail)
				path := filepath.Join(t.TempDir(), "a")
				require.NoError(t, rewriteJournal(&faultyDisk{}, path, before))
				require.NoError(t, os.Chmod(path, 0o640))
				old, err := os.Stat(path)
				require.NoError(t, err)

				on := &faultyDisk{fail: fail, write: fault}
				err = write(on, path)
				reached = len(on.log) >= fail
				want := after
				if err != nil && !slices.Contains(on.log, "sync folder") && on.log[fail-1] != "close" {
					want = before
				}
				if err == nil {
					require.False(t, reached, name)
				}

				got, loadErr := Load(path)
				require.NoError(t, loadErr, name)
				if err == nil || on.log[fail-1] != "close" {
					require.True(t, Equal(want, got), "%s: %v", name, on.log)
				} else {
					require.True(t, Equal(before, got) || Equal(after, got), name)
				}
				files, err := os.ReadDir(filepath.Dir(path))
				require.NoError(t, err)
				require.Len(t, files, 1, "%s leaves a file", name)
				info, err := os.Stat(path)
				require.NoError(t, err)
				require.Equal(t, old.Mode(), info.Mode(), name)
			}
		}
	}
}

func TestFailedWriterKeepsTheOldFileAndNoOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o600))
	full := errors.New("the disk is full")
	err := replaceFile(systemDisk{}, path, func(w io.Writer) error {
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

// replacingDisk replaces a file by another between opening and locking it, as RewriteJournal in another program may.
type replacingDisk struct {
	systemDisk
	replace func()
}

func (d *replacingDisk) Lock(f file) error {
	if d.replace != nil {
		d.replace()
		d.replace = nil
	}
	return d.systemDisk.Lock(f)
}

func TestJournalIsOpenedAgainIfReplacedBeforeItsLock(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: Windows lets nobody replace an open file")
	}
	path := filepath.Join(t.TempDir(), "j")
	require.NoError(t, RewriteJournal(path, New().User("before")))
	after := New().User("after")
	on := &replacingDisk{replace: func() { require.NoError(t, RewriteJournal(path, after)) }}
	j, err := openJournal(on, path, nil)
	require.NoError(t, err)
	defer j.Close()
	require.True(t, Equal(after, j.DAG()))
	require.NoError(t, j.Append(after.User("more")))
}
