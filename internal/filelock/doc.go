// Package filelock has the operating system's lock of an open file. It ends with the file, also after a crash.
package filelock

import "errors"

// ErrHeld is the error of Lock if another open file holds the lock, in this program or in another.
var ErrHeld = errors.New("the file is open for writing elsewhere")
