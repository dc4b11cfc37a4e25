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

// savedFile saves a conversation of so many nodes in a folder of its own. It returns the text, the folder and the path.
func savedFile(nodes int) (text []byte, dir, path string, err error) {
	text, _ = corpus.Saved(corpus.New(1).Conversation(nodes))
	if dir, err = os.MkdirTemp("", "plait-bench-"); err != nil {
		return nil, "", "", err
	}
	path = filepath.Join(dir, "conversation.json")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return nil, "", "", errors.Join(err, os.RemoveAll(dir))
	}
	return text, dir, path, nil
}

// inFolder returns a function for Case.Variants: build gets a new temporary folder. The Close of a variant removes the
// folder. If build fails, it is removed here.
func inFolder(build func(dir string) ([]pair.Variant, error)) func() ([]pair.Variant, error) {
	return func() ([]pair.Variant, error) {
		dir, err := os.MkdirTemp("", "plait-bench-")
		if err != nil {
			return nil, err
		}

		variants, err := build(dir)
		if err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		return variants, nil
	}
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

// load compares reading a conversation, all checks included, with one call of goccy/go-json for the whole document in
// memory.
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

// loadMemory compares the memory of a loaded conversation with the size of its file.
func loadMemory(nodes int) pair.Case {
	return pair.Case{Name: "memory/load/" + short(nodes), Unit: "B", Variants: func() ([]pair.Variant, error) {
		text, dir, _, err := savedFile(nodes)
		if err != nil {
			return nil, err
		}

		return []pair.Variant{
			{Name: "loaded", Close: func() error { return os.RemoveAll(dir) }, Run: held(func() (any, error) { return dag.Read(bytes.NewReader(text)) })},
			{Name: "the file", Run: func(s *pair.Sample) error { s.Set(pair.Cost{Value: float64(len(text))}); return nil }},
			{Name: "goccy Unmarshal", Run: held(func() (any, error) {
				var doc corpus.Document
				err := json.Unmarshal(text, &doc)
				return &doc, err
			})},
		}, nil
	}, Goals: []pair.Goal{
		{Number: 5, Kind: pair.AtMost, Beside: "the file", Limit: 1.6},
		{Number: 5, Name: "goccy", Kind: pair.AtMost, Beside: "goccy Unmarshal"},
	}}
}

// held returns a variant to measure the memory held by a value.
func held(build func() (any, error)) func(*pair.Sample) error {
	return func(s *pair.Sample) error {
		before := pair.Live()
		value, err := build()
		if err != nil {
			return err
		}

		s.Set(pair.Cost{Value: float64(pair.Live()) - float64(before)})
		runtime.KeepAlive(value) // or the collections in Live would free it
		return nil
	}
}

// steadyJournal is a journal that stays about as long as it was at first: from time to time, the appended nodes are cut
// off again.
type steadyJournal struct {
	*dag.Journal
	path string
	size int64 // of the file, at first
	room int   // the number of nodes appended until they are cut off
	left int   // the number of nodes that still fit
}

// openSteady makes a journal with d. It may become twice as long, or 100 nodes longer if that is more.
func openSteady(path string, d dag.DAG) (*steadyJournal, error) {
	j, err := dag.OpenJournal(path, &dag.JournalOptions{NoSync: true})
	if err != nil {
		return nil, err
	}
	if err := j.Append(d); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}

	room := max(100, len(d.Nodes()))
	return &steadyJournal{Journal: j, path: path, size: info.Size(), room: room, left: room}, nil
}

// cut removes the appended nodes.
func (j *steadyJournal) cut() error {
	if err := errors.Join(j.Close(), os.Truncate(j.path, j.size)); err != nil {
		return err
	}
	opened, err := dag.OpenJournal(j.path, &dag.JournalOptions{NoSync: true})
	if err != nil {
		return err
	}
	j.Journal, j.left = opened, j.room
	return nil
}

// appendAll makes s.N appends of one message. The clock is stopped while the nodes are made and cut off.
func (j *steadyJournal) appendAll(s *pair.Sample, text string) error {
	for done := 0; done < s.N; {
		s.Pause()
		if j.left == 0 {
			if err := j.cut(); err != nil {
				return err
			}
		}

		// Each node is a child of the one before. Make a few at a time: in a program too, a node is appended soon after
		// it is made, while it is in the processor's caches.
		steps := make([]dag.DAG, min(j.left, s.N-done, 100))
		d := j.DAG()
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
		done += len(steps)
		j.left -= len(steps)
	}
	return nil
}

// journalLines returns the bytes that Journal.Append writes for the last node of d, at this offset in the file.
func journalLines(d dag.DAG, at int64) []byte {
	line := append(d.Head().Append(nil), '\n')
	return fmt.Appendf(line, "{\"heads\":[%q],\"at\":%d}\n", d.Head().ID(), at)
}

// journal compares three ways to save a node of 2 KB: an append to a journal, write(2) of the same bytes, and writing
// the whole file again, as some programs do at each step.
func journal(after int, rewriteLimit float64) pair.Case {
	return pair.Case{Name: "journal/" + short(after), Per: "append", Full: after > 1000, Variants: inFolder(func(dir string) ([]pair.Variant, error) {
		d := corpus.New(1).Conversation(after)
		_, doc := corpus.Saved(d)
		text := corpus.New(2).TextOf(2000)

		j, err := openSteady(filepath.Join(dir, "journal"), d)
		if err != nil {
			return nil, err
		}
		plain, err := os.OpenFile(filepath.Join(dir, "plain"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, errors.Join(err, j.Close())
		}
		line := journalLines(d.User(text), j.size)

		cleanup := func() error { return errors.Join(j.Close(), plain.Close(), os.RemoveAll(dir)) }
		return []pair.Variant{
			{Name: "Journal.Append", Max: 4000, Close: cleanup, Run: func(s *pair.Sample) error { return j.appendAll(s, text) }},
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

					// Write and rename: a crash leaves the old file or the new one, never a part.
					name := filepath.Join(dir, "whole")
					if err := errors.Join(os.WriteFile(name+".tmp", data, 0o644), os.Rename(name+".tmp", name)); err != nil {
						return err
					}
				}
				return nil
			}},
		}, nil
	}), Goals: []pair.Goal{
		{Number: 3, Kind: pair.AtMost, Limit: 2},
		{Number: 3, Name: "whole file", Kind: pair.Faster, Beside: "whole file with goccy", Limit: rewriteLimit},
	}}
}

// journalSync compares a durable append with write(2) and fsync(2). It measures wall time, because both wait for the
// disk.
func journalSync() pair.Case {
	return pair.Case{Name: "journal/fsync", Per: "append", Wall: true, Full: true, Variants: inFolder(func(dir string) ([]pair.Variant, error) {
		text := strings.Repeat("x", 2000)
		j, err := dag.OpenJournal(filepath.Join(dir, "journal"), nil)
		if err != nil {
			return nil, err
		}
		plain, err := os.OpenFile(filepath.Join(dir, "plain"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, errors.Join(err, j.Close())
		}

		d := dag.New()
		line := journalLines(d.User(text), 1_000_000) // an offset with as many digits as most of the journal's
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
	}), Goals: []pair.Goal{{Number: 3, Kind: pair.AtMost, Limit: 1.1}}}
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

			// Only Journal.Append is compared. Its Close also closes the files of the other variants.
			v := all[0]
			v.Name = "after " + short(after)
			variants = append(variants, v)
		}
		return variants, nil
	}, Goals: []pair.Goal{{Number: 3, Kind: pair.AtMost, Limit: 1.15}}}
}
