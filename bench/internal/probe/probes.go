package probe

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Probe is a thing that happens.
type Probe struct {
	Name string
	run  func(Subject) Outcome
}

const (
	paris = `{"city":"Paris"}`
	soon  = time.Minute
	next  = "And now?"
)

// All are the probes, in the order of the table.
var All = []Probe{
	{"one of three parallel tools fails", tool(three, func(_ context.Context, c City) (string, error) {
		if c.City == "Rome" {
			return "", errors.New("no such city")
		}
		return c.City, nil
	})},
	{"a tool panics", tool(one, func(context.Context, City) (string, error) { panic("boom") })},
	{"a tool ends its goroutine", tool(one, func(context.Context, City) (string, error) {
		runtime.Goexit()
		return "", nil
	})},
	{"a tool returns 64 MiB", large},
	{"a tool returns text that is no UTF-8", utf8Text},
	{"the model calls a tool that does not exist", tool(Answer{Calls: []Call{{"call_1", "nope", paris}}}, nil)},
	{"arguments are no JSON", refused(`{"city":"Par`)},
	{"a required argument is missing", refused(`{}`)},
	{"an argument is given twice", refused(`{"city":"Paris","city":"Rome"}`)},
	{"the schema of a tool refers to itself", recursive},
	{"two calls have the same ID", tool(Answer{Calls: []Call{{"a", "look", paris}, {"a", "look", `{"city":"Rome"}`}}}, nil)},
	{"two calls have no ID", tool(Answer{Calls: []Call{{"", "look", paris}, {"", "look", `{"city":"Rome"}`}}}, nil)},
	{"a later turn uses an ID again", reused},
	{"the history has a call without a result", orphan},
	{"the run is cancelled in a tool, and the user goes on", cancelled(func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})},
	{"a tool ignores that the run is cancelled, and the user goes on", cancelled(func(context.Context) error { select {} })},
	{"the model fails after a tool has run, and the user goes on", interrupted},
	{"10,000 calls in one response", many},
	{"each response is cut off in a call", cut},
	{"a saved block has an unknown type", unknown},
}

var (
	one   = calls(paris)
	three = calls(paris, `{"city":"Rome"}`, `{"city":"Oslo"}`)
)

// tool is a probe whose first response has calls. The run must continue, with a result for each of them.
func tool(a Answer, look func(context.Context, City) (string, error)) func(Subject) Outcome {
	return func(l Subject) Outcome {
		c := &Conversation{look: look, answer: first(a)}
		t := talk(l, c, "Go.", soon)
		if look == nil && a.Calls[0].Name == "look" {
			return judge(c, t, "both are executed, and sent with IDs of their own")
		}
		return judge(c, t, "error result")
	}
}

// refused is a probe with wrong arguments. The tool must not run with others.
func refused(args string) func(Subject) Outcome {
	return func(l Subject) Outcome {
		c := &Conversation{answer: first(calls(args))}
		o := judge(c, talk(l, c, "Go.", soon), "error result")
		if o.Good && len(c.looked) > 0 {
			return bad(fmt.Sprintf("the tool runs with %q", c.looked[0]))
		}
		return o
	}
}

func utf8Text(l Subject) Outcome {
	c := &Conversation{answer: first(one), look: func(context.Context, City) (string, error) { return "\xff\xfe18", nil }}
	return judge(c, talk(l, c, "Go.", soon), "sent as valid UTF-8")
}

func large(l Subject) Outcome {
	const size = 64 << 20
	c := &Conversation{answer: first(one), look: func(context.Context, City) (string, error) { return strings.Repeat("x", size), nil }}
	o := judge(c, talk(l, c, "Go.", soon), "")
	if !o.Good {
		return o
	}
	sent := 0
	for _, r := range c.results() {
		sent += len(r)
	}
	if sent >= size {
		return bad("all of it is sent")
	}
	return good(fmt.Sprintf("the model is sent %d kB, with a note", sent>>10))
}

func recursive(l Subject) Outcome {
	c := &Conversation{Recursive: true, answer: first(Answer{Calls: []Call{{"call_1", "grow", `{"children":[{"children":[]}]}`}}})}
	o := judge(c, talk(l, c, "Go.", soon), "the tool runs")
	if o.Good && !contains(c.results(), "grown") {
		return bad("the call is refused")
	}
	return o
}

func reused(l Subject) Outcome {
	c := &Conversation{answer: func(n int, _ []Message) Answer {
		if n < 2 {
			return one
		}
		return Answer{Text: "Done."}
	}}
	o := judge(c, talk(l, c, "Go.", soon), "sent with IDs of their own")
	if o.Good && len(c.looked) != 2 {
		return bad("the second call is not executed")
	}
	return o
}

func orphan(l Subject) Outcome {
	c := &Conversation{
		History: []Message{{Role: "user", Text: "Weather?"}, {Role: "assistant", Calls: one.Calls}},
		answer:  func(int, []Message) Answer { return Answer{Text: "Done."} },
	}
	t := talk(l, c, "Go on.", soon)
	switch {
	case t.ended != "":
		return bad(t.ended)
	case len(c.requests) == 0:
		return bad("the history is refused")
	}
	last := c.requests[len(c.requests)-1]
	if f := fault(last); f != "" {
		return bad("sent as it is")
	}
	if !slices.ContainsFunc(last, func(m Message) bool { return len(m.Calls) > 0 }) {
		return bad("the call is not sent")
	}
	return good("sent with a result that says so")
}

// cancelled is a probe whose run is cancelled in a tool. The next turn must know about it.
func cancelled(wait func(context.Context) error) func(Subject) Outcome {
	return func(l Subject) Outcome {
		c := &Conversation{answer: first(one), look: func(ctx context.Context, _ City) (string, error) { return "", wait(ctx) }}
		if t := talk(l, c, "Go.", 500*time.Millisecond); t.ended != "" {
			return bad(t.ended)
		}
		return goesOn(l, c, "the call is sent with a result that says so")
	}
}

func interrupted(l Subject) Outcome {
	c := &Conversation{answer: func(n int, request []Message) Answer {
		switch {
		case n == 0:
			return one
		case request[len(request)-1].Text == next:
			return Answer{Text: "Done."}
		}
		return Answer{Err: errors.New("the model fails")}
	}}
	if t := talk(l, c, "Go.", soon); t.ended != "" {
		return bad(t.ended)
	}
	return goesOn(l, c, "the result is kept")
}

// goesOn sends one more message of the user.
func goesOn(l Subject, c *Conversation, otherwise string) Outcome {
	before := len(c.requests)
	t := talk(l, c, next, soon)
	switch {
	case t.ended != "":
		return bad(t.ended)
	case len(c.requests) == before:
		return bad("the next turn is refused")
	}

	last := c.requests[len(c.requests)-1]
	if f := fault(last); f != "" {
		return bad(f)
	}
	if !slices.ContainsFunc(last, func(m Message) bool { return len(m.Results) > 0 }) {
		return bad("the next turn knows nothing about the call")
	}
	return good(otherwise)
}

func many(l Subject) Outcome {
	const number = 10_000
	a := calls(slices.Repeat([]string{paris}, number)...)
	c := &Conversation{answer: first(a), look: func(context.Context, City) (string, error) {
		time.Sleep(time.Millisecond) // so that calls are under way at the same time
		return "18", nil
	}}
	t := talk(l, c, "Go.", soon)
	if t.ended != "" {
		return bad("not done after a minute")
	}
	o := judge(c, t, "")
	if o.Good {
		o.Text = "executed, " + atOnce(c.most)
	}
	return o
}

// atOnce returns a text that is the same in each run.
func atOnce(n int) string {
	switch {
	case n == 1:
		return "one after the other"
	case n <= 16:
		return fmt.Sprintf("%d at once", n)
	}
	return "many at once"
}

func cut(l Subject) Outcome {
	const limit = 50
	a := calls(`{"city":"Par`)
	a.Cut = true
	c := &Conversation{answer: func(n int, _ []Message) Answer {
		if n < limit {
			return a
		}
		return Answer{Text: "Done."}
	}}
	t := talk(l, c, "Go.", soon)
	switch n := len(c.requests); {
	case t.ended != "":
		return bad(t.ended)
	case len(c.looked) > 0:
		return bad("the tool runs")
	case n > 3:
		return bad(fmt.Sprintf("asked again %d times", n-1))
	case n == 1:
		return good("the run ends")
	default:
		return good(fmt.Sprintf("the run ends after %d requests", n))
	}
}

func unknown(l Subject) Outcome {
	if l.Reload == nil {
		return bad(NotTried)
	}
	saved, err := l.Reload()
	switch {
	case err != nil:
		return bad("cannot be loaded")
	case !strings.Contains(saved, Unknown):
		return bad("lost without an error")
	}
	return good("kept, byte for byte")
}

// NotTried is the text of a probe that a library does not take part in.
const NotTried = "not tried"

// Unknown is the content of the block of an unknown type.
const Unknown = `"hologram":{"of":"Paris"}`
