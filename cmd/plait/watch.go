package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/viz/page/live"
)

// watched is a file and its page. Other programs may write the file.
type watched struct {
	path   string
	stored bool // the path names a conversation in a database
	page   *live.Server
	say    func(format string, args ...any)
	*streams

	mu       sync.Mutex              // guards the fields below
	stat     fs.FileInfo             // of the version read last; nil forces the next read
	sum      [sha256.Size]byte       // the hash of the version on the page; zero if there is none
	journal  bool                    // the file is a journal
	whole    bool                    // the file was read completely and may be written
	problem  string                  // the last reported problem; "" for none
	metadata map[string]content.JSON // set by a run, for the next save; "" removes a key
	version  uint64                  // of the head on the page, for a database; 0 if there is none
	durable  bool                    // the page shows the calls of a durable run
	other    string                  // the name of the other file, once it was written; see rescue
}

// refresh reads and shows the file if it has changed. If it cannot be read, the page keeps the version before.
func (w *watched) refresh() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read(false)
}

// read is refresh with w.mu held. With force it reads the file even if it does not seem to have changed.
func (w *watched) read(force bool) {
	if w.stored {
		w.readStored()
		return
	}

	stat, err := os.Stat(w.path)
	if err == nil && !force && w.unchanged(stat) {
		return
	}

	var data []byte
	if err == nil {
		data, err = readRegular(w.path)
	}

	switch {
	case errors.Is(err, fs.ErrNotExist):
		w.stat, w.whole = nil, false
		w.setProblem(fmt.Sprintf("%s does not exist%s", w.path, w.older(" yet")))
		return
	case err != nil:
		w.stat, w.whole = nil, false
		w.setProblem(err.Error() + w.older(""))
		return
	}

	// A change of the times alone, such as by touch, is no change of the conversation.
	w.stat = stat
	w.page.SetOrigin(live.Origin{Changed: stat.ModTime()})
	sum := sha256.Sum256(data)
	if sum != w.sum {
		w.show(data, sum)
		return
	}

	// An earlier failure may have cleared whole.
	w.whole = !w.journal || ended(data)
	w.setProblem("")
}

// readStored shows the conversation of a database if its head has moved.
func (w *watched) readStored() {
	c, err := w.conversation(w.path, false)
	if err != nil {
		w.setProblem(err.Error() + w.older(""))
		return
	}

	now, err := c.Head(w.ctx, c.Name())
	if err != nil {
		w.setProblem(err.Error() + w.older(""))
		return
	}
	if w.version != now.Version() {
		w.version = now.Version()
		w.set(now.DAG())
	}
	// The next append then reports only later changes by other programs as a conflict.
	w.databases.loaded[w.path] = now
	if err := w.showRun(now); err != nil {
		w.setProblem(err.Error())
		return
	}
	w.setProblem("")
}

// unchanged reports whether the file has the identity, size and time of the version read last.
func (w *watched) unchanged(now fs.FileInfo) bool {
	return w.stat != nil && os.SameFile(now, w.stat) && now.Size() == w.stat.Size() && now.ModTime().Equal(w.stat.ModTime())
}

// show decodes the file and shows it on the page.
func (w *watched) show(data []byte, sum [sha256.Size]byte) {
	d, err := dag.Read(bytes.NewReader(data))
	err = inFile(err, w.path)

	// w.sum stays the hash of the version on the page.
	if err != nil {
		w.whole = false
		w.setProblem(err.Error() + w.older(""))
		return
	}

	w.sum = sum
	w.journal = isJournal(data)
	w.whole = !w.journal || ended(data)
	w.set(d)
	w.setProblem("")
}

// set shows a loaded conversation with its paused run.
func (w *watched) set(d dag.DAG) {
	w.page.Set(d)
	if c := executor.ContinuationOf(d); c.ID != "" {
		w.page.SetPaused(live.Paused{Continuation: c})
	}
}

// isJournal reports whether a file is a journal.
func isJournal(data []byte) bool { return bytes.HasPrefix(data, []byte(journalMagic)) }

// journalMagic is the beginning of a journal.
const journalMagic = `{"format":"plait-journal"`

// ended reports whether a journal ends with a complete append.
func ended(data []byte) bool {
	// The last line of an append has the heads. A new journal has its header alone.
	lines := bytes.TrimSuffix(data, []byte("\n"))
	last := lines[bytes.LastIndexByte(lines, '\n')+1:]
	return len(lines) < len(data) && (bytes.HasPrefix(last, []byte(`{"heads":`)) || len(last) == len(lines))
}

// older returns the end of a problem: a remark on the older version on the page, or otherwise if the page is empty.
func (w *watched) older(otherwise string) string {
	if w.sum == [sha256.Size]byte{} && w.version == 0 {
		return otherwise
	}
	return "; the page shows the version before"
}

// setProblem reports a problem on the page and on standard error, once. The empty string reports its end.
func (w *watched) setProblem(problem string) {
	if problem == w.problem {
		return
	}

	w.problem = problem
	if problem == "" {
		w.say("%s can be read again", w.path)
		w.page.Report(nil)
		return
	}

	w.say("%s", problem)
	w.page.Report(errors.New(safetext.Block(problem)))
}

// setMetadata sets metadata for the next save.
func (w *watched) setMetadata(key string, value content.JSON) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.metadata == nil {
		w.metadata = map[string]content.JSON{}
	}
	w.metadata[key] = value
}

// save writes the conversation to the file. It reads the file first: shown then also returns the changes of other
// programs. If the file is broken or another program is writing it, the conversation goes to a file beside it, and to a
// temporary file if it cannot be written.
func (w *watched) save(shown func() dag.DAG) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.stored {
		w.read(true)
		return w.saveStored(w.withMetadata(shown()))
	}
	return alone(w.path, func() error {
		w.read(true)
		return w.saveFile(w.withMetadata(shown()))
	})
}

// saveFile is save for a file that was read right before. w.mu must be held.
func (w *watched) saveFile(d dag.DAG) error {
	if !w.whole {
		reason := fmt.Errorf("%s is broken, missing or being written, and is not overwritten", w.path)
		return w.rescue(filepath.Dir(w.path), d, reason)
	}

	write := d.Save
	if w.journal {
		write = func(path string) error { return appended(path, d) }
	}

	if err := write(w.path); err != nil {
		return w.rescue("", d, err)
	}
	w.page.Set(d) // with the metadata

	// Remember the new content of the file. Otherwise refresh takes it for a change by another program.
	data, err := readRegular(w.path)
	if err != nil {
		return err
	}
	w.sum = sha256.Sum256(data)
	if w.stat, err = os.Stat(w.path); err == nil {
		w.page.SetOrigin(live.Origin{Changed: w.stat.ModTime()})
	}
	return err
}

// saveStored appends the conversation in its database. w.mu must be held.
func (w *watched) saveStored(d dag.DAG) error {
	if err := w.append(w.path, d); err != nil {
		var moved *store.ConflictError
		if errors.As(err, &moved) && moved.KeptHead != "" {
			return err // the database keeps the new nodes under another head
		}
		return w.rescue("", d, err)
	}

	// Remember the version. Otherwise refresh takes the append for one by another program.
	w.version = w.databases.loaded[w.path].Version()
	w.page.Set(d)
	return nil
}

// withMetadata returns d with the metadata of the run.
func (w *watched) withMetadata(d dag.DAG) dag.DAG {
	value, ok := w.metadata[runKey]
	switch {
	case !ok || value == "" && d.Metadata().Get(runKey) == "":
		return d
	case value == "":
		return d.WithMetadata(runKey, nil)
	}
	return d.WithMetadata(runKey, json.RawMessage(value))
}

// rescue saves the conversation in another file, the same each time. The error has the reason. See the function rescue.
func (w *watched) rescue(dir string, d dag.DAG, reason error) (err error) {
	w.other, err = rescue(w.path, dir, w.other, d, reason)
	return err
}

// appended appends d to a journal.
func appended(path string, d dag.DAG) error {
	j, err := dag.OpenJournal(path, nil)
	if err != nil {
		return err
	}
	return errors.Join(j.Append(d), j.Close())
}
