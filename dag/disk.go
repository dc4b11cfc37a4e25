package dag

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"

	"github.com/plait-dev/plait/internal/filelock"
)

// disk is the file system for saved conversations. Tests replace it by one that fails or records its operations.
type disk interface {
	OpenFile(path string, flag int, mode fs.FileMode) (file, error)
	Stat(path string) (fs.FileInfo, error)
	Rename(from, to string) error
	Remove(path string) error
	// SyncFolder makes the names in a folder durable.
	SyncFolder(path string) error
	// Lock acquires the exclusive lock of an open file. It does not wait: it returns ErrLocked if another open file
	// holds the lock.
	Lock(f file) error
	// Unlock releases the lock. It does nothing for a file without one.
	Unlock(f file) error
}

// file is an open file of a disk. *os.File is one.
type file interface {
	io.ReadWriteCloser
	io.ReaderAt
	io.WriterAt
	Stat() (fs.FileInfo, error)
	Chmod(mode fs.FileMode) error
	Truncate(size int64) error
	Sync() error
}

// systemDisk is the file system of the operating system.
type systemDisk struct{}

func (systemDisk) OpenFile(path string, flag int, mode fs.FileMode) (file, error) {
	f, err := os.OpenFile(path, flag, mode)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (systemDisk) Stat(path string) (fs.FileInfo, error) { return os.Stat(path) }

func (systemDisk) Rename(from, to string) error { return os.Rename(from, to) }

func (systemDisk) Remove(path string) error { return os.Remove(path) }

// SyncFolder does nothing on Windows: it has no such call and needs none.
func (systemDisk) SyncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}

	return errors.Join(dir.Sync(), dir.Close())
}

// Lock does nothing if the platform or the file system has no locks.
func (systemDisk) Lock(f file) error {
	opened, ok := f.(*os.File)
	if !ok {
		return nil
	}
	err := filelock.Lock(opened)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	case errors.Is(err, filelock.ErrHeld):
		return ErrLocked
	}
	return err
}

func (systemDisk) Unlock(f file) error {
	opened, ok := f.(*os.File)
	if !ok {
		return nil
	}
	err := filelock.Unlock(opened)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// writeAt writes all of data at an offset. It returns io.ErrShortWrite for a short write without an error.
func writeAt(f file, data []byte, offset int64) error {
	n, err := f.WriteAt(data, offset)
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	return err
}
