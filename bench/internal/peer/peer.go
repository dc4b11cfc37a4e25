// Package peer is the common part of the programs in bench/peers. Each program does the same work with one library: it
// runs a loop of turns with a fake model, and saves, loads and forks a history of messages. The model responds at once.
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
// A program reads an [Ask] on each line of its input and writes a [Reply] for it. It measures itself, so only the work
// counts, without the pipes and the JSON between the programs.
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
	"github.com/plait-dev/plait/bench/internal/probe"
)

// Ask asks a program for one sample.
type Ask struct {
	// Measure is "turn", "save", "load", "fork", or "probe".
	Measure string
	// Probe is the name of a probe.
	Probe string
	// Turns is the number of turns before the measured ones, or in the history. Tools is the number of calls in each.
	Turns, Tools int
	// HTTP asks for real requests; see Loop.
	HTTP bool
	// Times is the number of repetitions of the work.
	Times int
}

// Reply is the cost of an Ask, or the reason why it could not be measured.
type Reply struct {
	// Cost is the cost of all Times. For turns, it is the cost of one turn.
	Cost pair.Cost
	// Size is the size of the saved history, for "save".
	Size int
	// Outcome is what the library did at a probe.
	Outcome probe.Outcome
	// Held is the memory held by all forks, for "fork".
	Held  float64
	Error string
}

// Subject is the library under test.
type Subject struct {
	// Name and Version are printed.
	Name, Version string
	// Run runs a loop to its end.
	Run func(ctx context.Context, loop *Loop) error
	// History returns the history of a loop with so many turns and calls. It is nil if the library has no history.
	History func(turns, tools int) (History, error)
	// Probes is the library's part of the probes.
	Probes probe.Subject
}

// History is a conversation as the library keeps it.
type History interface {
	// Save returns the content of a file.
	Save() ([]byte, error)
	// Load reads the content of a file.
	Load(data []byte) (any, error)
	// Fork returns a copy that continues with a message of its own.
	Fork() any
}

// Messages is the history of a library that keeps a slice of messages and saves it with encoding/json.
type Messages[M any] struct {
	List []M
	// Next is the message appended to a fork.
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

// Loop is a run directed by a fake model: it calls tools in each response, and measures the last turns.
type Loop struct {
	// Tools is the number of calls in a response.
	Tools int
	// HTTP asks for requests of Anthropic's API, through the transport [Anthropic], in place of a model in the program.
	HTTP bool
	// Total is the number of turns with calls. Some libraries need it as a limit.
	Total int

	from   int          // turns before the measured ones
	asked  int          // requests so far
	sample *pair.Sample // nil for a loop without measuring
}

// Next is called by the fake model at each request. It reports whether to call tools; if not, the response is a text.
func (l *Loop) Next() bool {
	l.asked++
	if l.sample != nil {
		// A turn is from one request to the next: the last one ends at the request with a text as its response.
		if l.asked == l.from+1 {
			l.sample.Resume()
		}
		if l.asked == l.Total+1 {
			l.sample.Pause()
		}
	}
	return l.asked <= l.Total
}

// Window returns the number of measured turns after so many others.
func Window(turns int) int { return max(10, turns/20) }

// Serve replies to the lines of the standard input until it ends.
func Serve(l Subject) {
	// An error is a reply too: it ends one case, not the program.
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

// patience is the maximum time of one loop. A longer one is an error, and the case is left out.
const patience = time.Minute

func (l Subject) answer(ask Ask) (Reply, error) {
	if ask.Measure == "turn" {
		return l.turns(ask)
	}
	if ask.Measure == "probe" {
		o, err := probe.Ask(l.Probes, ask.Probe)
		return Reply{Outcome: o}, err
	}
	if l.History == nil {
		return Reply{}, fmt.Errorf("%s keeps no history", l.Name)
	}
	h, err := l.History(ask.Turns, ask.Tools)
	if err != nil {
		return Reply{}, err
	}
	data, err := h.Save() // for load, and for its size
	if err != nil {
		return Reply{}, err
	}

	reply := Reply{Size: len(data)}
	s := new(pair.Sample)
	forks := make([]any, ask.Times)
	before := pair.Live() // its collections free the garbage of making the history

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
	if ask.Measure == "fork" {
		reply.Held = float64(pair.Live()) - float64(before)
	}

	// The forks and the history stay alive while the clock runs, as in a program that uses them. What was alive at the
	// first Live must be alive at the second one, or the forks would seem smaller.
	runtime.KeepAlive(forks)
	runtime.KeepAlive(h)
	runtime.KeepAlive(data)
	return reply, nil
}

// turns measures the last turns of whole loops.
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

		// A loop with fewer turns would leave the clock as it is, and the cost would be wrong.
		if loop.asked != loop.Total+1 {
			return Reply{}, fmt.Errorf("the model got %d requests, and not %d", loop.asked, loop.Total+1)
		}
	}

	turns := float64(ask.Times * window)
	c := s.Cost()
	return Reply{Cost: pair.Cost{Value: c.Value / turns, Allocs: c.Allocs / turns, Bytes: c.Bytes / turns}}, nil
}
