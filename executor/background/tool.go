package background

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/unwrap"
)

// background is a tool whose calls are answered "started". It has no Unwrap method: its call is not one of a sub-agent.
type background struct {
	executor.Tool
	m *manager
}

// Call implements executor.Tool. The work begins when the run has the result.
func (t background) Call(ctx context.Context, call executor.Call) (executor.Result, error) {
	r := t.m.runOf(ctx)
	if r == nil {
		return t.Tool.Call(ctx, call)
	}
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	for i := range r.begun {
		b := &r.begun[i]
		if b.Call != call.Key() {
			continue
		}
		b.ctx = ctx
		saved, err := details(b.ID)
		text := b.label() + " was started. Its result comes later, as a message."
		return executor.Result{Content: content.Words(text), Details: saved}, err
	}
	return t.Tool.Call(ctx, call) // a call inside another tool, for example
}

// Err implements the further method of executor.Tool.
func (t background) Err() error {
	if broken, ok := unwrap.As[interface{ Err() error }, executor.Tool](t.Tool); ok {
		return broken.Err()
	}
	return nil
}

// Effect implements the further method of executor.Tool.
func (t background) Effect() executor.Effect { return effectOf(t.Tool) }

// Mode implements the further method of executor.Tool: a call that is only answered holds up no other.
func (t background) Mode() executor.Mode { return executor.ModeParallel }

// Owner implements the further method of executor.Tool.
func (t background) Owner() any {
	if owned, ok := unwrap.As[interface{ Owner() any }, executor.Tool](t.Tool); ok {
		return owned.Owner()
	}
	return nil
}

// effectOf returns the effect of a tool, also of one that wraps another.
func effectOf(t executor.Tool) executor.Effect {
	if own, ok := unwrap.As[interface{ Effect() executor.Effect }, executor.Tool](t); ok {
		return own.Effect()
	}
	return executor.EffectUnknown
}

// The longest wait, and the one for which no time is given, in seconds.
const (
	longestWait = 3600
	usualWait   = 60
)

// waitTool returns the tool that waits for work.
func (m *manager) waitTool() executor.Tool {
	type input struct {
		ID      int `json:"id,omitempty" jsonschema:"the number of the work; the first that is done if absent"`
		Seconds int `json:"seconds,omitempty" jsonschema:"the longest wait; 60 if absent"`
	}
	tool := executor.Func("wait_for_work", "Waits until background work is done. Its result is the next message.",
		func(ctx context.Context, in input) (string, error) {
			jobs, err := m.find(ctx, in.ID)
			if err != nil {
				return "", err
			}
			seconds := min(in.Seconds, longestWait)
			if seconds <= 0 {
				seconds = usualWait
			}

			short, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
			defer cancel()
			if err := await(short, jobs, nil); ctx.Err() != nil {
				return "", err
			}
			for _, j := range jobs {
				if j.isDone() {
					return j.label() + " has ended. The next message says how.", nil
				}
			}
			return fmt.Sprintf("Still not done after %d seconds.", seconds), nil
		})
	return executor.WithTimeout(executor.WithEffect(tool, executor.EffectReadOnly), 0)
}

// stopTool returns the tool that stops work.
func (m *manager) stopTool() executor.Tool {
	type input struct {
		ID int `json:"id" jsonschema:"the number of the work"`
	}
	tool := executor.Func("stop_work", "Stops background work.", func(ctx context.Context, in input) (string, error) {
		if in.ID <= 0 {
			return "", errors.New("the number of the work is missing")
		}
		jobs, err := m.find(ctx, in.ID)
		if err != nil {
			return "", err
		}
		j := jobs[0]
		if j.stop(textStopped, m.grace); j.text != textStopped {
			return j.label() + " had ended before. The next message says how.", nil
		}
		return j.label() + " was stopped.", nil
	})
	return executor.WithEffect(tool, executor.EffectIdempotent)
}

// find returns the open work with that ID, or all of it for 0.
func (m *manager) find(ctx context.Context, id int) ([]*job, error) {
	r := m.runOf(ctx)
	if r == nil {
		return nil, errors.New("no background work is open")
	}
	open := m.openOf(r)
	var ids []string
	for i, j := range open {
		if j.ID == id {
			return open[i : i+1], nil
		}
		ids = append(ids, strconv.Itoa(j.ID))
	}
	switch {
	case len(open) == 0:
		return nil, errors.New("no background work is open")
	case id != 0:
		return nil, fmt.Errorf("there is no open work %d; open: %s", id, strings.Join(ids, ", "))
	}
	return open, nil
}

// await waits until one of the jobs is done or other is closed, or returns the error of ctx.
func await(ctx context.Context, jobs []*job, other <-chan struct{}) error {
	cases := []reflect.SelectCase{
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())},
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(other)},
	}
	for _, j := range jobs {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(j.done)})
	}
	if chosen, _, _ := reflect.Select(cases); chosen == 0 {
		return context.Cause(ctx)
	}
	return nil
}
