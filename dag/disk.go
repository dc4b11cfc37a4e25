package dag

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
)

// disk is the file system that conversations are saved to. Tests replace it by one that fails or that records its
// operations.
type disk interface {
	OpenFile(path string, flag int, mode fs.FileMode) (file, error)
	Stat(path string) (fs.FileInfo, error)
	Rename(from, to string) error
	Remove(path string) error
	// SyncFolder makes the names in a folder durable.
	SyncFolder(path string) error
	// Lock takes the exclusive lock of an open file. It returns ErrLocked if another open file holds it, and does not
	// wait.
	Lock(f file) error
	// Unlock gives the lock back. It does nothing for a file without one.
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

// SyncFolder does nothing on Windows, which has no call for it and needs none.
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

// Lock does nothing where the platform or the file system has no locks.
func (systemDisk) Lock(f file) error {
	opened, ok := f.(*os.File)
	if !ok {
		return nil
	}
	err := lockFile(opened)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

func (systemDisk) Unlock(f file) error {
	opened, ok := f.(*os.File)
	if !ok {
		return nil
	}
	err := unlockFile(opened)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// writeAt writes all of data at an offset. A write that is short without an error is io.ErrShortWrite.
func writeAt(f file, data []byte, offset int64) error {
	n, err := f.WriteAt(data, offset)
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	return err
}
