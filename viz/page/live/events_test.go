package live

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// TestEveryEventIsSentInWhole holds what a page is sent for each event of a run.
func TestEveryEventIsSentInWhole(t *testing.T) {
	s := New(talk(), nil)
	l := &listener{wake: make(chan struct{}, 1)}
	s.listeners[l], s.undrawn = true, false
	w := &watch{Server: s}
	started := regexp.MustCompile(`"started":"[^"]+"`)
	sent := func() string {
		var lines []string
		for _, event := range l.queue {
			lines = append(lines, strings.TrimSuffix(started.ReplaceAllString(string(event), `"started":"(now)"`), "\n\n"))
		}
		l.queue, l.size = nil, 0
		return strings.Join(lines, "\n")
	}
	line := func(data string) string { return "event: activity\ndata: " + data }
	see := func(event executor.Event, err error, want string) {
		t.Helper()
		w.update(event, err)
		require.Equal(t, want, sent(), "%T", event)
	}
	call := func(i int, name string, input content.JSON) executor.Call {
		return executor.Call{Index: i, Name: name, Input: input}
	}
	delta := func(kind api.DeltaKind, text string) executor.MessageDelta {
		return executor.MessageDelta{Event: api.Delta{Kind: kind, Text: text}}
	}

	see(executor.TurnStart{Turn: 1}, nil, line(`{"turn":1}`))
	see(executor.MessageStart{}, nil, line(`{"begin":true}`))
	see(delta(api.DeltaThinking, "Hm."), nil, line(`{"thinking":"Hm."}`))
	see(delta(api.DeltaText, "Hi <b>"), nil, line(`{"text":"Hi \u003cb\u003e"}`))
	see(delta(api.DeltaInput, "{}"), nil, "")
	see(executor.MessageDelta{Event: api.BlockEnd{}}, nil, "")
	require.Equal(t, "Hi <b>", s.now.text.String())
	see(executor.Retry{}, nil, line(`{"begin":true}`))
	require.Empty(t, s.now.text.String()+s.now.thinking.String(), "the next attempt begins anew")
	see(delta(api.DeltaText, "Hello."), nil, line(`{"text":"Hello."}`))
	s.undrawn = true
	see(executor.MessageEnd{Node: s.d.Head()}, nil, "")
	require.Equal(t, "Hello.", s.now.text.String(), "the text stays until the message is drawn")
	s.undrawn = false
	see(executor.MessageEnd{Node: s.d.Head()}, nil, line(`{"begin":true}`))

	see(executor.ToolStart{Turn: 1, Call: call(0, "asked", ""), Ran: call(0, "look", `{"at":1}`)}, nil,
		line(`{"tools":[{"id":"1.0","tool":"look","input":"{\"at\":1}","started":"(now)"}]}`))
	see(executor.ToolStart{Turn: 1, Ran: call(1, "long", content.JSON(strings.Repeat("x", maxNote+1)))}, nil,
		line(`{"tools":[{"id":"1.1","tool":"long","input":"`+strings.Repeat("x", maxNote)+`… (4097 bytes)","started":"(now)"}]}`))
	look := func(more string) string {
		return line(`{"tools":[{"id":"1.0","tool":"look","input":"{\"at\":1}","started":"(now)"` + more + `}]}`)
	}
	see(executor.ToolUpdate{Turn: 1, Call: call(0, "", ""), Content: content.Words("half")}, nil, look(`,"note":"half"`))
	see(executor.ToolUpdate{Turn: 2, Call: call(0, "", ""), Content: content.Words("of another turn")}, nil, "")
	path := []executor.Call{call(0, "look", ""), call(3, "inner", "")}
	see(executor.Child{Turn: 1, Path: path, Event: executor.TurnStart{Turn: 4}}, nil, look(`,"note":"inner › turn 4"`))
	see(executor.Child{Turn: 1, Path: path[:1], Event: executor.ToolStart{Call: call(9, "asked", ""), Ran: call(9, "search", "")}}, nil, look(`,"note":"calls search"`))
	see(executor.Child{Turn: 1, Path: path, Event: executor.MessageStart{}}, nil, "")
	see(executor.ToolEnd{Turn: 1, Execution: node.ToolExecution{Index: 0}}, nil, look(`,"note":"calls search","ended":true`))
	see(executor.ToolEnd{Turn: 1, Execution: node.ToolExecution{Index: 1, IsError: true}}, nil,
		line(`{"tools":[{"id":"1.1","tool":"long","input":"`+strings.Repeat("x", maxNote)+`… (4097 bytes)","started":"(now)","ended":true,"failed":true}]}`))
	see(executor.ToolStart{Turn: 1, Ran: call(2, "pay", "{}")}, nil, line(`{"tools":[{"id":"1.2","tool":"pay","input":"{}","started":"(now)"}]}`))
	see(executor.ToolEnd{Turn: 1, Execution: node.ToolExecution{Index: 2, IsError: true, State: node.ExecutionInDoubt}}, nil,
		line(`{"tools":[{"id":"1.2","tool":"pay","input":"{}","started":"(now)","ended":true,"failed":true,"state":"in doubt"}]}`))

	see(executor.TurnEnd{Usage: content.Usage{Input: 1, Output: 20, CacheRead: 3, CacheWrite: 4}, ToolUsage: content.Usage{Input: 100, Output: 1}}, nil, line(`{"tokens":{"input":108,"output":21}}`))
	see(executor.TurnEnd{Usage: content.Usage{Input: 1}}, nil, line(`{"tokens":{"input":109,"output":21}}`))
	require.Equal(t, activity{
		State: idle, Turn: 1, Begin: true, Tools: s.now.tools, Tokens: &tokens{109, 21}, Error: new(string),
		Paused: &[]pausedRun{}, Origin: &origin{}, CanRun: new(bool),
	}, s.all())
	see(executor.TurnStart{Turn: 2}, nil, line(`{"turn":2}`))
	require.Empty(t, s.now.tools)
	see(executor.Paused{Continuation: executor.Continuation{Reason: content.StopApproval}}, nil, "")
	see(executor.End{}, nil, line(`{"begin":true,"stop":"awaiting_approval"}`))
	see(executor.End{Stop: node.StopReason{Reason: content.StopError}}, errors.New("it broke"), line(`{"begin":true,"stop":"error","error":"it broke"}`))

	s.Report(errors.New("a notice"))
	require.Equal(t, line(`{"error":"it broke\na notice"}`), sent())
	s.Report(nil)
	require.Equal(t, line(`{"error":"it broke"}`), sent())
	s.watches, s.voice = []*watch{w}, w
	w.end()
	require.Equal(t, line(`{"state":"idle"}`), sent())
	require.Nil(t, s.voice)
	delete(s.listeners, l)
	require.NoError(t, s.Close())
}
