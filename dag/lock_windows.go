package dag

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

// locksFiles reports whether this platform has file locks.
const locksFiles = true

var (
	kernel32     = syscall.NewLazyDLL("kernel32.dll")
	lockFileEx   = kernel32.NewProc("LockFileEx")
	unlockFileEx = kernel32.NewProc("UnlockFileEx")
)

// Values of the Windows API.
const (
	lockfileFailImmediately = 1
	lockfileExclusiveLock   = 2
	errorLockViolation      = syscall.Errno(33)
	errorNotLocked          = syscall.Errno(158)
)

// lockedByte returns the offset of the locked byte, far beyond the end of any file. Windows refuses to read locked
// bytes, and other programs may read a journal while it is written.
func lockedByte() *syscall.Overlapped { return &syscall.Overlapped{OffsetHigh: 1 << 30} }

func lockFile(f *os.File) error {
	at := lockedByte()
	ok, _, err := lockFileEx.Call(f.Fd(), lockfileExclusiveLock|lockfileFailImmediately, 0, 1, 0, uintptr(unsafe.Pointer(at)))
	switch {
	case ok != 0:
		return nil
	case errors.Is(err, errorLockViolation), errors.Is(err, syscall.ERROR_IO_PENDING):
		return ErrLocked
	}
	return err
}

func unlockFile(f *os.File) error {
	at := lockedByte()
	ok, _, err := unlockFileEx.Call(f.Fd(), 0, 1, 0, uintptr(unsafe.Pointer(at)))
	if ok != 0 || errors.Is(err, errorNotLocked) {
		return nil
	}
	return err
}
