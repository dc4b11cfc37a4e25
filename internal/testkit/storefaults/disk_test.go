//go:build disk

package storefaults

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// sector is what a disk writes whole.
const sector = 512

// disk is a simulated disk. It holds files in memory, and knows of each what was synced and what was written since.
type disk struct {
	mu      sync.Mutex // guards all fields, and the files
	files   map[string]*file
	removed map[string]*file // whose removal is not synced: a crash may bring them back

	memory  string // a real file for the memory that several connections share; empty if there is one connection
	lies    bool   // a sync is reported and not made
	setting string // the value of PRAGMA synchronous that statements cannot change; empty if they can

	// before is called before each operation, with the lock held. Its error is that of the operation.
	before func(d *disk, op operation) error
}

// operation is what SQLite asks of the disk.
type operation string

const (
	opOpen     operation = "open"
	opDelete   operation = "delete"
	opAccess   operation = "access"
	opRead     operation = "read"
	opWrite    operation = "write"
	opTruncate operation = "truncate"
	opSync     operation = "sync"
	opSize     operation = "size"
	opLock     operation = "lock"
)

// file is a file of a disk.
type file struct {
	now    []byte  // what a read returns
	synced []byte  // what a crash cannot take back
	later  []write // what was done since the sync, in order
	named  bool    // its name in the folder is synced
	locks  map[*handle]vfs.LockLevel
}

func newFile() *file { return &file{locks: map[*handle]vfs.LockLevel{}} }

// others returns the highest lock that another handle has.
func (f *file) others(h *handle) (highest vfs.LockLevel) {
	for other, level := range f.locks {
		if other != h {
			highest = max(highest, level)
		}
	}
	return highest
}

// write is a change of a file: data at an offset, or, with nil data, a new size.
type write struct {
	at   int64
	data []byte
}

func newDisk() *disk {
	return &disk{files: map[string]*file{}, removed: map[string]*file{},
		before: func(*disk, operation) error { return nil }}
}

// apply makes a change. Where the file grows over bytes that were never written, it has those of gap, or zeros.
func (w write) apply(data []byte, gap *rand.Rand) []byte {
	end := w.at + int64(len(w.data))
	if w.data == nil && end < int64(len(data)) {
		return data[:end]
	}

	if grow := end - int64(len(data)); grow > 0 {
		data = append(data, make([]byte, grow)...)
		for i := end - grow; gap != nil && i < min(end, w.at); i++ {
			data[i] = byte(gap.Uint32())
		}
	}
	copy(data[w.at:], w.data)
	return data
}

// tear returns the part of a change before or after the end of a sector.
func (w write) tear(random *rand.Rand) write {
	first := w.at/sector + 1
	last := (w.at + int64(len(w.data)) - 1) / sector
	if w.data == nil || last < first {
		return w
	}

	cut := (first+random.Int64N(last-first+1))*sector - w.at
	if random.IntN(2) == 0 {
		return write{w.at, w.data[:cut]}
	}
	return write{w.at + cut, w.data[cut:]}
}

// survivors returns the changes that a crash leaves: none, all, the first ones, or any, in their order or in another one. In one of
// four crashes one of them is torn.
func survivors(later []write, random *rand.Rand) []write {
	var kept []write
	switch kind := random.IntN(5); kind {
	case 0:
	case 4:
		kept = slices.Clone(later)
	case 1:
		kept = slices.Clone(later[:random.IntN(len(later)+1)])
	default:
		for _, w := range later {
			if random.IntN(2) == 0 {
				kept = append(kept, w)
			}
		}
		if kind == 3 {
			random.Shuffle(len(kept), func(i, j int) { kept[i], kept[j] = kept[j], kept[i] })
		}
	}

	if len(kept) > 0 && random.IntN(4) == 0 {
		torn := random.IntN(len(kept))
		kept[torn] = kept[torn].tear(random)
	}
	return kept
}

// crash returns the disk as it may be after the power fails now. The lock must be held.
func (d *disk) crash(random *rand.Rand) *disk {
	after := newDisk()
	for _, files := range []map[string]*file{d.removed, d.files} {
		for _, name := range slices.Sorted(maps.Keys(files)) {
			f := files[name]
			if !f.named && random.IntN(2) == 0 {
				continue
			}

			var gap *rand.Rand
			if random.IntN(2) == 0 {
				gap = random
			}
			data := slices.Clone(f.synced)
			for _, w := range survivors(f.later, random) {
				data = w.apply(data, gap)
			}
			kept := newFile()
			kept.now, kept.named = data, true
			after.files[name] = kept
		}
	}
	return after
}

// settled returns a copy of the disk with everything synced. What crash returns is examined, or settled and used.
func (d *disk) settled() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()

	after := newDisk()
	for name, f := range d.files {
		kept := newFile()
		kept.now, kept.synced, kept.named = slices.Clone(f.now), slices.Clone(f.now), true
		after.files[name] = kept
	}
	return after
}

// disks counts the disks that were registered, so that each has another name.
var disks atomic.Int64

// register makes the disk known to SQLite. It returns the name, and a function that ends it.
func (d *disk) register() (name string, end func()) {
	name = fmt.Sprint("disk", disks.Add(1))
	vfs.Register(name, d)
	return name, func() {
		if d.memory == "" {
			vfs.Unregister(name)
			return
		}

		// River closes its connection a moment after it was told to. The name then stands for an empty disk.
		vfs.Register(name, newDisk())
	}
}

// begin locks the disk for an operation. The caller unlocks it, also after an error.
func (d *disk) begin(op operation) error {
	d.mu.Lock()
	return d.before(d, op)
}

// Open implements vfs.VFS.
func (d *disk) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	if name == "" { // a temporary file: nobody finds it after a crash
		return &handle{disk: newDisk(), file: newFile()}, flags, nil
	}
	err := d.begin(opOpen)
	defer d.mu.Unlock()
	if err != nil {
		return nil, flags, vfs.SystemError(err, sqlite3.CANTOPEN)
	}

	f := d.files[name]
	if f == nil {
		if flags&vfs.OPEN_CREATE == 0 {
			return nil, flags, sqlite3.CANTOPEN
		}
		f = newFile()
		d.files[name] = f
	}
	h := &handle{disk: d, file: f}
	if d.memory != "" {
		h.memory = vfs.NewSharedMemory(d.memory, flags)
	}
	return h, flags, nil
}

// Delete implements vfs.VFS.
func (d *disk) Delete(name string, syncDir bool) error {
	err := d.begin(opDelete)
	defer d.mu.Unlock()
	if err != nil {
		return err
	}

	f := d.files[name]
	if f == nil {
		return sqlite3.IOERR_DELETE_NOENT
	}
	delete(d.files, name)
	if d.removed[name] = f; syncDir && !d.lies {
		d.syncNames()
	}
	return nil
}

// syncNames syncs the folder.
func (d *disk) syncNames() {
	clear(d.removed)
	for _, f := range d.files {
		f.named = true
	}
}

// Access implements vfs.VFS.
func (d *disk) Access(name string, _ vfs.AccessFlag) (bool, error) {
	err := d.begin(opAccess)
	defer d.mu.Unlock()
	return err == nil && d.files[name] != nil, err
}

// FullPathname implements vfs.VFS.
func (d *disk) FullPathname(name string) (string, error) { return name, nil }

// handle is an open file. It implements vfs.File, with the promises of a usual file system.
type handle struct {
	disk   *disk
	file   *file
	memory vfs.SharedMemory // nil is none
}

// SharedMemory implements vfs.FileSharedMemory.
func (h *handle) SharedMemory() vfs.SharedMemory { return h.memory }

// Pragma implements vfs.FilePragma. SQLite does not run a statement that it accepts.
func (h *handle) Pragma(name, value string) (string, error) {
	if name == "synchronous" && value != "" && h.disk.setting != "" && !strings.EqualFold(value, h.disk.setting) {
		return h.disk.setting, nil
	}
	return "", sqlite3.NOTFOUND
}

func (h *handle) Close() error {
	err := h.Unlock(vfs.LOCK_NONE)
	if h.memory != nil {
		err = errors.Join(err, h.memory.Close())
	}
	return err
}

func (h *handle) ReadAt(p []byte, at int64) (int, error) {
	err := h.disk.begin(opRead)
	defer h.disk.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if at >= int64(len(h.file.now)) {
		return 0, io.EOF
	}
	n := copy(p, h.file.now[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) WriteAt(p []byte, at int64) (int, error) {
	err := h.disk.begin(opWrite)
	defer h.disk.mu.Unlock()
	if err != nil {
		return 0, err
	}
	h.file.change(write{at, slices.Clone(p)})
	return len(p), nil
}

func (h *handle) Truncate(size int64) error {
	err := h.disk.begin(opTruncate)
	defer h.disk.mu.Unlock()
	if err == nil {
		h.file.change(write{at: size})
	}
	return err
}

func (f *file) change(w write) {
	f.now = w.apply(f.now, nil)
	f.later = append(f.later, w)
}

// errUnsynced is the error of a sync after which the unsynced changes are not on disk, and never will be, though reads return
// them: what Linux does.
var errUnsynced = fmt.Errorf("the changes are dropped")

func (h *handle) Sync(vfs.SyncFlag) error {
	err := h.disk.begin(opSync)
	defer h.disk.mu.Unlock()
	if err == errUnsynced {
		h.file.later = nil
	}
	if err != nil || h.disk.lies {
		return err
	}

	for _, w := range h.file.later {
		h.file.synced = w.apply(h.file.synced, nil)
	}
	h.file.later = nil
	h.disk.syncNames()
	return nil
}

func (h *handle) Size() (int64, error) {
	err := h.disk.begin(opSize)
	defer h.disk.mu.Unlock()
	return int64(len(h.file.now)), err
}

func (h *handle) Lock(level vfs.LockLevel) error {
	err := h.disk.begin(opLock)
	defer h.disk.mu.Unlock()
	if err != nil {
		return err
	}

	others := h.file.others(h)
	switch {
	case others >= vfs.LOCK_PENDING, level >= vfs.LOCK_RESERVED && others >= vfs.LOCK_RESERVED:
		return sqlite3.BUSY
	case level == vfs.LOCK_EXCLUSIVE && others > vfs.LOCK_NONE:
		h.file.locks[h] = vfs.LOCK_PENDING // nobody begins to read any more
		return sqlite3.BUSY
	}
	h.file.locks[h] = level
	return nil
}

func (h *handle) Unlock(level vfs.LockLevel) error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if level == vfs.LOCK_NONE {
		delete(h.file.locks, h)
	} else {
		h.file.locks[h] = level
	}
	return nil
}

func (h *handle) CheckReservedLock() (bool, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return max(h.file.others(h), h.file.locks[h]) >= vfs.LOCK_RESERVED, nil
}

func (h *handle) SectorSize() int { return 4096 }

func (h *handle) DeviceCharacteristics() vfs.DeviceCharacteristic {
	return vfs.IOCAP_POWERSAFE_OVERWRITE
}
