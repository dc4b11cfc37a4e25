package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/filelock"
)

// std is the name of standard input and output.
const std = "-"

// load reads the conversation in a file or a database.
func (s *streams) load(name string) (dag.DAG, error) {
	if stored(name) {
		c, err := s.conversation(name, false)
		if err != nil {
			return dag.DAG{}, err
		}
		return c.DAG(), c.DAG().LoadAll()
	}

	return within(s, func() (dag.DAG, error) {
		// A regular file cannot grow beyond its limit in secret, and is read best by its name.
		if info, err := os.Stat(name); name != std && err == nil && info.Mode().IsRegular() {
			if err := checkFile(name, info); err != nil {
				return dag.DAG{}, err
			}
			return dag.Load(name)
		}

		in, err := s.input(name)
		if err != nil {
			return dag.DAG{}, err
		}
		defer in.Close()
		d, err := dag.Read(in)
		return d, inFile(err, name)
	})
}

// inFile returns the error of reading a conversation with the name of its FILE.
func inFile(err error, name string) error {
	var broken *dag.LoadError
	if errors.As(err, &broken) && broken.File == "" && name != std {
		broken.File = name
	}
	return err
}

// read reads a whole file.
func (s *streams) read(name string) ([]byte, error) {
	return within(s, func() ([]byte, error) {
		in, err := s.input(name)
		if err != nil {
			return nil, err
		}
		defer in.Close()
		return io.ReadAll(in)
	})
}

// within calls fn, which reads files. At a signal to end it returns at once, and fn is left behind: a pipe
// may never end, and decoding takes time.
func within[T any](s *streams, fn func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := fn()
		done <- result{value, err}
	}()

	var ended <-chan struct{}
	if s.ended != nil {
		ended = s.ended.Done()
	}
	select {
	case r := <-done:
		return r.value, r.err
	case <-ended:
		var none T
		return none, errors.New("interrupted")
	}
}

// maxFile is the maximum size of a FILE, in bytes. It is documented in docs/limits.md.
const maxFile = 1 << 30

// input opens a file for reading. It refuses directories, devices and what is larger than maxFile.
func (s *streams) input(name string) (io.ReadCloser, error) {
	if name == std {
		return &limited{io.NopCloser(s.in), "standard input", maxFile}, nil
	}
	info, err := os.Stat(name)
	if err == nil {
		err = checkFile(name, info)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}

	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return &limited{f, name, maxFile}, nil
}

// checkFile returns an error for what is not read: directories, devices, and a file that is too large.
func checkFile(name string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return fmt.Errorf("%s is a directory, not a file", name)
	case mode&(fs.ModeDevice|fs.ModeSocket|fs.ModeIrregular) != 0:
		return fmt.Errorf("%s is a device or a socket, not a file (- is standard input)", name)
	case mode.IsRegular() && info.Size() > maxFile:
		return tooLarge(name)
	}
	return nil
}

func tooLarge(name string) error {
	return fmt.Errorf("%s is larger than %d GiB, the limit for a file", name, maxFile>>30)
}

// limited is a file, or a pipe, whose bytes after a limit are an error.
type limited struct {
	io.ReadCloser
	name string
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, tooLarge(l.name)
	}
	return n, err
}

// readRegular reads a regular file. Unlike read, it also does so when the program is about to end, and saves: reading
// such a file does not block.
func readRegular(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err == nil {
		err = checkFile(name, info)
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is a pipe, not a file", name)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(name)
}

// begins reports whether name is a regular file that begins with the given bytes.
func begins(name, magic string) bool {
	// Opening a pipe may block, and reading takes its bytes.
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()

	begin := make([]byte, len(magic))
	_, err = io.ReadFull(f, begin)
	return err == nil && string(begin) == magic
}

// save writes the conversation to a file or a database.
func (s *streams) save(name string, d dag.DAG) error {
	if stored(name) {
		return s.append(name, d)
	}
	if name != std {
		return d.Save(name)
	}

	// Encode all of it first: if it cannot be saved, nothing is written.
	var whole bytes.Buffer
	if err := d.Write(&whole); err != nil {
		return err
	}
	_, err := whole.WriteTo(s.out)
	return err
}

// alone calls save while no other plait saves a file in the folder of FILE. Otherwise what it saves after save looked at
// FILE would be lost.
func alone(name string, save func() error) error {
	if path, err := filepath.EvalSymlinks(name); err == nil {
		name = path
	}

	// A save takes milliseconds, and only a stopped program holds the lock for longer. Then, and where folders have no
	// locks (on Windows), save is called all the same.
	if folder, err := os.Open(filepath.Dir(name)); err == nil {
		defer folder.Close() // it ends the lock
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = filelock.Wait(ctx, folder)
	}
	return save()
}

// takes returns the cobra.PositionalArgs for least to most arguments. The error text names them as what.
func takes(what string, least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return fmt.Errorf("%s takes %s, got %s (see %s -h)",
				cmd.Name(), what, describe.Count(len(args), "argument"), cmd.CommandPath())
		}
		return nil
	}
}

var (
	oneFile   = takes("one FILE", 1, 1)
	someFiles = takes("at least one FILE", 1, math.MaxInt)
)

// outputFlag registers the flag for the output file of a conversation.
func outputFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVarP(name, "output", "o", std, "the `FILE` to write")
}

// bodyFlag registers the flag for further members of a request's body.
func bodyFlag(cmd *cobra.Command, members *string) {
	cmd.Flags().StringVar(members, "body", "", "further members of the request's body, as a `JSON`\nobject, in place of those of the imported request")
}

// jsonFlag registers the flag for JSON output.
func jsonFlag(cmd *cobra.Command, asJSON *bool) {
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON")
}
