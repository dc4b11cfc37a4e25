package live

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

// TestStreamedTextStaysUntilItsMessageIsDrawn: between the end of a message and the drawing with its node, nothing would show it.
func TestStreamedTextStaysUntilItsMessageIsDrawn(t *testing.T) {
	d := start().User("Hi")
	said := d.Assistant("Hello")
	s := serve(t, d, nil)
	e := s.listen(t)
	e.until(isIdle)
	step := make(chan struct{})
	go func() {
		events := []executor.Event{
			executor.RunStart{DAG: d}, executor.TurnStart{Turn: 1}, executor.MessageStart{Turn: 1, Role: content.Assistant},
			executor.MessageDelta{Turn: 1, Event: api.Delta{Kind: api.DeltaText, Text: "Hello"}},
			executor.MessageEnd{Turn: 1, Node: said.Head()},
		}
		for range s.Watch(func(yield func(executor.Event, error) bool) {
			for _, event := range events {
				yield(event, nil)
			}
			<-step
			yield(executor.End{DAG: said}, nil)
		}) {
		}
	}()
	e.until(func(a activity) bool { return a.Text == "Hello" })
	patch, ok := e.next()
	require.True(t, ok)
	require.Equal(t, "patch", patch.name)
	e.take(patch.data)
	e.knows(said)
	forget, ok := e.next()
	require.True(t, ok)
	require.Equal(t, event{name: "activity", data: `{"begin":true}`}, forget)
	close(step)
	e.until(isIdle)
}

// TestARetryMakesWhatWasStreamedVoid: who comes then must not see it either.
func TestARetryMakesWhatWasStreamedVoid(t *testing.T) {
	s := serve(t, start().User("Hi"), nil)
	events := func(yield func(executor.Event, error) bool) {
		for _, event := range []executor.Event{
			executor.RunStart{DAG: s.DAG()}, executor.MessageStart{Turn: 1, Role: content.Assistant},
			executor.MessageDelta{Turn: 1, Event: api.Delta{Kind: api.DeltaText, Text: "Hel"}},
			executor.MessageDelta{Turn: 1, Event: api.Delta{Kind: api.DeltaThinking, Text: "Hm"}},
			executor.Retry{Turn: 1},
			executor.MessageDelta{Turn: 1, Event: api.Delta{Kind: api.DeltaText, Text: "Hey"}},
		} {
			if !yield(event, nil) {
				return
			}
		}
	}
	var last *ear
	for e := range s.Watch(events) {
		if d, ok := e.(executor.MessageDelta); ok && d.Event == (api.Delta{Kind: api.DeltaText, Text: "Hey"}) {
			last = s.listen(t)
			require.Equal(t, []string{`running, begin, text "Hey"`}, story(last.until(func(activity) bool { return true })))
		}
	}
	require.NotNil(t, last)
}

// TestASubAgentIsANoteOfItsCall: what happens inside a call is told in a word beside it.
func TestASubAgentIsANoteOfItsCall(t *testing.T) {
	s := serve(t, start().User("Hi"), nil)
	e := s.listen(t)
	e.until(isIdle)
	outer, inner := executor.Call{Name: "Research", Input: "{}"}, executor.Call{Name: "Leaf", Input: "{}"}
	for range s.Watch(func(yield func(executor.Event, error) bool) {
		for _, event := range []executor.Event{
			executor.RunStart{DAG: s.DAG()}, executor.TurnStart{Turn: 1},
			executor.ToolStart{Turn: 1, Call: outer, Ran: outer},
			executor.Child{Turn: 1, Path: []executor.Call{outer}, Event: executor.TurnStart{Turn: 1}},
			executor.Child{Turn: 1, Path: []executor.Call{outer}, Event: executor.ToolStart{Turn: 1, Ran: inner}},
			executor.Child{Turn: 1, Path: []executor.Call{outer, inner}, Event: executor.TurnStart{Turn: 2}},
			executor.Child{Turn: 1, Path: []executor.Call{outer, inner}, Event: executor.MessageDelta{}},
			executor.End{DAG: dag.New()},
		} {
			if !yield(event, nil) {
				return
			}
		}
	}) {
	}
	require.Equal(t, []string{
		"running", "turn 1", `tool 1.0 Research{} "" ended=false failed=false`,
		`tool 1.0 Research{} "turn 1" ended=false failed=false`,
		`tool 1.0 Research{} "calls Leaf" ended=false failed=false`,
		`tool 1.0 Research{} "Leaf › turn 2" ended=false failed=false`,
		"idle",
	}, cutBegin(story(e.until(isIdle))))
}

func cutBegin(lines []string) []string {
	lines[0] = "running"
	return lines
}
