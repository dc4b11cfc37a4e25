package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/report"
)

// chosen opens the conversations of readable rows again, one at a time. A report itself keeps none.
func (s *streams) chosen(rows []report.Row) iter.Seq2[report.Row, opened] {
	return func(yield func(report.Row, opened) bool) {
		for _, r := range rows {
			if r.Error != "" {
				continue
			}
			c := opened{name: r.Name}
			if r.Name == std {
				c.err = errors.New("standard input cannot be read again: name a file")
			} else {
				c.dag, c.err = s.load(r.Name)
				delete(s.databases.loaded, r.Name) // they may be many
			}

			if !yield(r, c) {
				return
			}
		}
	}
}

// example is a line of a data set. Messages and Tools have the form of a request to OpenAI's Chat Completions API.
// Command plait import reads this form too.
type example struct {
	Name     string            `json:"name"`
	Outcome  report.Outcome    `json:"outcome"`
	Failure  string            `json:"failure,omitempty"`
	Cause    string            `json:"cause,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	Messages json.RawMessage   `json:"messages"`
	Tools    json.RawMessage   `json:"tools,omitempty"`
}

// writeDataset writes a line for each conversation. A conversation without anything to send is left out with a note. If
// another one cannot be written, the rest is written nevertheless.
func (s *streams) writeDataset(rows []report.Row) error {
	e, err := endpointOf("openai-chat")
	if err != nil {
		return err
	}

	out := bufio.NewWriter(s.out)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	failed := false
	for r, c := range s.chosen(rows) {
		line, err := exampleOf(r, c, e)
		switch {
		case errors.Is(err, api.ErrNothing):
			s.say("%s is left out: it has no message", c.name)
			continue
		case err != nil:
			s.say("plait: %s: %s", c.name, plain(err))
			failed = true
			continue
		}

		if err := lines.Encode(line); err != nil {
			return err
		}
	}

	if err := out.Flush(); err != nil {
		return err
	}
	if failed {
		return &exitError{code: exitBad}
	}
	return nil
}

// exampleOf returns the line of a conversation. The caller has opened it again.
func exampleOf(r report.Row, c opened, e endpoint) (example, error) {
	if c.err != nil {
		return example{}, c.err
	}
	// A body needs a model, but the line does not contain it: the name from the help text is used.
	body, _, err := e.body(request(c.dag, e), endpointOptions{model: e.models, whole: true})
	if err != nil {
		return example{}, err
	}

	line := example{Name: r.Name, Outcome: r.Outcome, Failure: failureOf(r.Failure).Text, Cause: failureOf(r.Cause).Text, Labels: r.Labels}
	err = json.Unmarshal(body, &line)
	return line, err
}

// writeTests writes the conversations, and a Go test for replaying their tool calls, to a new folder. After an error it
// removes the folder: the command can be repeated.
func (s *streams) writeTests(rows []report.Row, folder string) error {
	// Only a new folder: nothing is overwritten.
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--tests: %s exists already", folder)
	}
	if err := s.writeTestsTo(rows, folder); err != nil {
		return errors.Join(err, os.RemoveAll(folder))
	}
	return nil
}

func (s *streams) writeTestsTo(rows []report.Row, folder string) error {
	data := filepath.Join(folder, "testdata")
	if err := os.MkdirAll(data, 0o755); err != nil {
		return err
	}

	written := 0
	for r, c := range s.chosen(rows) {
		if c.err != nil {
			return fmt.Errorf("%s: %w", c.name, c.err)
		}
		written++
		// Files in two folders may have the same base name: the number keeps them apart.
		name := fmt.Sprintf("%03d-%s.json", written, unsafeInName.ReplaceAllString(strings.TrimSuffix(filepath.Base(r.Name), ".json"), "_"))
		if err := withoutOtherRefs(c.dag).Save(filepath.Join(data, name)); err != nil {
			return err
		}
	}

	// Without a conversation the test would pass and show nothing.
	if written == 0 {
		return errors.New("--tests: there is no conversation to write")
	}
	return os.WriteFile(filepath.Join(folder, "replay_test.go"), []byte(replayTest), 0o644)
}

// unsafeInName matches the characters not allowed in the file name of a test.
var unsafeInName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// replayTest is the test written by writeTests.
const replayTest = `package replay

import (
	"path/filepath"
	"testing"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/replay"
)

// tools returns the tools to test. A declared tool that is missing here fails the test.
func tools() []dag.Tool {
	return []dag.Tool{}
}

// TestToolsReturnWhatTheyReturned executes the recorded tool calls again, without a model.
func TestToolsReturnWhatTheyReturned(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("there is no conversation in testdata", err)
	}

	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			recorded, err := dag.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			calls, err := replay.Tools(t.Context(), executor.Agent{}, recorded.Tools(tools()...), false, nil)
			if err != nil {
				t.Error(err)
			}
			for _, c := range calls {
				if !c.Same {
					t.Error(c)
				}
			}
		})
	}
}
`
