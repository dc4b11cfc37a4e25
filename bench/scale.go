package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/bench/internal/corpus"
	"github.com/plait-dev/plait/bench/internal/pair"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
)

// million measures the operations on a conversation of 1,000,000 nodes with short texts.
func million() pair.Case {
	const nodes = 1_000_000
	return pair.Case{Name: "scale/1M nodes", Per: "node", Units: nodes, Full: true, Rounds: 3, Variants: func() ([]pair.Variant, error) {
		d := corpus.Phases(nodes)
		var out bytes.Buffer
		if err := d.Write(&out); err != nil {
			return nil, err
		}
		text := out.Bytes()
		loaded, err := dag.Read(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}

		// Run does the work once, whatever s.N is. So Max must be 1.
		once := func(name string, do func() error) pair.Variant {
			return pair.Variant{Name: name, Max: 1, Run: func(*pair.Sample) error { return do() }}
		}
		return []pair.Variant{
			once("load", func() (err error) { kept, err = dag.Read(bytes.NewReader(text)); return err }),
			once("append", func() error {
				kept = loaded
				for range nodes {
					kept = kept.User("more")
				}
				return kept.Err()
			}),
			once("walk", func() error { keptNodes = d.Nodes(); return nil }),
			once("save", func() error { return loaded.Write(io.Discard) }),
			once("verify", func() error {
				if v := loaded.Verify(); !v.OK() {
					return fmt.Errorf("%v", v)
				}
				return nil
			}),
			once("draw, folded", func() error { return viz.Mermaid(io.Discard, d, nil) }),
			once("log, folded", func() error { return d.WriteLog(io.Discard, &dag.LogOptions{Fold: true}) }),
		}, nil
	}, Goals: []pair.Goal{
		{Name: "load", Kind: pair.Value, Ours: "load"},
		{Name: "append", Kind: pair.Value, Ours: "append"}, {Name: "walk", Kind: pair.Value, Ours: "walk"},
		{Name: "save", Kind: pair.Value, Ours: "save"}, {Name: "verify", Kind: pair.Value, Ours: "verify"},
		{Name: "draw, folded", Kind: pair.Value, Ours: "draw, folded"}, {Name: "log, folded", Kind: pair.Value, Ours: "log, folded"},
	}}
}

// conversations compares the memory of 10,000 conversations of 50 nodes, all alive at once, with the size of their
// texts.
func conversations() pair.Case {
	const count, nodes = 10_000, 50
	return pair.Case{Name: "scale/10k conversations", Unit: "B", Per: "conversation", Full: true, Rounds: 3, Variants: func() ([]pair.Variant, error) {
		build := func() (any, error) {
			// An exchange has five nodes. Exchange 1 has no image.
			all, c := make([]dag.DAG, count), corpus.New(1)
			for i := range all {
				all[i] = dag.New()
				for range nodes / 5 {
					all[i] = c.Exchange(all[i], 1)
				}
			}
			return all, nil
		}

		return []pair.Variant{
			{Name: "memory", Run: func(s *pair.Sample) error {
				before := pair.Live()
				all, err := build()
				if err != nil {
					return err
				}
				s.Set(pair.Cost{Value: (float64(pair.Live()) - float64(before)) / count})
				runtime.KeepAlive(all)
				return nil
			}},
			{Name: "texts", Run: func(s *pair.Sample) error {
				// The same seed and the same order as in build, so the texts are the same.
				c, sum := corpus.New(1), 0
				for range count {
					d := dag.New()
					for range nodes / 5 {
						d = c.Exchange(d, 1)
					}
					for _, n := range d.Nodes() {
						sum += size(n)
					}
				}

				s.Set(pair.Cost{Value: float64(sum) / count})
				return nil
			}},
		}, nil
	}, Goals: []pair.Goal{{Kind: pair.AtMost, Limit: 1.6}}}
}

// size returns the bytes of text in a node. A result counts in its execution, and not again in the message after it.
func size(n *node.Node) int {
	sum := 0
	if e, ok := n.Payload().(node.ToolExecution); ok {
		sum += len(e.Result.Text())
	}
	if m, ok := n.Message(); ok {
		sum += len(m.Blocks.Text())
		for i := range m.Blocks.Len() {
			if call, ok := m.Blocks.At(i).(content.ToolUse); ok {
				sum += len(call.Input)
			}
			if image, ok := m.Blocks.At(i).(content.Image); ok {
				sum += len(image.Source.Data)
			}
		}
	}
	return sum
}

// sentMemory compares the memory of a sent conversation with the size of its text. The encoded messages are kept.
func sentMemory() pair.Case {
	return pair.Case{Name: "memory/sent", Unit: "B", Rounds: 3, Variants: func() ([]pair.Variant, error) {
		hold := func(requests int) func(*pair.Sample) error {
			return func(s *pair.Sample) error {
				http := &http.Client{Transport: instantly(anthropicResponse)}
				client := api.NewClient(anthropic.New("claude-x", &anthropic.Options{NoStream: true, SDK: []option.RequestOption{
					option.WithoutEnvironmentDefaults(), option.WithAPIKey("none"), option.WithBaseURL("http://localhost"), option.WithHTTPClient(http),
				}}), nil)

				// The client is there already: only the conversation, and what is kept with it, counts.
				before := pair.Live()
				d := corpus.New(1).Conversation(2000)
				for range requests {
					if _, err := client.Send(context.Background(), api.Request{Messages: d.Messages()}); err != nil {
						return err
					}
				}

				s.Set(pair.Cost{Value: float64(pair.Live()) - float64(before)})
				runtime.KeepAlive(d)
				return nil
			}
		}

		return []pair.Variant{
			{Name: "sent to one API", Run: hold(1)},
			{Name: "its text", Run: func(s *pair.Sample) error {
				sum := 0
				for _, n := range corpus.New(1).Conversation(2000).Nodes() {
					sum += size(n)
				}
				s.Set(pair.Cost{Value: float64(sum)})
				return nil
			}},
			{Name: "built", Run: hold(0)},
		}, nil
	}, Goals: []pair.Goal{
		{Name: "built", Kind: pair.AtMost, Ours: "built", Limit: 1.6},
		{Name: "and sent to one API", Kind: pair.AtMost, Limit: 2.7},
	}}
}

// large measures the bytes allocated by a tool phase with a result of 64 MiB, and by saving it.
func large() pair.Case {
	const bytes = 64 << 20
	return pair.Case{Name: "scale/64 MiB result", Per: "result", Full: true, Rounds: 3, Variants: func() ([]pair.Variant, error) {
		text := strings.Repeat("0123456789abcde\n", bytes/16)
		handler := func(context.Context, executor.Call) (any, error) { return text, nil }
		d := fan(1, 0)

		return []pair.Variant{
			{Name: "tool phase", Max: 1, Run: func(*pair.Sample) (err error) {
				kept, err = executor.ExecuteToolsFunc(context.Background(), d, handler)
				return err
			}},
			{Name: "copy", Max: 1, Run: func(*pair.Sample) error { sink = []byte(text); return nil }},
			{Name: "save", Max: 1, Run: func(s *pair.Sample) error {
				// A new result each time, because the first save is measured.
				s.Pause()
				closed, err := executor.ExecuteToolsFunc(context.Background(), d, handler)
				if err != nil {
					return err
				}
				s.Resume()

				return closed.Write(io.Discard)
			}},
		}, nil
	}, Goals: []pair.Goal{
		{Name: "phase, bytes", Kind: pair.Bytes, Limit: 2 * bytes},
		{Name: "phase, beside a copy", Kind: pair.AtMost},
		{Name: "save, bytes", Kind: pair.Bytes, Ours: "save", Limit: 4 * bytes},
	}}
}
