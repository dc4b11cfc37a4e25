package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/safetext"
)

// openCalls makes the calls that are open when a run begins wait for approval. They are in FILE, which may come from
// somebody else. A later call is in a response to a request of this process, and the flags decide about it.
//
// The calls that wait in FILE are the other ones that it names. Nobody believes that they are approved.
type openCalls struct {
	asked atomic.Bool // the run has sent a request, so every open call is in a response to this process
}

// openReason is the reason for the approval of a call in FILE.
const openReason = "the call was open in FILE before this run"

// hook returns the hook of one run. executed are the names of the tools that the command executes.
func (o *openCalls) hook(executed map[string]bool) executor.Hook {
	return executor.Hook{
		Observe: func(ctx context.Context, event executor.Event, _ error) context.Context {
			if _, ok := event.(executor.TurnStart); ok {
				o.asked.Store(true)
			}
			return ctx
		},
		Before: func(_ context.Context, call executor.Call) (executor.Decision, error) {
			if o.asked.Load() || !executed[call.Name] {
				return executor.Allow(), nil
			}
			return executor.AskApproval(openReason), nil
		},
	}
}

// undecided reports whether a pause holds calls of FILE that a person has to approve.
func (o *openCalls) undecided(d dag.DAG) bool { return !o.asked.Load() && asksApproval(d) }

// declined returns the reply for a call that the user declined. The model reads the text as an instruction.
func declined(p dag.Pending, instead string) executor.Reply {
	const text = "the user declined"
	if instead == "" {
		return executor.Declined(p, text)
	}
	return executor.Declined(p, text+": "+instead)
}

// askOpenCall asks about a call of FILE. No decision about a tool spares it the question.
func (s *screen) askOpenCall(ctx context.Context, c *console, p dag.Pending) (executor.Reply, error) {
	s.note("This call was already open in the conversation:")
	s.call(p.Call)
	answer, err := c.ask(ctx, "[y]es, [n]o, or what to do instead: ")
	if err != nil {
		return executor.Reply{}, err
	}

	switch strings.ToLower(answer) {
	case "y", "yes":
		return executor.Approved(p), nil
	case "n", "no":
		return declined(p, ""), nil
	}
	return declined(p, answer), nil
}

// askOpenCalls asks about each call of FILE that waits for approval. Without a terminal it refuses the run.
func (r *runner) askOpenCalls(ctx context.Context, name string, d dag.DAG) (replies []executor.Reply, err error) {
	asking := newConsole(r.streams, make(chan os.Signal, 1))
	if !asking.editing() {
		return nil, unapproved(name, d)
	}
	defer asking.close(r.streams)

	screen := newScreen(r.streams)
	for _, p := range d.Pending() {
		if !p.Approval {
			continue
		}
		reply, err := screen.askOpenCall(ctx, asking, p)
		if err != nil {
			return nil, fmt.Errorf("interrupted: nothing was executed, and %s is unchanged", name)
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

// unapproved returns the error about calls of FILE that cannot be asked about.
func unapproved(name string, d dag.DAG) error {
	var calls []string
	for _, p := range d.Pending() {
		if p.Approval {
			calls = append(calls, safetext.Line(p.Call.Name+" "+string(p.Call.Input), 70))
		}
	}
	const shown = 5
	text := strings.Join(calls[:min(len(calls), shown)], "\n  ")
	if more := len(calls) - shown; more > 0 {
		text += fmt.Sprintf("\n  and %d more", more)
	}
	return &exitError{exitUnapproved, fmt.Sprintf("%s has open calls, which need approval, and there is no terminal to ask at:\n  %s\n"+
		"nothing was executed: plait run --approve prints them, and plait resume takes the decisions", name, text)}
}
