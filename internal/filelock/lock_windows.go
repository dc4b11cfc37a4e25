package filelock

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

// Supported reports whether this platform has file locks.
const Supported = true

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

// Lock acquires the exclusive lock of an open file. It does not wait. Its error is ErrHeld, or another of the system.
func Lock(f *os.File) error {
	at := lockedByte()
	ok, _, err := lockFileEx.Call(f.Fd(), lockfileExclusiveLock|lockfileFailImmediately, 0, 1, 0, uintptr(unsafe.Pointer(at)))
	switch {
	case ok != 0:
		return nil
	case errors.Is(err, errorLockViolation), errors.Is(err, syscall.ERROR_IO_PENDING):
		return ErrHeld
	}
	return err
}

// Unlock releases the lock. It does nothing for a file without one.
func Unlock(f *os.File) error {
	at := lockedByte()
	ok, _, err := unlockFileEx.Call(f.Fd(), 0, 1, 0, uintptr(unsafe.Pointer(at)))
	if ok != 0 || errors.Is(err, errorNotLocked) {
		return nil
	}
	return err
}
