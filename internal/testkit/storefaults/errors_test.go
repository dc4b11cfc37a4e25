//go:build disk

package storefaults

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/stretchr/testify/require"
)

// fault is what goes wrong with a disk.
type fault struct {
	name string
	hits func(operation) bool // the operations that it can hit; nil is all
	err  error
	once bool // only one operation fails, and otherwise all that follow too, until the fault is repaired
}

func grows(op operation) bool { return op == opWrite || op == opTruncate }

var faults = []fault{
	{"an I/O error", nil, syscall.EIO, true},
	{"I/O errors from then on", nil, syscall.EIO, false},
	{"a full disk", grows, vfs.SystemError(syscall.ENOSPC, sqlite3.FULL), false},
	{"a full disk for a moment", grows, vfs.SystemError(syscall.ENOSPC, sqlite3.FULL), true},
	{"a sync that drops what was written", func(op operation) bool { return op == opSync }, errUnsynced, true},
}

// aftermath counts what became of the changes.
type aftermath struct {
	runs, refused          int // runs, and those whose store could not be opened during the fault
	failed, stored, absent int // changes that returned an error, and what was found of them
	unseen                 int // of the failed ones, those of which nothing could be read yet
	reopened               int // runs whose store had to be closed and opened after the fault
	images, revived        int // images of a power loss after each failed change, and at the end; those that have a failed change
}

func TestEveryOperationMayFail(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			var a aftermath
			stride := 61
			if seedtest.Long() {
				stride = 1
			}
			if f.err == errUnsynced { // one of twenty operations is a sync
				stride = max(1, stride/10)
			}
			for n := 0; a.run(t, f, n); n += stride {
			}
			t.Logf("%+v", a)
			require.NotZero(t, a.failed)
			require.NotZero(t, a.absent, "nothing was found of a change that failed")
		})
	}
}

// run runs a program whose operation n fails. It reports whether there was one.
func (a *aftermath) run(t *testing.T, f fault, n int) bool {
	about := fmt.Sprint(f.name, " at operation ", n)
	d, w := faultyDisk(t)
	random := rand.New(rand.NewPCG(seedtest.First(t), uint64(n)))
	all := map[string]*expected{w.conversation: w.expected}

	// The fault.
	count, active := 0, true
	d.before = func(_ *disk, op operation) error {
		if !active || f.hits != nil && !f.hits(op) {
			return nil
		}
		if count++; count-1 < n || f.once && count-1 > n {
			return nil
		}
		return f.err
	}
	repair := func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		active = false
	}

	// Twelve changes, or two that fail.
	db, err := d.open(8)
	if err != nil {
		a.refused++
		repair()
		db, err = d.open(8)
		require.NoError(t, err, about)
	}
	failed := 0
	for steps := 0; steps < 12 && failed < 2; steps++ {
		if w.step(db) == nil {
			continue
		}
		failed++
		a.unseen++
		a.crash(t, d, all, random, about)
		if heads, err := observe(db, w.conversation); err == nil { // a fault may keep everybody from reading too
			a.found(t, w.expected, heads, about)
		}
	}
	a.failed += failed
	d.mu.Lock()
	hit := count > n
	d.mu.Unlock()
	repair()

	// After the fault the store works again.
	heads, err := observe(db, w.conversation)
	if err == nil {
		a.found(t, w.expected, heads, about)
		err = w.step(db)
	}
	if err != nil {
		a.reopened++
		t.Logf("%s: %v", about, err)
		_ = db.close()
		db, err = d.open(8)
		require.NoError(t, err, about)
		heads, err = observe(db, w.conversation)
		require.NoError(t, err, about)
		a.found(t, w.expected, heads, about)
		require.NoError(t, w.step(db), about)
	}
	a.crash(t, d, all, random, about)
	found, err := inspect(db, all)
	require.NoError(t, err, about)
	require.Equal(t, sound, found, about)
	require.NoError(t, db.close(), about)
	a.crash(t, d, all, random, about)
	a.runs++
	return hit
}

// found compares what is stored after a failed change: what was acknowledged, or the change as a whole.
func (a *aftermath) found(t *testing.T, e *expected, heads state, about string) {
	require.True(t, e.allows(heads), "%s: the conversation is %s", about, heads)
	unseen := a.unseen
	a.unseen = 0
	if heads.String() == e.acked.String() {
		a.absent += unseen
		return
	}
	a.stored += unseen
	e.is(heads)
}

// faultyDisk returns a disk with a conversation on it, and the writer for it.
func faultyDisk(t *testing.T) (*disk, *writer) {
	d := newDisk()
	db, err := d.open(8)
	require.NoError(t, err)
	w := newWriter(d, "talk", seedtest.First(t))
	for range 3 {
		require.NoError(t, w.step(db))
	}
	require.NoError(t, db.close())

	d = d.settled()
	w.disk = d
	return d, w
}

// crash examines an image of the disk.
func (a *aftermath) crash(t *testing.T, d *disk, all map[string]*expected, random *rand.Rand, about string) {
	d.mu.Lock()
	image := d.crash(random)
	then := map[string]*expected{}
	for name, e := range all {
		then[name] = e.clone()
	}
	d.mu.Unlock()

	a.images++
	found, err := image.examine(then)
	require.NoError(t, err, about)
	require.Equal(t, sound, found, about)
	for name, e := range then {
		if e.acked.String() != all[name].acked.String() {
			a.revived++
		}
	}
}
