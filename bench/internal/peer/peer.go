// Package peer is what the programs in bench/peers have in common. Each of them does the same work with one library: a
// loop of turns with a fake model that responds at once, and histories of messages that are saved, loaded and forked.
//
// The smallest whole program:
//
//	func main() {
//		run := func(ctx context.Context, loop *peer.Loop) error {
//			// … run the library with a model that calls loop.Next at each request …
//		}
//		peer.Serve(peer.Subject{Name: "mine", Version: "v1.0.0", Run: run})
//	}
//
// A program reads an [Ask] on each line of its input and writes a [Reply] for it. It measures itself, so that only the
// work counts.
//
// # Concurrency
//
// A program measures one Ask at a time.
//
// # Errors
//
// An error of the library is the text of its Reply.
package peer

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/plait-dev/plait/bench/internal/pair"
)

// Ask asks a program for one sample.
type Ask struct {
	// Measure is "turn", "save", "load", "fork" or "fork memory".
	Measure string
	// Turns is how many turns come before those that are measured, and Tools the calls in each.
	Turns, Tools int
	// HTTP asks for real requests; see Loop.
	HTTP bool
	// Times is how often to do the work.
	Times int
}

// Reply is what an Ask cost, or the reason why it could not be measured.
type Reply struct {
	// Cost is that of all Times. For turns, it is that of one turn.
	Cost pair.Cost
	// Size is the size of the saved history, for "save".
	Size  int
	Error string
}

// Subject is the library under test.
type Subject struct {
	// Name and Version are printed.
	Name, Version string
	// Run runs a loop to its end.
	Run func(ctx context.Context, loop *Loop) error
	// History returns the history of a loop with that many turns; nil if the library has none of its own.
	History func(turns, tools int) (History, error)
}

// History is a conversation as the library keeps it.
type History interface {
	// Save returns what is written to a file.
	Save() ([]byte, error)
	// Load reads that.
	Load(data []byte) (any, error)
	// Fork returns a copy that continues with a message of its own.
	Fork() any
}

// Messages is the history of a library that keeps messages in a slice and leaves saving them to encoding/json.
type Messages[M any] struct {
	List []M
	// Next is the message that a fork continues with.
	Next M
}

// Save returns the messages as JSON.
func (m Messages[M]) Save() ([]byte, error) { return json.Marshal(m.List) }

// Load reads messages.
func (m Messages[M]) Load(data []byte) (any, error) {
	var list []M
	err := json.Unmarshal(data, &list)
	return list, err
}

// Fork returns a copy of the slice with another message. The messages themselves are shared.
func (m Messages[M]) Fork() any {
	list := make([]M, len(m.List), len(m.List)+1)
	copy(list, m.List)
	return append(list, m.Next)
}

// Loop is the run that a fake model directs: it calls tools in each response, and measures the last turns.
type Loop struct {
	// Tools is how many calls a response has.
	Tools int
	// HTTP asks for requests of Anthropic's API, through the transport [Anthropic], in place of a model in the program.
	HTTP bool
	// Total is how many turns there are, for libraries that need a limit.
	Total int

	from   int
	asked  int
	sample *pair.Sample
}

// Next is called by the fake model at each request. It reports whether to call tools; if not, the response is a text.
func (l *Loop) Next() bool {
	l.asked++
	if l.sample != nil {
		// A turn is from one request to the next.
		if l.asked == l.from+1 {
			l.sample.Resume()
		}
		if l.asked == l.Total+1 {
			l.sample.Pause()
		}
	}
	return l.asked <= l.Total
}

// Window is how many turns are measured after the first ones.
func Window(turns int) int { return max(10, turns/20) }

// Serve answers the lines of the standard input until it ends.
func Serve(l Subject) {
	out := json.NewEncoder(os.Stdout)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var ask Ask
		err := json.Unmarshal(in.Bytes(), &ask)
		var reply Reply
		if err == nil {
			reply, err = l.answer(ask)
		}
		if err != nil {
			reply = Reply{Error: err.Error()}
		}
		if err := out.Encode(reply); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}

	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// patience is how long a sample may take before the library is left out of the measure.
const patience = time.Minute

func (l Subject) answer(ask Ask) (Reply, error) {
	if ask.Measure == "turn" {
		return l.turns(ask)
	}
	if l.History == nil {
		return Reply{}, fmt.Errorf("%s keeps no history", l.Name)
	}
	h, err := l.History(ask.Turns, ask.Tools)
	if err != nil {
		return Reply{}, err
	}
	data, err := h.Save()
	if err != nil {
		return Reply{}, err
	}

	reply := Reply{Size: len(data)}
	s := new(pair.Sample)
	forks := make([]any, ask.Times)
	runtime.GC()
	s.Resume()
	for i := range ask.Times {
		switch ask.Measure {
		case "save":
			_, err = h.Save()
		case "load":
			_, err = h.Load(data)
		case "fork":
			forks[i] = h.Fork()
		default:
			err = fmt.Errorf("no measure %q", ask.Measure)
		}
		if err != nil {
			return Reply{}, err
		}
	}
	s.Pause()
	reply.Cost = s.Cost()

	// What forks hold is counted while they and the history are alive.
	runtime.KeepAlive(forks)
	runtime.KeepAlive(h)
	return reply, nil
}

func (l Subject) turns(ask Ask) (Reply, error) {
	runtime.GC()
	s := new(pair.Sample)
	window := Window(ask.Turns)
	for range ask.Times {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		loop := &Loop{Tools: ask.Tools, Total: ask.Turns + window, HTTP: ask.HTTP, from: ask.Turns, sample: s}
		err := l.Run(ctx, loop)
		cancel()
		if err != nil {
			return Reply{}, err
		}
		if loop.asked != loop.Total+1 {
			return Reply{}, fmt.Errorf("the model got %d requests, and not %d", loop.asked, loop.Total+1)
		}
	}

	turns := float64(ask.Times * window)
	c := s.Cost()
	return Reply{Cost: pair.Cost{Value: c.Value / turns, Allocs: c.Allocs / turns, Bytes: c.Bytes / turns}}, nil
}
