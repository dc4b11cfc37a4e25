package progress

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
)

// run is the state of a run, built from its events.
type run struct {
	prices api.Prices
	began  time.Time
	turn   int
	doing  string    // the activity of the model while no tool runs
	heard  time.Time // the last sign of the model, or the beginning of the wait for it
	tools  []tool    // being executed, in call order
	used   int64     // tokens of completed turns
	now    int64     // tokens of the current turn's response
	cost   float64
	priced bool
	paused string // the text for a paused run
}

// tool is a call being executed.
type tool struct {
	index int
	name  string
	began time.Time
	note  string // its last update, or the activity of its sub-agent
}

// see processes an event. It returns the line to write for it in mode Lines, or "" for most events.
func (r *run) see(event executor.Event, err error) string {
	switch e := event.(type) {
	case executor.TurnStart:
		r.turn, r.doing, r.heard = e.Turn, "waiting for the model", time.Now()
		return "turn " + strconv.Itoa(e.Turn)

	case executor.MessageDelta:
		r.doing, r.heard = "answering", time.Now()
		if d, ok := e.Event.(api.Delta); ok && d.Kind == api.DeltaThinking {
			r.doing = "thinking"
		}
	case executor.Retry:
		r.heard = time.Now().Add(e.Wait) // the wait before the next attempt is no silence of the model
		r.doing = "retrying in " + e.Wait.Round(100*time.Millisecond).String()
		return fmt.Sprintf("turn %d: attempt %d failed, %s: %v", e.Turn, e.Attempt, r.doing, e.Err)
	case executor.MessageEnd:
		r.answered(e)

	case executor.ToolStart:
		r.tools = append(r.tools, tool{index: e.Call.Index, name: e.Ran.Name, began: time.Now()})
	case executor.ToolUpdate:
		r.note(e.Call.Index, e.Content.Text())
	case executor.Child:
		r.child(e)
	case executor.ToolEnd:
		return r.ended(e)

	case executor.TurnEnd:
		// The usage of the turn includes that of the response.
		r.used, r.now = r.used+e.Usage.Total()+e.ToolUsage.Total(), 0
		r.tools, r.doing = nil, ""
	case executor.Paused:
		r.paused = "paused: " + describe.Count(int64(len(e.Continuation.Calls)), "call") + " waiting"
	case executor.End:
		return r.end(e, err)
	}
	return ""
}

// answered adds the usage and the cost of the model's message.
func (r *run) answered(e executor.MessageEnd) {
	r.doing = ""
	if e.Node == nil {
		return
	}
	m, ok := e.Node.Message()
	if !ok || m.Role != content.Assistant {
		return
	}

	r.now = m.Answer.Usage.Total()
	if cost, known := r.prices.Cost(m.Answer.Model, m.Answer.Usage); known {
		r.cost, r.priced = r.cost+cost, true
	}
}

func (r *run) note(index int, text string) {
	for i := range r.tools {
		if r.tools[i].index == index {
			r.tools[i].note = excerpt(text)
		}
	}
}

// child records the activity of a call's sub-agent.
func (r *run) child(e executor.Child) {
	if len(e.Path) == 0 {
		return
	}

	switch inner := e.Event.(type) {
	case executor.TurnStart:
		r.note(e.Path[0].Index, "turn "+strconv.Itoa(inner.Turn))
	case executor.ToolStart:
		r.note(e.Path[0].Index, inner.Ran.Name)
	}
}

func (r *run) ended(e executor.ToolEnd) string {
	line := "turn " + strconv.Itoa(e.Turn) + ": " + excerpt(e.Execution.Tool)
	// A refused call was never started, so it has no time.
	for i, t := range r.tools {
		if t.index == e.Execution.Index {
			line += " " + short(time.Since(t.began))
			r.tools = append(r.tools[:i:i], r.tools[i+1:]...)
			break
		}
	}

	if e.Execution.IsError {
		outcome := cmp.Or(describe.State(e.Execution.State), "failed")
		return line + " " + outcome + ": " + excerpt(e.Execution.Result.Text())
	}
	return line
}

func (r *run) end(e executor.End, err error) string {
	// A run that did not begin has no stop reason.
	reason := string(e.Stop.Reason)
	switch {
	case reason == "" && err == nil:
		return ""
	case reason == "":
		reason = "failed"
	}

	parts := []string{cmp.Or(r.paused, "stop: "+excerpt(reason)), describe.Count(int64(e.Stop.Turns), "turn")}
	if total := e.Stop.Usage.Total() + e.Stop.ToolUsage.Total(); total > 0 {
		parts = append(parts, describe.Count(total, "token"))
	}
	parts = append(parts, r.money()...)
	return strings.Join(append(parts, short(time.Since(r.began))), " · ")
}

// shownSilence is the minimum silence of a model to show.
const shownSilence = 10 * time.Second

// line returns the state in one line, the most important first.
func (r *run) line(now time.Time) string {
	var parts []string
	if r.turn > 0 {
		parts = append(parts, "turn "+strconv.Itoa(r.turn))
	}
	parts = append(parts, short(now.Sub(r.began)))

	// Running tools replace the last activity of the model.
	var tools []string
	for _, t := range r.tools {
		text := excerpt(t.name) + " " + short(now.Sub(t.began))
		if t.note != "" {
			text += " (" + t.note + ")"
		}
		tools = append(tools, text)
	}

	switch {
	case len(tools) > 0:
		parts = append(parts, strings.Join(tools, ", "))
	case r.doing != "":
		parts = append(parts, r.doing)
		if silent := now.Sub(r.heard); silent >= shownSilence {
			parts[len(parts)-1] = "no response for " + short(silent)
		}
	}

	if total := r.used + r.now; total > 0 {
		parts = append(parts, describe.Count(total, "token"))
	}
	return strings.Join(append(parts, r.money()...), " · ")
}

func (r *run) money() []string {
	if !r.priced {
		return nil
	}
	return []string{fmt.Sprintf("cost %.4f", r.cost)}
}

// excerpt returns the beginning of the first line of s that is not blank.
func excerpt(s string) string { return safetext.Clip(strings.TrimSpace(s), 1, 40) }

// short formats a duration in whole seconds: "0s", "4s", "1m12s".
func short(d time.Duration) string { return d.Truncate(time.Second).String() }
