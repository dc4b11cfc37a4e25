package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/plait-dev/plait/bench/internal/pair"
	"github.com/plait-dev/plait/bench/internal/peer"
)

// library is a program in bench/peers.
type library struct {
	name, version string
	// http makes both sides send requests of Anthropic's API, over a transport without a network.
	http bool
	// most is the largest number of calls in a measured turn, by the turns before. A case that would take minutes is
	// left out.
	most map[int]int
	// python reports that the program is main.py. It needs the library installed.
	python bool
	// history reports that the library keeps a history, to save, load and fork.
	history bool
	// atMost is the goal for our time divided by its time at turn 10, by the number of calls.
	atMost map[int]float64
	// faster is the goal for its time divided by ours, with one call, by the turns before.
	faster map[int]float64
}

var everywhere = map[int]int{10: 64, 100: 64, 1000: 64}

var libraries = []library{
	{name: "eino", version: "v0.9.20", most: everywhere, history: true, atMost: map[int]float64{1: 0.7, 8: 0.85, 64: 1}},
	{name: "fantasy", version: "v0.41.2", most: everywhere, history: true, atMost: map[int]float64{1: 1, 8: 1, 64: 1}},
	{name: "openaiagents", version: "v0.1.0", most: map[int]int{10: 64, 100: 64, 1000: 8}},
	{name: "langchaingo", version: "v0.1.14", most: map[int]int{10: 64, 100: 64, 1000: 8}},
	{name: "anthropic", version: "v1.84.0", http: true, most: map[int]int{10: 64, 100: 8, 1000: 1}, faster: map[int]float64{10: 4, 1000: 100}},
	{name: "adk", version: "v2.2.0", most: map[int]int{10: 64, 100: 8, 1000: 1}, faster: map[int]float64{10: 30, 1000: 1500}},
	{name: "trpc", version: "v1.11.0", most: map[int]int{10: 64, 100: 8, 1000: 1}},
	{name: "genkit", version: "v1.12.0", most: map[int]int{10: 64, 100: 8}},
	{name: "nanoagent", version: "of April 2026", python: true, most: map[int]int{10: 64, 100: 64, 1000: 8}, history: true},
}

// peerCases returns the comparisons of turns, files and forks with other libraries, each in a program of its own.
func peerCases() []pair.Case {
	var list []pair.Case
	for _, l := range libraries {
		for _, k := range []int{1, 8, 64} {
			for _, turns := range []int{10, 100, 1000} {
				if k <= l.most[turns] {
					list = append(list, l.turns(turns, k))
				}
			}
		}
		if l.history {
			list = append(list, l.kept("save"), l.kept("load"), l.kept("fork"), l.size())
		}
		// A Python program does not report its memory.
		if l.history && !l.python {
			list = append(list, l.forkMemory())
		}
	}
	return list
}

// turns compares turns with k calls, after a number of other turns.
func (l library) turns(turns, k int) pair.Case {
	window := peer.Window(turns)
	goal := pair.Goal{Number: 12, Kind: pair.AtMost}
	if turns == 10 {
		goal.Limit = l.atMost[k]
	}

	// Goal 12 is for the libraries with limits for our time. The others must take at least as long as Plait; with one
	// call, some must take several times as long.
	if l.atMost == nil {
		goal = pair.Goal{Number: 13, Kind: pair.Faster, Limit: 1}
		if limit := l.faster[turns]; limit > 0 && k == 1 {
			goal.Limit = limit
		}
	}

	return pair.Case{
		Name: fmt.Sprintf("peers/%s/turn/%d calls/%s", l.name, k, short(turns)), Per: "turn", Units: window, Full: true, Rounds: 9,
		Variants: l.variants(max(1, 500/turns), func(s *pair.Sample, p *program) error {
			reply, err := p.ask(peer.Ask{Measure: "turn", Turns: turns, Tools: k, Times: s.N, HTTP: l.http})
			if err != nil {
				return err
			}

			// The reply has the cost of one turn; Set takes the cost of all.
			n := float64(s.N * window)
			s.Set(pair.Cost{Value: reply.Cost.Value * n, Allocs: reply.Cost.Allocs * n, Bytes: reply.Cost.Bytes * n})
			return nil
		}), Goals: []pair.Goal{goal},
	}
}

// kept compares saving, loading or forking a history of 1,000 turns with one call each.
func (l library) kept(measure string) pair.Case {
	goal := pair.Goal{Kind: pair.AtMost}
	if l.python {
		goal = pair.Goal{Number: 6, Kind: pair.Faster} // by up to hundreds of times
	}

	return pair.Case{
		Name: "peers/" + l.name + "/" + measure + "/1k turns", Per: measure, Full: true, Rounds: 9,
		Variants: l.variants(1000, func(s *pair.Sample, p *program) error {
			reply, err := p.ask(peer.Ask{Measure: measure, Turns: 1000, Tools: 1, Times: s.N})
			s.Set(reply.Cost)
			return err
		}), Goals: []pair.Goal{goal},
	}
}

// forkMemory compares the memory held by a fork of a history of 1,000 turns.
func (l library) forkMemory() pair.Case {
	return pair.Case{
		Name: "peers/" + l.name + "/fork memory/1k turns", Unit: "B", Per: "fork", Full: true, Rounds: 3,
		Variants: l.variants(0, func(s *pair.Sample, p *program) error {
			const forks = 1000
			reply, err := p.ask(peer.Ask{Measure: "fork", Turns: 1000, Tools: 1, Times: forks})
			s.Set(pair.Cost{Value: reply.Held / forks})
			return err
		}), Goals: []pair.Goal{{Kind: pair.AtMost}},
	}
}

// size compares the sizes of a saved history of 1,000 turns.
func (l library) size() pair.Case {
	return pair.Case{
		Name: "peers/" + l.name + "/file/1k turns", Unit: "B", Per: "file", Full: true, Rounds: 3,
		Variants: l.variants(0, func(s *pair.Sample, p *program) error {
			reply, err := p.ask(peer.Ask{Measure: "save", Turns: 1000, Tools: 1, Times: 1})
			s.Set(pair.Cost{Value: float64(reply.Size)})
			return err
		}), Goals: []pair.Goal{{Kind: pair.AtMost}},
	}
}

// variants returns Plait's variant and that of the library, for the same work.
func (l library) variants(most int, run func(*pair.Sample, *program) error) func() ([]pair.Variant, error) {
	return func() ([]pair.Variant, error) {
		if l.python {
			if err := importable(); err != nil {
				return nil, err
			}
		}

		ours, err := start("plait")
		if err != nil {
			return nil, err
		}
		variants := []pair.Variant{{Name: "Plait", Max: most, Close: ours.close, Run: func(s *pair.Sample) error { return run(s, ours) }}}

		begin := start
		if l.python {
			begin = startPython
		}
		theirs, err := begin(l.name)
		if err != nil {
			// The Runner closes the program that is already running.
			return variants, err
		}

		return append(variants, pair.Variant{
			Name: l.name, Max: most, Close: theirs.close, Run: func(s *pair.Sample) error { return run(s, theirs) },
		}), nil
	}
}

// program is a running peer.
type program struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// built is the folder of the built programs; "" before the first is built.
var built string

// start builds a peer, if it is not built yet, and starts it.
func start(name string) (*program, error) {
	if built == "" {
		dir, err := os.MkdirTemp("", "plait-bench-peers-")
		if err != nil {
			return nil, err
		}
		built = dir
	}

	path := filepath.Join(built, name)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		source := filepath.Join("bench", "peers", name)
		build := exec.Command("go", "build", "-o", path, ".")
		build.Dir = source

		// A peer's own module is outside the workspace. The others belong to the module of bench.
		if _, err := os.Stat(filepath.Join(source, "go.mod")); err == nil {
			build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
		}
		if text, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building %s, from the project's folder: %w\n%s", source, err, text)
		}
	}

	return serve(exec.Command(path))
}

// importable returns nil, or the reason why nano-agent cannot be measured.
var importable = sync.OnceValue(func() error {
	python, err := exec.LookPath("python3")
	if err != nil {
		return pair.Skipped("python3 is not installed")
	}
	if text, err := exec.Command(python, "-c", "import nano_agent").CombinedOutput(); err != nil {
		// The last line of a traceback is the error.
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		return pair.Skipped("python3 cannot import nano_agent: " + lines[len(lines)-1])
	}
	return nil
})

// startPython starts a peer written in Python.
func startPython(name string) (*program, error) {
	return serve(exec.Command("python3", filepath.Join("bench", "peers", name, "main.py")))
}

// serve starts a peer with pipes for its questions and replies.
func serve(cmd *exec.Cmd) (*program, error) {
	p := &program{cmd: cmd}
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	return p, p.cmd.Start()
}

// ask sends one question and waits for the reply.
func (p *program) ask(a peer.Ask) (peer.Reply, error) {
	line, err := json.Marshal(a)
	if err != nil {
		return peer.Reply{}, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return peer.Reply{}, err
	}

	// Some libraries log to the standard output.
	var reply peer.Reply
	for {
		answer, err := p.out.ReadBytes('\n')
		if err != nil {
			return peer.Reply{}, err
		}
		if answer[0] == '{' && json.Unmarshal(answer, &reply) == nil {
			break
		}
	}
	if reply.Error != "" {
		return peer.Reply{}, errors.New(reply.Error)
	}
	return reply, nil
}

// close ends the program: a peer runs until its input ends.
func (p *program) close() error { return errors.Join(p.in.Close(), p.cmd.Wait()) }

// removeBuilt removes the built programs.
func removeBuilt() error {
	if built == "" {
		return nil
	}
	return os.RemoveAll(built)
}
