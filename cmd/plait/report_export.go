package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"iter"

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
