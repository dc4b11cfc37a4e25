package progress

import (
	"cmp"
	"io"
	"iter"
	"os"
	"sync"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/safetext"
)

// Options changes how [Watch] shows a run. The zero value and nil are the defaults.
type Options struct {
	// Width is the number of cells in a row of the terminal. No line is longer. Defaults to 80, also when negative.
	Width int
	// Prices are the models' prices. If they include the models in use, the cost so far is shown, in the currency of
	// Prices. Defaults to none.
	Prices api.Prices
}

// Watch returns the events of a run, and writes its progress to w while they are ranged over: the turn, the time of the
// run and of each of its tools, the tokens so far, and the cost if it is known. The events are those of
// [executor.Agent.Stream], unchanged, and can be ranged over once.
//
//   - On a terminal (w is an *os.File of one, or of another character device), progress is one line, redrawn after each
//     event and once a second. The line is cleared when the range ends, or is broken out of. Other output to the same
//     terminal should begin on a new line.
//   - Elsewhere, a line is written when a turn begins, when a tool call ends, and at the end. Nothing is redrawn.
func Watch(w io.Writer, events iter.Seq2[executor.Event, error], o *Options) iter.Seq2[executor.Event, error] {
	return watch(w, events, o, terminal(w))
}

func watch(w io.Writer, events iter.Seq2[executor.Event, error], o *Options, redrawn bool) iter.Seq2[executor.Event, error] {
	if o == nil {
		o = &Options{}
	}
	return func(yield func(executor.Event, error) bool) {
		s := &screen{
			w: w, width: cmp.Or(max(o.Width, 0), 80), redrawn: redrawn,
			run: run{prices: o.Prices, began: time.Now()},
		}

		// start runs now. The function it returns runs at the end of the range.
		defer s.start()()

		for event, err := range events {
			s.show(event, err)
			if !yield(event, err) {
				return
			}
		}
	}
}

// terminal reports whether w is a terminal or another character device.
func terminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}

	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// screen writes the progress of one run.
type screen struct {
	w       io.Writer
	width   int
	redrawn bool

	mu    sync.Mutex
	run   run
	drawn string // the current line on the terminal
}

// start redraws the line once a second until stop is called. stop also clears the line.
func (s *screen) start() (stop func()) {
	if !s.redrawn {
		return func() {}
	}

	var ticking sync.WaitGroup
	done := make(chan struct{})
	ticking.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.mu.Lock()
				s.draw()
				s.mu.Unlock()
			case <-done:
				return
			}
		}
	})

	// The goroutine must have ended before the line is cleared, or it could draw it again.
	return func() {
		close(done)
		ticking.Wait()
		if s.drawn != "" {
			_, _ = io.WriteString(s.w, clear)
		}
	}
}

// clear moves to the beginning of the line and clears it.
const clear = "\r\x1b[K"

// show processes an event and shows the change.
func (s *screen) show(event executor.Event, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()

	line := s.run.see(event, err)
	if s.redrawn {
		s.draw()
	} else if line != "" {
		_, _ = io.WriteString(s.w, safetext.Line(line, s.width)+"\n")
	}
}

// draw redraws the line if it changed. The last cell stays free: some terminals wrap after writing it.
func (s *screen) draw() {
	line := safetext.Line(s.run.line(time.Now()), s.width-1)
	if line != s.drawn {
		s.drawn = line
		_, _ = io.WriteString(s.w, clear+line)
	}
}
