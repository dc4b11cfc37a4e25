package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"io"

	json "github.com/goccy/go-json"

	"github.com/plait-dev/plait/bench/internal/corpus"
	"github.com/plait-dev/plait/bench/internal/pair"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// encodeNode compares the first encoding of nodes with goccy/go-json on plain structs, and a later encoding with a copy
// of the line.
func encodeNode() pair.Case {
	const nodes = 1000
	return pair.Case{Name: "encode/node", Per: "node", Units: nodes, Variants: func() ([]pair.Variant, error) {
		first := corpus.New(1).Conversation(nodes)
		_, doc := corpus.Saved(first)

		// Saving was the first encoding of these nodes. They keep their lines from the second one on, which is here.
		again := first.Nodes()[:nodes]
		lines := make([][]byte, nodes)
		for i, n := range again {
			lines[i] = n.Append(nil)
		}

		// fresh runs encode with new nodes, never encoded before.
		fresh := func(encode func([]*node.Node)) func(*pair.Sample) error {
			return func(s *pair.Sample) error {
				for range s.N {
					s.Pause()
					list := corpus.New(1).Conversation(nodes).Nodes()[:nodes]
					s.Resume()
					encode(list)
				}
				return nil
			}
		}
		into := func(list []*node.Node) {
			var buffer []byte
			for _, n := range list {
				buffer = n.Append(buffer[:0])
			}
		}

		var buffer []byte
		return []pair.Variant{
			{Name: "into a new buffer", Max: 8, Run: fresh(func(list []*node.Node) {
				for _, n := range list {
					sink = n.Append(nil)
				}
			})},
			{Name: "goccy Marshal and SHA-256", Run: func(s *pair.Sample) error {
				for range s.N {
					for i := range doc.Nodes[:nodes] {
						text, err := json.MarshalWithOption(&doc.Nodes[i], json.DisableHTMLEscape())
						if err != nil {
							return err
						}
						sum = sha256.Sum256(text)
					}
				}
				return nil
			}},
			{Name: "into a kept buffer", Max: 8, Run: fresh(into)},
			{Name: "again", Run: func(s *pair.Sample) error {
				for range s.N {
					for _, n := range again {
						buffer = n.Append(buffer[:0])
					}
				}
				return nil
			}},
			{Name: "copy of the line", Run: func(s *pair.Sample) error {
				for range s.N {
					for _, line := range lines {
						buffer = append(buffer[:0], line...)
					}
				}
				return nil
			}},
		}, nil
	}, Goals: []pair.Goal{
		{Number: 1, Name: "first", Kind: pair.AtMost, Limit: 1.15},
		{Number: 1, Name: "first, kept buffer", Kind: pair.AtMost, Ours: "into a kept buffer", Limit: 1.15},
		{Number: 1, Name: "again", Kind: pair.More, Ours: "again", Beside: "copy of the line", Limit: 10},
		{Number: 1, Name: "again, allocs", Kind: pair.Allocs, Ours: "again"},
	}}
}

// snapshot compares writing a whole conversation with goccy's Encoder and plain structs, one on each line.
func snapshot(nodes int, limit float64) pair.Case {
	return pair.Case{Name: "save/" + short(nodes), Per: "node", Units: nodes, Full: nodes > 10_000, Variants: func() ([]pair.Variant, error) {
		// Saved writes this conversation once. Its nodes keep their lines from the next writing on, the warm-up.
		saved := corpus.New(1).Conversation(nodes)
		text, doc := corpus.Saved(saved)
		loaded, err := dag.Read(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}

		write := func(d dag.DAG) func(*pair.Sample) error {
			return func(s *pair.Sample) error {
				for range s.N {
					if err := d.Write(io.Discard); err != nil {
						return err
					}
				}
				return nil
			}
		}
		variants := []pair.Variant{
			{Name: "again", Run: write(saved)},
			{Name: "goccy Encoder", Run: func(s *pair.Sample) error {
				for range s.N {
					out := bufio.NewWriter(io.Discard)
					e := json.NewEncoder(out)
					e.SetEscapeHTML(false)
					for i := range doc.Nodes {
						if err := e.Encode(&doc.Nodes[i]); err != nil {
							return err
						}
					}
					if err := out.Flush(); err != nil {
						return err
					}
				}
				return nil
			}},
			{Name: "again, loaded", Run: write(loaded)},
			{Name: "first", Max: 2, Run: func(s *pair.Sample) error {
				for range s.N {
					// A new conversation each time: no node of it was ever written.
					s.Pause()
					d := corpus.New(1).Conversation(nodes)
					s.Resume()
					if err := d.Write(io.Discard); err != nil {
						return err
					}
				}
				return nil
			}},
		}
		return variants, nil
	}, Goals: []pair.Goal{
		{Number: 2, Name: "again", Kind: pair.Faster, Limit: limit},
		{Number: 2, Name: "again, loaded", Kind: pair.Faster, Ours: "again, loaded", Limit: limit},
		{Number: 2, Name: "first", Kind: pair.AtMost, Ours: "first"},
	}}
}
