package batch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/filelock"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

// The file has one JSON object on a line:
//
//	{"plait_batches":1,"model":"anthropic claude-sonnet-4-5"}   the first line
//	{"create":["1f…-0","9a…-0"],"at":"2026-11-28T07:04:00Z"}    a batch is about to be created
//	{"created":"msgbatch_1"}                                    … and was
//	{"not_created":true}                                        … or was not
//	{"resolved":"msgbatch_1"}                                   … or was, by Resolve
//	{"wrong":"msgbatch_1"}                                      … but not with this ID: it is in doubt again
//	{"failed":["9a…-0"]}                                        requests whose result was an error
//
// A line without its end was not written whole, and is dropped.

// maxFile limits the size of a file, in bytes. A batch of 100,000 requests takes 5 MB.
const maxFile = 1 << 30

// history is what a file says.
type history struct {
	model  string
	sent   []*sent
	failed []string
	doubt  *sent // a batch that may have been created
}

// openFile opens and locks a file, reads it, and drops what was not written whole.
func openFile(path string) (*os.File, history, error) {
	var h history
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, h, err
	}

	switch err = filelock.Lock(f); {
	case errors.Is(err, errors.ErrUnsupported):
		err = nil
	case errors.Is(err, filelock.ErrHeld):
		err = fmt.Errorf("%w: %w", ErrFile, err)
	}
	size := int64(0)
	if err == nil {
		size, err = h.read(f)
	}
	if err == nil {
		err = f.Truncate(size)
	}
	if err == nil {
		_, err = f.Seek(size, io.SeekStart)
	}
	if err != nil {
		return nil, h, errors.Join(fmt.Errorf("batch: %s: %w", path, err), f.Close())
	}
	return f, h, nil
}

// read reads a file, and returns the length of its whole lines.
func (h *history) read(f io.Reader) (size int64, err error) {
	lines := bufio.NewReader(io.LimitReader(f, maxFile))
	for number := 1; ; number++ {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			if size+int64(len(line)) == maxFile {
				return 0, fmt.Errorf("%w: it is larger than %d MiB", ErrFile, maxFile>>20)
			}
			return size, nil
		}
		if err == nil {
			err = h.line(number, strings.TrimSuffix(line, "\n"))
		}
		if err != nil {
			return 0, fmt.Errorf("line %d: %w", number, err)
		}
		size += int64(len(line))
	}
}

// line reads a line.
func (h *history) line(number int, line string) error {
	r := jsonx.Read(content.JSON(line), 2)
	if number == 1 {
		r.Only("plait_batches", "model")
		if version := r.Int("plait_batches"); r.Err() == nil && version != 1 {
			return fmt.Errorf("%w: it has version %d, and this program reads version 1", ErrFile, version)
		}
		h.model = r.Text("model")
		return invalid(r)
	}

	r.Only("create", "at", "created", "not_created", "resolved", "wrong", "failed")
	misplaced := fmt.Errorf("%w: it does not fit the line before", ErrFile)
	switch {
	case r.Has("create"):
		if h.doubt != nil {
			return misplaced
		}
		h.doubt = &sent{keys: r.Texts("create")}
		h.doubt.at, _ = time.Parse(time.RFC3339, r.OptText("at", ""))
	case r.Has("failed"):
		h.failed = append(h.failed, r.Texts("failed")...)
	case r.Has("wrong"):
		i := slices.IndexFunc(h.sent, func(s *sent) bool { return s.resolved && s.id == r.Text("wrong") })
		if i < 0 || h.doubt != nil {
			return misplaced
		}
		h.doubt = &sent{keys: h.sent[i].keys, at: h.sent[i].at}
		h.sent = slices.Delete(h.sent, i, i+1)
	case h.doubt == nil:
		return misplaced
	case r.Has("created"), r.Has("resolved"):
		h.doubt.id, h.doubt.resolved = r.OptText("created", r.OptText("resolved", "")), r.Has("resolved")
		h.sent = append(h.sent, h.doubt)
		h.doubt = nil
	default:
		r.Flag("not_created")
		h.doubt = nil
	}
	return invalid(r)
}

func invalid(r jsonx.Reader) error {
	if err := r.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrFile, err)
	}
	return nil
}

// append writes a line to the file, if there is one, and waits until it is on the disk.
func (b *Batches) append(line []byte) error {
	if b.file == nil {
		return nil
	}
	_, err := b.file.Write(append(line, "}\n"...))
	if err == nil {
		err = b.file.Sync()
	}
	if err != nil {
		b.broken = fmt.Errorf("batch: the file cannot be written: %w", err)
	}
	return b.broken
}

// list returns the beginning of a line with a list of keys.
func list(name string, keys []string) []byte {
	dst := append(write.Name([]byte{'{'}, name), '[')
	for _, key := range keys {
		dst = write.Quote(write.Comma(dst), key)
	}
	return append(dst, ']')
}
