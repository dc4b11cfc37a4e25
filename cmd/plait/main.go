// Command plait works with saved conversations from a shell: it imports and exports them, shows, compares, forks,
// verifies and prunes them, adds up their cost, and runs them on a model. The caller executes the tools.
//
// A FILE is a conversation saved by Plait; "-" is standard input or output. The exit codes are:
//
//	0  done
//	1  a negative finding: verify failed, or there are differences
//	2  bad usage or bad input, or a run that failed; the message names the file, the line or the node
//	3  the run is paused: the pending calls are printed as JSON
//	4  the run would execute calls that were open in FILE, and there is no terminal to ask at: nothing was done
//
// "plait run --defer-tools" and "plait resume" make Plait an agent loop that any language can drive.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/plait-dev/plait/internal/safetext"
)

func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, func() {
		// The second signal ends the program at once, but one end of a terminal may be reported twice.
		signal.Ignore(syscall.SIGHUP)
		stop()
	})
	code := plait(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// The exit codes.
const (
	exitDone       = 0
	exitFinding    = 1
	exitBad        = 2
	exitPaused     = 3
	exitUnapproved = 4
)

// exitError ends the program with the given code. The text, if any, goes to standard error.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// plait runs one command line and returns the exit code.
func plait(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	written := &output{Writer: out}
	s := &streams{ctx: context.WithoutCancel(ctx), ended: ctx, in: in, out: written, err: errs}
	root := newRoot(s)
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(written)
	root.SetErr(errs)

	err := root.ExecuteContext(ctx)
	if closing := s.databases.close(); err == nil {
		err = closing
	}

	// An output that was cut off is never a success, also where a writer does not report it.
	var end *exitError
	if lost := written.lost(); lost != nil && (err == nil || errors.As(err, &end) && end.text == "") {
		err = fmt.Errorf("standard output: %w", lost)
	}
	if err == nil {
		return exitDone
	}

	code := exitBad
	if errors.As(err, &end) {
		code = end.code
	}

	// An error without a text was printed when it happened.
	if text := safetext.Block(plain(err)); text != "" {
		fmt.Fprintln(errs, "plait: "+text)
	}
	return code
}

// streams are the standard streams of a command, and its open databases.
type streams struct {
	ctx       context.Context // for databases; Ctrl-C does not end it: paid responses are still saved
	ended     context.Context // ends at a signal to end; nil for never
	in        io.Reader
	out, err  io.Writer
	databases databases
}

// output is standard output. It keeps the first error of a write.
type output struct {
	io.Writer
	failure atomic.Pointer[error]
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	if err != nil {
		o.failure.CompareAndSwap(nil, &err)
	}
	return n, err
}

// lost returns the first error of a write, or nil.
func (o *output) lost() error {
	if err := o.failure.Load(); err != nil {
		return *err
	}
	return nil
}
