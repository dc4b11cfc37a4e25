// Package filelock has the operating system's lock of an open file. It ends with the file, also after a crash.
package filelock

import (
	"context"
	"errors"
	"os"
	"time"
)

// ErrHeld is the error of Lock if another open file holds the lock, in this program or in another.
var ErrHeld = errors.New("the file is open for writing elsewhere")

// Wait is Lock, but waits while another open file holds the lock.
func Wait(ctx context.Context, f *os.File) error {
	const between = 20 * time.Millisecond
	for {
		err := Lock(f)
		if !errors.Is(err, ErrHeld) {
			return err
		}

		select {
		case <-time.After(between):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
