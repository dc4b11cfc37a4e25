package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/plait-dev/plait/bench/internal/corpus"
	"github.com/plait-dev/plait/bench/internal/pair"
	"github.com/plait-dev/plait/dag"
	runs "github.com/plait-dev/plait/report"
	"github.com/plait-dev/plait/viz/page"
)

// reportNodes is the number of nodes of each conversation in a report.
const reportNodes = 30

// reports compares a report on many conversations with decoding their files. The report begins with the files and ends
// with its page.
func reports(conversations int) pair.Case {
	return pair.Case{Name: "report/" + short(conversations), Per: "conversation", Units: conversations, Rounds: 5, Variants: inFolder(func(dir string) ([]pair.Variant, error) {
		paths := make([]string, conversations)
		for i := range paths {
			text, _ := corpus.Saved(corpus.New(uint64(i)).Conversation(reportNodes))
			paths[i] = filepath.Join(dir, fmt.Sprint(i, ".json"))
			if err := os.WriteFile(paths[i], text, 0o644); err != nil {
				return nil, err
			}
		}

		return []pair.Variant{
			{Name: "report and its page", Close: func() error { return os.RemoveAll(dir) }, Run: repeat(func() error {
				// Texts is limited as in "plait report".
				o := &runs.Options{Texts: new(runs.Texts)}
				rows := make([]runs.Row, 0, len(paths))
				for _, path := range paths {
					d, err := dag.Load(path)
					if err != nil {
						return err
					}
					rows = append(rows, runs.Of(path, d, o))
				}
				return page.WriteReport(io.Discard, rows, nil)
			})},
			{Name: "goccy Unmarshal, from the files", Run: repeat(func() error {
				for _, path := range paths {
					if err := unmarshalFile(path); err != nil {
						return err
					}
				}
				return nil
			})},
		}, nil
	}), Goals: []pair.Goal{
		{Kind: pair.AtMost, Limit: 4},
		// All conversations within two seconds of processor time.
		{Name: "in 2 s", Kind: pair.Value, Limit: 2e9 / float64(conversations)},
	}}
}
