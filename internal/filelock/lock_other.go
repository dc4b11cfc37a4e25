//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package filelock

import "os"

// Supported reports whether this platform has file locks.
const Supported = false

// Lock does nothing.
func Lock(*os.File) error { return nil }

// Unlock does nothing.
func Unlock(*os.File) error { return nil }
