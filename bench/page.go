package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	json "github.com/goccy/go-json"

	"github.com/plait-dev/plait/bench/internal/corpus"
	"github.com/plait-dev/plait/bench/internal/pair"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/viz/page"
)

// writePage compares writing a loaded conversation as a page with decoding its saved form.
func writePage(nodes int) pair.Case {
	return pair.Case{Name: "page/" + short(nodes), Per: "node", Units: nodes, Full: nodes > 1000, Rounds: 5, Variants: func() ([]pair.Variant, error) {
		text, _ := corpus.Saved(corpus.New(1).Conversation(nodes))
		d, err := dag.Read(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}

		return []pair.Variant{
			{Name: "page.Write", Run: repeat(func() error { return page.Write(io.Discard, d, nil) })},
			{Name: "goccy Unmarshal, in memory", Run: repeat(func() error {
				var doc corpus.Document
				return json.Unmarshal(text, &doc)
			})},
		}, nil
	}, Goals: []pair.Goal{{Kind: pair.AtMost, Limit: 3}}}
}

// pageSize compares the size of a page with the size of the saved conversation.
func pageSize(nodes int) pair.Case {
	return pair.Case{Name: "page/" + short(nodes) + "/size", Unit: "B", Per: "page", Full: true, Rounds: 1, Variants: func() ([]pair.Variant, error) {
		d := corpus.New(1).Conversation(nodes)
		size := func(write func(io.Writer) error) func(*pair.Sample) error {
			return func(s *pair.Sample) error {
				var n counted
				err := write(&n)
				s.Set(pair.Cost{Value: float64(n)})
				return err
			}
		}

		return []pair.Variant{
			{Name: "the page", Run: size(func(w io.Writer) error { return page.Write(w, d, nil) })},
			{Name: "the conversation", Run: size(d.Write)},
		}, nil
	}, Goals: []pair.Goal{{Kind: pair.AtMost, Limit: 1.3}}}
}

// counted counts the bytes written to it.
type counted int

func (c *counted) Write(p []byte) (int, error) {
	*c += counted(len(p))
	return len(p), nil
}

// pageMemory measures the peak memory of the command when it loads a file and writes its page.
func pageMemory(nodes int) pair.Case {
	return pair.Case{Name: "page/" + short(nodes) + "/memory", Unit: "B", Per: "process", Full: true, Rounds: 3, Variants: func() ([]pair.Variant, error) {
		if runtime.GOOS != "linux" {
			return nil, pair.Skipped("the memory of a process is read from /proc")
		}
		text, dir, path, err := savedFile(nodes)
		if err != nil {
			return nil, err
		}
		remove := func() error { return os.RemoveAll(dir) }
		command, removeCommand, err := buildCommand()
		if err != nil {
			return nil, errors.Join(err, remove())
		}

		return []pair.Variant{
			{Name: "plait render", Close: removeCommand, Run: func(s *pair.Sample) error {
				most, err := peak(exec.Command(command, "render", "--as", "html", path))
				s.Set(pair.Cost{Value: most})
				return err
			}},
			{Name: "the file", Close: remove, Run: func(s *pair.Sample) error { s.Set(pair.Cost{Value: float64(len(text))}); return nil }},
		}, nil
	}, Goals: []pair.Goal{
		{Kind: pair.Value, Limit: 600_000_000},
		{Name: "beside the file", Kind: pair.AtMost, Beside: "the file"},
	}}
}

// peak runs a command and returns its peak memory, in bytes. It polls /proc, because the figure that the system returns
// at the end of a process also counts the memory of the process that started it.
func peak(cmd *exec.Cmd) (float64, error) {
	cmd.Stdout, cmd.Stderr = io.Discard, os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}

	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()

	most := 0.0
	status := fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)
	for {
		// The file is gone when the process has ended; the figure read last counts then. VmHWM is the peak until now.
		text, _ := os.ReadFile(status)
		if _, rest, ok := strings.Cut(string(text), "VmHWM:"); ok {
			var kilobytes float64
			if _, err := fmt.Sscan(rest, &kilobytes); err == nil {
				most = max(most, kilobytes*1024)
			}
		}

		select {
		case err := <-ended:
			return most, err
		case <-time.After(5 * time.Millisecond):
		}
	}
}
