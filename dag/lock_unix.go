//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package dag

import (
	"errors"
	"os"
	"syscall"
)

// locksFiles reports whether this platform has file locks.
const locksFiles = true

func lockFile(f *os.File) error {
	err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

func unlockFile(f *os.File) error { return flock(f, syscall.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if err != syscall.EINTR {
			return err
		}
	}
}
