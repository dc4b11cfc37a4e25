// Command counted does one thing that users do, named by its argument. A test counts the functions of ours that it
// passes.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/coverage"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/viz"
)

func main() {
	if err := do(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// do prepares the work, and does it after the counters were cleared.
func do(what string) error {
	prepare := map[string]func() (func() error, error){"run": run, "save": save, "draw": draw, "resume": resume}[what]
	work, err := prepare()
	if err != nil {
		return err
	}
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	return work()
}

func agent(hooks ...executor.Hook) executor.Agent {
	tool := executor.NewTool(content.Tool{Name: "look", Schema: `{"type":"object"}`},
		func(context.Context, executor.Call) (executor.Result, error) {
			return executor.Result{Content: content.Words("a result")}, nil
		})
	model := apitest.NewScript(apitest.Call(apitest.Use("look", nil), apitest.Use("look", nil)), apitest.Say("Done."))
	return executor.Agent{Provider: model, Tools: []dag.Tool{tool}, Hooks: hooks}
}

// run is a streamed run with two tool calls.
func run() (func() error, error) {
	a, d := agent(), dag.New().User("Go.")
	return func() error {
		for _, err := range a.Stream(context.Background(), d) {
			if err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// save appends one message to a conversation in a journal.
func save() (func() error, error) {
	folder, err := os.MkdirTemp("", "counted-")
	if err != nil {
		return nil, err
	}
	journal, err := dag.OpenJournal(filepath.Join(folder, "talk.jsonl"), nil)
	if err != nil {
		return nil, err
	}
	d := dag.New().User("Hello.")
	if err := journal.Append(d); err != nil {
		return nil, err
	}
	return func() error {
		defer os.RemoveAll(folder)
		return errors.Join(journal.Append(d.Assistant("Hi.")), journal.Close())
	}, nil
}

// draw loads a conversation with a tool phase, and draws it as a flowchart.
func draw() (func() error, error) {
	d, err := agent().Run(context.Background(), dag.New().User("Go."))
	var saved bytes.Buffer
	if err := errors.Join(err, d.Write(&saved)); err != nil {
		return nil, err
	}
	return func() error {
		loaded, err := dag.Read(&saved)
		if err != nil {
			return err
		}
		return viz.Mermaid(io.Discard, loaded, nil)
	}, nil
}

// resume loads a conversation with two calls that wait for approval, and resumes it.
func resume() (func() error, error) {
	a := agent(executor.RequireApproval())
	d, err := a.Run(context.Background(), dag.New().User("Go."))
	if !errors.Is(err, executor.ErrPaused) {
		return nil, err
	}
	var saved bytes.Buffer
	if err := d.Write(&saved); err != nil {
		return nil, err
	}
	return func() error {
		loaded, err := dag.Read(&saved)
		if err != nil {
			return err
		}
		var replies []executor.Reply
		for _, p := range loaded.Pending() {
			replies = append(replies, executor.Approved(p))
		}
		_, err = a.Resume(context.Background(), loaded, replies...)
		return err
	}, nil
}
