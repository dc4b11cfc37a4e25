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
	"github.com/plait-dev/plait/viz/live"
)

// watched is a file that others write, and the page that shows it.
type watched struct {
	path string
	page *live.Server
	say  func(format string, args ...any)

	mu      sync.Mutex
	stat    fs.FileInfo       // of what was read last
	sum     [sha256.Size]byte // of its bytes
	journal bool
	whole   bool // it can be written: it was read without an error, to its end
	problem string
	notes   map[string]content.JSON // metadata that a run leaves; "" for none
	other   string                  // the file beside it that was written; "" for none
}

// look reads the file, where it has changed, and shows it. Where it cannot be read, the page goes on to show what it was.
func (w *watched) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read(false)
}

// read is look, also where the file does not seem to have changed.
func (w *watched) read(anyway bool) {
	stat, err := os.Stat(w.path)
	if err == nil && !anyway && w.asRead(stat) {
		return
	}
	var data []byte
	if err == nil {
		data, err = os.ReadFile(w.path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		w.stat, w.whole = nil, false
		w.tell(fmt.Sprintf("%s does not exist%s", w.path, w.older(" yet")))
		return
	case err != nil:
		w.stat, w.whole = nil, false
		w.tell(err.Error() + w.older(""))
		return
	}
	w.stat = stat
	sum := sha256.Sum256(data)
	if sum != w.sum {
		w.take(data, sum)
		return
	}
	w.whole = !w.journal || ended(data)
	w.tell("")
}

// asRead reports whether the file seems to be the one that was read last, as it was then.
func (w *watched) asRead(now fs.FileInfo) bool {
	return w.stat != nil && os.SameFile(now, w.stat) && now.Size() == w.stat.Size() && now.ModTime().Equal(w.stat.ModTime())
}

// take shows what was read.
func (w *watched) take(data []byte, sum [sha256.Size]byte) {
	d, err := dag.Read(bytes.NewReader(data))
	var broken *dag.LoadError
	if errors.As(err, &broken) {
		broken.File = w.path
	}
	if err != nil {
		w.whole = false
		w.tell(err.Error() + w.older(""))
		return
	}
	w.sum = sum
	w.journal = bytes.HasPrefix(data, []byte(`{"format":"plait-journal"`))
	w.whole = !w.journal || ended(data)
	w.page.Set(d)
	w.tell("")
}

// ended reports whether a journal ends with a complete append.
func ended(data []byte) bool {
	lines := bytes.TrimSuffix(data, []byte("\n"))
	last := lines[bytes.LastIndexByte(lines, '\n')+1:]
	return len(lines) < len(data) && (bytes.HasPrefix(last, []byte(`{"heads":`)) || len(last) == len(lines))
}

// older says that what is shown is not the file as it is, where something is shown; else it is otherwise.
func (w *watched) older(otherwise string) string {
	if w.sum == [sha256.Size]byte{} {
		return otherwise
	}
	return "; what is shown was read before"
}

// tell shows a problem on the page, and says it once; "" that there is none any more.
func (w *watched) tell(problem string) {
	if problem == w.problem {
		return
	}
	w.problem = problem
	if problem == "" {
		w.say("%s is read again", w.path)
		w.page.Report(nil)
		return
	}
	w.say("%s", problem)
	w.page.Report(errors.New(printable(problem)))
}

// note remembers metadata for the next save.
func (w *watched) note(key string, value content.JSON) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.notes == nil {
		w.notes = map[string]content.JSON{}
	}
	w.notes[key] = value
}

// save writes the conversation to the file. What is new there is read first, so that the page shows it beside what is to be saved. Where
// the file is broken or another program is writing it, the conversation goes to a file beside it.
func (w *watched) save(shown func() dag.DAG) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read(true)
	d := w.noted(shown())
	if !w.whole {
		return w.beside(d, fmt.Errorf("%s is broken, gone, or being written, and is left as it is", w.path))
	}
	write := d.Save
	if w.journal {
		write = func(path string) error { return appended(path, d) }
	}
	if err := write(w.path); err != nil {
		return w.beside(d, err)
	}
	w.page.Set(d) // with its metadata
	data, err := os.ReadFile(w.path)
	if err != nil {
		return err
	}
	w.sum = sha256.Sum256(data)
	w.stat, err = os.Stat(w.path)
	return err
}

// noted is d with what the run leaves in its metadata. A pause can be resumed where the conversation has one end.
func (w *watched) noted(d dag.DAG) dag.DAG {
	for _, key := range []string{runKey, pauseKey} {
		value, ok := w.notes[key]
		switch {
		case !ok || value == "" && d.Metadata().Get(key) == "":
		case value == "" || key == pauseKey && len(d.Heads()) != 1:
			d = d.WithMetadata(key, nil)
		default:
			d = d.WithMetadata(key, json.RawMessage(value))
		}
	}
	return d
}

// beside saves what was said, which is paid for, in another file, and returns why.
func (w *watched) beside(d dag.DAG, reason error) error {
	if w.other == "" {
		f, err := os.CreateTemp(filepath.Dir(w.path), filepath.Base(w.path)+".run-*.json")
		if err != nil {
			return errors.Join(reason, err)
		}
		w.other = f.Name()
		if err := f.Close(); err != nil {
			return errors.Join(reason, err)
		}
	}
	if err := d.Save(w.other); err != nil {
		return errors.Join(reason, err)
	}
	return fmt.Errorf("%w; what was said is in %s", reason, w.other)
}

// appended appends d to a journal.
func appended(path string, d dag.DAG) error {
	j, err := dag.OpenJournal(path, nil)
	if err != nil {
		return err
	}
	return errors.Join(j.Append(d), j.Close())
}
