// Package probe does to a library what happens to agents in production: tools that fail, calls that are wrong, models
// that break off. A library takes part with one function, [Subject.Converse]; the probes then judge the requests that
// its model gets.
//
// # Concurrency
//
// One Subject answers one probe at a time.
//
// # Errors
//
// An error of the library is part of an [Outcome].
package probe

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Message is a message in no library's form.
type Message struct {
	Role    string // "system", "user", "assistant" or "tool"
	Text    string
	Calls   []Call
	Results []Result
}

// Call is a call of a tool. Args is what the model wrote.
type Call struct{ ID, Name, Args string }

// Result is the result of the call with this ID.
type Result struct{ ID, Text string }

// Answer is a response of the model.
type Answer struct {
	Text  string
	Calls []Call
	// Cut reports that the response reached the limit of its tokens.
	Cut bool
	// Err is the error of the request in place of a response.
	Err error
}

// Subject is the library under test.
type Subject struct {
	// Converse runs an agent on the conversation and one more message of the user, with the tools look and grow, whose
	// arguments are a [City] and a [Tree], and with the library's default settings. It returns the last text. What the
	// library keeps for the next turn is in c.State.
	Converse func(ctx context.Context, c *Conversation, prompt string) (string, error)
	// Reload loads a saved conversation with a block of an unknown type in a message, and saves it again. It is nil for
	// a library that saves nothing.
	Reload func() (saved string, err error)
}

// City is the argument of look.
type City struct {
	City string `json:"city" jsonschema:"required" description:"The name of a city."`
}

// Tree is the argument of grow. Its schema refers to itself.
type Tree struct {
	Children []Tree `json:"children"`
}

// Conversation is a conversation with a fake model.
type Conversation struct {
	// History comes before the first prompt.
	History []Message
	// State belongs to the library.
	State any
	// Recursive reports that grow is among the tools.
	Recursive bool

	look   func(ctx context.Context, c City) (string, error)
	answer func(n int, request []Message) Answer // for request n, from 0

	mu       sync.Mutex
	requests [][]Message
	looked   []string // the cities
	atOnce   int      // calls of look under way
	most     int
}

// Look is the tool look.
func (c *Conversation) Look(ctx context.Context, city City) (string, error) {
	c.mu.Lock()
	c.looked = append(c.looked, city.City)
	c.atOnce++
	c.most = max(c.most, c.atOnce)
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.atOnce--
		c.mu.Unlock()
	}()
	if c.look == nil {
		return "18 °C in " + city.City, nil
	}
	return c.look(ctx, city)
}

// Grow is the tool grow.
func (c *Conversation) Grow(context.Context, Tree) (string, error) { return "grown", nil }

// Respond is the model. The library's part of it turns the request into messages and the answer into a response.
func (c *Conversation) Respond(request []Message) Answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.requests)
	c.requests = append(c.requests, request)
	return c.answer(n, request)
}

// Outcome is what a library does at a probe.
type Outcome struct {
	// Good reports that nothing is lost and every request is one that an API accepts.
	Good bool
	Text string
}

func good(text string) Outcome { return Outcome{true, text} }
func bad(text string) Outcome  { return Outcome{false, text} }

// turn is one turn of a conversation: its text, its error, and whether it came to an end.
type turn struct {
	text  string
	err   error
	ended string // "" for a turn that ended, or what happened instead
}

// patience is the time that a turn may take beyond the deadline of its context.
const patience = 5 * time.Second

// talk runs one turn in a goroutine of its own, which a tool may end.
func talk(l Subject, c *Conversation, prompt string, within time.Duration) turn {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	t := turn{ended: "the goroutine of the caller ends"}
	done := make(chan turn, 1)
	go func() {
		defer func() { done <- t }()
		t.text, t.err = l.Converse(ctx, c, prompt)
		t.ended = ""
	}()

	select {
	case t := <-done:
		return t
	case <-time.After(within + patience):
		return turn{ended: "the run does not end"}
	}
}

// judge returns the outcome of a turn that should have gone on after its calls.
func judge(c *Conversation, t turn, otherwise string) Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case t.ended != "":
		return bad(t.ended)
	case t.err != nil && len(c.looked) > 1:
		return bad("the run ends, finished results are lost")
	case t.err != nil:
		return bad("the run ends")
	case len(c.requests) < 2:
		return bad("the run ends without an error, and without results")
	}
	if f := fault(c.requests[len(c.requests)-1]); f != "" {
		return bad(f)
	}
	return good(otherwise)
}

// fault returns why an API refuses a request, or "".
func fault(request []Message) string {
	open, seen := map[string]bool{}, map[string]bool{}
	for _, m := range request {
		if len(open) > 0 && m.Role != "tool" && len(m.Results) == 0 {
			return "a call is sent without a result"
		}
		for _, r := range m.Results {
			if !open[r.ID] {
				return "a result is sent without its call"
			}
			delete(open, r.ID)
			if !utf8.ValidString(r.Text) {
				return "text that is no UTF-8 is sent"
			}
		}

		for _, call := range m.Calls {
			switch {
			case call.ID == "":
				return "a call without an ID is sent"
			case seen[call.ID]:
				return "two calls with one ID are sent"
			case !json.Valid([]byte(call.Args)):
				return "arguments that are no JSON are sent"
			}
			open[call.ID], seen[call.ID] = true, true
		}
	}
	if len(open) > 0 {
		return "a call is sent without a result"
	}
	return ""
}

// results returns the results in the last request.
func (c *Conversation) results() []string {
	var texts []string
	for _, m := range c.requests[len(c.requests)-1] {
		for _, r := range m.Results {
			texts = append(texts, r.Text)
		}
	}
	return texts
}

// calls returns an answer with calls of look.
func calls(args ...string) Answer {
	var a Answer
	for i, arg := range args {
		a.Calls = append(a.Calls, Call{fmt.Sprint("call_", i+1), "look", arg})
	}
	return a
}

// first answers the first request, and the others with a text.
func first(a Answer) func(int, []Message) Answer {
	return func(n int, _ []Message) Answer {
		if n == 0 {
			return a
		}
		return Answer{Text: "Done."}
	}
}

// Ask runs the probe with a name.
func Ask(l Subject, name string) (Outcome, error) {
	for _, p := range All {
		if p.Name == name {
			return p.run(l), nil
		}
	}
	return Outcome{}, fmt.Errorf("there is no probe %q", name)
}

func contains(texts []string, part string) bool {
	for _, t := range texts {
		if strings.Contains(t, part) {
			return true
		}
	}
	return false
}
