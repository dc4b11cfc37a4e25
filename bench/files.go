package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	json "github.com/goccy/go-json"

	"github.com/plait-dev/plait/bench/internal/corpus"
	"github.com/plait-dev/plait/bench/internal/pair"
	"github.com/plait-dev/plait/dag"
)

// savedFile saves a conversation of that many nodes in a folder of its own, and returns its text, the folder and the path.
func savedFile(nodes int) (text []byte, dir, path string, err error) {
	text, _ = corpus.Saved(corpus.New(1).Conversation(nodes))
	if dir, err = os.MkdirTemp("", "plait-bench-"); err != nil {
		return nil, "", "", err
	}
	path = filepath.Join(dir, "conversation.json")
	return text, dir, path, os.WriteFile(path, text, 0o644)
}

// loading returns a variant that loads a conversation and keeps it.
func loading(load func() (dag.DAG, error)) func(*pair.Sample) error {
	return repeat(func() error {
		d, err := load()
		kept = d
		return err
	})
}

// unmarshalFile reads a conversation with goccy/go-json, without checks.
func unmarshalFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var doc corpus.Document
	return json.Unmarshal(data, &doc)
}

// load compares reading a conversation with every check to one call of goccy/go-json for the whole document in memory.
func load(nodes int) pair.Case {
	return pair.Case{Name: "load/" + short(nodes), Per: "node", Units: nodes, Full: nodes > 10_000, Variants: func() ([]pair.Variant, error) {
		text, dir, path, err := savedFile(nodes)
		if err != nil {
			return nil, err
		}

		variants := []pair.Variant{
			{Name: "Load", Run: loading(func() (dag.DAG, error) { return dag.Load(path) }), Close: func() error { return os.RemoveAll(dir) }},
			{Name: "goccy Unmarshal, in memory", Run: func(s *pair.Sample) error {
				for range s.N {
					var doc corpus.Document
					if err := json.Unmarshal(text, &doc); err != nil {
						return err
					}
				}
				return nil
			}},
			{Name: "goccy Unmarshal, from a file", Run: repeat(func() error { return unmarshalFile(path) })},
			{Name: "Read", Run: loading(func() (dag.DAG, error) { return dag.Read(bytes.NewReader(text)) })},
		}
		return variants, nil
	}, Goals: []pair.Goal{
		{Number: 4, Kind: pair.AtMost, Limit: 1.25},
		{Number: 4, Name: "from a file", Kind: pair.AtMost, Beside: "goccy Unmarshal, from a file"},
		{Number: 4, Name: "from memory", Kind: pair.AtMost, Ours: "Read"},
	}}
}

// lazy compares reading a conversation whose nodes are decoded when they are used with decoding all of it.
func lazy(nodes int) pair.Case {
	return pair.Case{Name: "lazy/" + short(nodes), Per: "node", Units: nodes, Full: nodes > 10_000, Variants: func() ([]pair.Variant, error) {
		_, dir, path, err := savedFile(nodes)
		if err != nil {
			return nil, err
		}

		variants := []pair.Variant{
			{Name: "Loader.Load, lazy", Run: loading(func() (dag.DAG, error) { return dag.Loader{Lazy: true}.Load(path) }), Close: func() error { return os.RemoveAll(dir) }},
			{Name: "goccy Unmarshal, from a file", Run: repeat(func() error { return unmarshalFile(path) })},
			{Name: "Load", Run: loading(func() (dag.DAG, error) { return dag.Load(path) })},
		}
		return variants, nil
	}, Goals: []pair.Goal{
		{Number: 5, Kind: pair.Faster, Limit: 4},
		{Number: 5, Name: "Load", Kind: pair.Faster, Beside: "Load"},
	}}
}

// loadMemory compares the memory of a loaded conversation with the size of its file.
func loadMemory(nodes int) pair.Case {
	return pair.Case{Name: "memory/load/" + short(nodes), Unit: "B", Variants: func() ([]pair.Variant, error) {
		text, dir, path, err := savedFile(nodes)
		if err != nil {
			return nil, err
		}

		return []pair.Variant{
			{Name: "loaded", Close: func() error { return os.RemoveAll(dir) }, Run: held(func() (any, error) { return dag.Read(bytes.NewReader(text)) })},
			{Name: "loaded, lazy", Run: held(func() (any, error) { return dag.Loader{Lazy: true}.Load(path) })},
			{Name: "the file", Run: func(s *pair.Sample) error { s.Set(pair.Cost{Value: float64(len(text))}); return nil }},
			{Name: "goccy Unmarshal", Run: held(func() (any, error) {
				var doc corpus.Document
				err := json.Unmarshal(text, &doc)
				return &doc, err
			})},
		}, nil
	}, Goals: []pair.Goal{
		{Number: 5, Kind: pair.AtMost, Beside: "the file", Limit: 1.6},
		{Number: 5, Name: "lazy", Kind: pair.AtMost, Ours: "loaded, lazy", Beside: "the file", Limit: 1.1},
		{Number: 5, Name: "goccy", Kind: pair.AtMost, Beside: "goccy Unmarshal"},
	}}
}

// held returns a variant that measures how much memory a value holds.
func held(build func() (any, error)) func(*pair.Sample) error {
	return func(s *pair.Sample) error {
		before := live()
		value, err := build()
		if err != nil {
			return err
		}
		s.Set(pair.Cost{Value: float64(live()) - float64(before)})
		runtime.KeepAlive(value)
		return nil
	}
}

// live returns the bytes on the heap that are reachable.
func live() uint64 {
	// The second collection frees what finalizers and weak pointers kept from the first.
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// journal compares appending a node of 2 KB to a journal with write(2) of the same bytes, and with what programs do
// that write the whole file at each step.
func journal(after int, rewriteLimit float64) pair.Case {
	return pair.Case{Name: "journal/" + short(after), Per: "append", Full: after > 1000, Variants: func() (_ []pair.Variant, err error) {
		dir, err := os.MkdirTemp("", "plait-bench-")
		if err != nil {
			return nil, err
		}
		d := corpus.New(1).Conversation(after)
		_, doc := corpus.Saved(d)
		text := corpus.New(2).TextOf(2000)

		j, err := dag.OpenJournal(filepath.Join(dir, "journal"), &dag.JournalOptions{NoSync: true})
		if err != nil {
			return nil, err
		}
		if err := j.Append(d); err != nil {
			return nil, err
		}
		plain, err := os.OpenFile(filepath.Join(dir, "plain"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, err
		}
		line := append(d.User(text).Head().Append(nil), '\n')
		line = append(line, fmt.Sprintf("{\"heads\":[%q]}\n", d.Head().ID())...)

		cleanup := func() error { return errors.Join(j.Close(), plain.Close(), os.RemoveAll(dir)) }
		return []pair.Variant{
			{Name: "Journal.Append", Max: 4000, Close: cleanup, Run: func(s *pair.Sample) error {
				// The nodes are made before the clock starts, each behind the one before.
				s.Pause()
				steps := make([]dag.DAG, s.N)
				for i := range steps {
					d = d.User(text)
					steps[i] = d
				}
				s.Resume()
				for _, step := range steps {
					if err := j.Append(step); err != nil {
						return err
					}
				}
				return nil
			}},
			{Name: "write(2)", Run: func(s *pair.Sample) error {
				for range s.N {
					if _, err := plain.Write(line); err != nil {
						return err
					}
				}
				return nil
			}},
			{Name: "whole file with goccy", Run: func(s *pair.Sample) error {
				for range s.N {
					data, err := json.MarshalWithOption(doc, json.DisableHTMLEscape())
					if err != nil {
						return err
					}
					name := filepath.Join(dir, "whole")
					if err := errors.Join(os.WriteFile(name+".tmp", data, 0o644), os.Rename(name+".tmp", name)); err != nil {
						return err
					}
				}
				return nil
			}},
		}, nil
	}, Goals: []pair.Goal{
		{Number: 3, Kind: pair.AtMost, Limit: 2},
		{Number: 3, Name: "whole file", Kind: pair.Faster, Beside: "whole file with goccy", Limit: rewriteLimit},
	}}
}

// journalSync compares a durable append with write(2) and fsync(2). Both wait for the disk: wall time counts.
func journalSync() pair.Case {
	return pair.Case{Name: "journal/fsync", Per: "append", Wall: true, Full: true, Variants: func() ([]pair.Variant, error) {
		dir, err := os.MkdirTemp("", "plait-bench-")
		if err != nil {
			return nil, err
		}
		text := strings.Repeat("x", 2000)
		j, err := dag.OpenJournal(filepath.Join(dir, "journal"), nil)
		if err != nil {
			return nil, err
		}
		plain, err := os.OpenFile(filepath.Join(dir, "plain"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, err
		}

		d := dag.New()
		line := append(d.User(text).Head().Append(nil), '\n')
		return []pair.Variant{
			{Name: "Journal.Append", Run: func(s *pair.Sample) error {
				for range s.N {
					d = d.User(text)
					if err := j.Append(d); err != nil {
						return err
					}
				}
				return nil
			}, Close: func() error { return errors.Join(j.Close(), plain.Close(), os.RemoveAll(dir)) }},
			{Name: "write(2) and fsync(2)", Run: func(s *pair.Sample) error {
				for range s.N {
					if _, err := plain.Write(line); err != nil {
						return err
					}
					if err := plain.Sync(); err != nil {
						return err
					}
				}
				return nil
			}},
		}, nil
	}, Goals: []pair.Goal{{Number: 3, Kind: pair.AtMost, Limit: 1.1}}}
}

// journalFlat compares an append to a long journal with one to a short journal.
func journalFlat() pair.Case {
	return pair.Case{Name: "journal/100k beside 10", Per: "append", Full: true, Variants: func() ([]pair.Variant, error) {
		var variants []pair.Variant
		for _, after := range []int{100_000, 10} {
			all, err := journal(after, 0).Variants()
			if err != nil {
				for _, v := range variants {
					err = errors.Join(err, v.Close())
				}
				return nil, err
			}

			v := all[0]
			v.Name = "after " + short(after)
			variants = append(variants, v)
		}
		return variants, nil
	}, Goals: []pair.Goal{{Number: 3, Kind: pair.AtMost, Limit: 1.15}}}
}
