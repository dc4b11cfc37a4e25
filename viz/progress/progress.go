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

// Mode is how the progress of a run is shown.
type Mode int

const (
	// Auto is Redrawn where the output is an *os.File of a terminal or another character device, and Lines elsewhere.
	Auto Mode = iota
	// Redrawn is one line, drawn again in place and cleared at the end.
	Redrawn
	// Lines is a line for each turn that begins, each tool call that ends, and the end of the run.
	Lines
)

// Options changes how [Watch] shows a run. The zero value and nil are the defaults.
type Options struct {
	// Mode is how it is shown. Defaults to Auto.
	Mode Mode
	// Width is how many cells the terminal has in a row; no line is longer. Defaults to 80, also when negative.
	Width int
	// Prices is what models cost. Where it knows the models that answer, the cost until now is shown, in its currency. Defaults to
	// none.
	Prices api.Prices
}

// Watch returns the events of a run, and shows on w how far it is while they are ranged over: which turn it is, how long the run and each
// of its tools have taken, the tokens so far, and the cost where it is known. The events are those of [executor.Agent.Stream], unchanged,
// and can be ranged over once.
//
//   - On a terminal it is one line, drawn again when something happens and once a second. When the range ends, or is broken out of, the
//     line is gone. What others write to the same terminal meanwhile should begin in a line of its own.
//   - Elsewhere it is a line when a turn begins, when a tool call ends, and at the end. Nothing is drawn again.
func Watch(w io.Writer, events iter.Seq2[executor.Event, error], o *Options) iter.Seq2[executor.Event, error] {
	if o == nil {
		o = &Options{}
	}
	return func(yield func(executor.Event, error) bool) {
		s := &screen{w: w, width: cmp.Or(max(o.Width, 0), 80), redrawn: redrawn(w, o.Mode), run: run{prices: o.Prices, began: time.Now()}}
		defer s.start()()
		for event, err := range events {
			s.show(event, err)
			if !yield(event, err) {
				return
			}
		}
	}
}

func redrawn(w io.Writer, m Mode) bool {
	if m != Auto {
		return m == Redrawn
	}
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// screen is where a run is shown.
type screen struct {
	w       io.Writer
	width   int
	redrawn bool

	mu    sync.Mutex
	run   run
	drawn string // the line as it stands on the terminal
}

// start begins to draw the time, and returns what ends that and clears the line.
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
	return func() {
		close(done)
		ticking.Wait()
		if s.drawn != "" {
			_, _ = io.WriteString(s.w, clear)
		}
	}
}

// clear goes to the beginning of the line and clears it.
const clear = "\r\x1b[K"

// show shows what an event changes.
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

// draw draws the line again, where it changed. It leaves the last cell free, where some terminals break the line.
func (s *screen) draw() {
	line := safetext.Line(s.run.line(time.Now()), s.width-1)
	if line != s.drawn {
		s.drawn = line
		_, _ = io.WriteString(s.w, clear+line)
	}
}
