package durable

import (
	"sync/atomic"
	"time"
)

// databaseTime is the time of the database as a process knows it: read with each beat, and continued with the clock of
// the machine. The wall clock of the process may be hours off. It implements rivertype.TimeGenerator.
type databaseTime struct {
	clock func() time.Duration
	now   func() time.Time // the wall clock, until the first beat
	last  atomic.Pointer[reading]
}

// reading is a time of the database, and that of the clock when it was asked for.
type reading struct {
	clock time.Duration
	time  time.Time
}

// Now implements rivertype.TimeGenerator.
func (t *databaseTime) Now() time.Time {
	last := t.last.Load()
	if last == nil {
		return t.now()
	}
	return last.time.Add(t.clock() - last.clock)
}

// NowOrNil implements rivertype.TimeGenerator: statements use the database's own time.
func (t *databaseTime) NowOrNil() *time.Time { return nil }

// tolerance is how much a reading may differ from what is expected: a busy machine and the network cause small
// differences, and the time should not jump with each of them.
const tolerance = 250 * time.Millisecond

// set notes a reading.
func (t *databaseTime) set(clock time.Duration, now time.Time) {
	if last := t.last.Load(); last != nil {
		if off := now.Sub(last.time.Add(clock - last.clock)); off.Abs() < tolerance {
			return
		}
	}
	t.last.Store(&reading{clock, now})
}
