package executor

import (
	"errors"
	"slices"
	"strconv"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/node"
)

// Reasons for refusing paused sub-agents in a continuation.
var (
	errPath   = errors.New("no sub-agent before has this path")
	errNoPath = errors.New("it leads to no sub-agent of the continuation")
)

// pathKey returns a key for the indexes of the calls in a path.
func pathKey(path []Call) string {
	var key []byte
	for _, call := range path {
		key = append(strconv.AppendInt(key, int64(call.Index), 10), '/')
	}
	return string(key)
}

// pathsOf returns the paths of the agents, by their keys.
func pathsOf(agents []PausedAgent) map[string][]Call {
	paths := make(map[string][]Call, len(agents))
	for _, a := range agents {
		paths[pathKey(a.Path)] = a.Path
	}
	return paths
}

// checkAgents checks each paused sub-agent, its path, and that a call below it is pending.
func (c Continuation) checkAgents() error {
	waits := c.above(func(Pending) bool { return true })
	paths := map[string][]Call{}
	for i, a := range c.Agents {
		path := "agents/" + strconv.Itoa(i)
		err := first(checkID(path+"/run_id", a.Run), checkID(path+"/continuation_id", a.ID),
			checkUTF8(path+"/parent_continuation_id", a.Parent), checkTotals(path+"/totals", a.Totals),
			checkCount(path+"/inner_turns", a.InnerTurns), checkCount(path+"/inner_calls", a.InnerCalls))
		if err != nil {
			return err
		}

		// An agent is listed after the agents on its path, so each beginning of the path is known.
		last := len(a.Path) - 1
		switch key := pathKey(a.Path); {
		case last < 0:
			return &CodecError{Field: path + "/path", Err: jsonx.ErrAbsent}
		case a.Path[last].Index < 0:
			return &CodecError{Field: path + "/path", Err: errNegative}
		case last > 0 && !slices.Equal(paths[pathKey(a.Path[:last])], a.Path[:last]):
			return &CodecError{Field: path + "/path", Err: errPath}
		case paths[key] != nil:
			return wrong(path+"/path", "another sub-agent has it")
		case !waits[key]:
			return wrong(path, "no call of the sub-agent waits")
		case a.Message == node.ID{}:
			return &CodecError{Field: path + "/message_id", Err: jsonx.ErrAbsent}
		case !a.Path[last].Input.IsObject():
			return &CodecError{Field: path + "/arguments", Err: jsonx.ErrNotObject}
		default:
			paths[key] = a.Path
		}
		if err := first(checkUTF8(path+"/name", a.Path[last].Name), checkUTF8(path+"/call_id", a.Path[last].ID)); err != nil {
			return err
		}
	}
	return nil
}

// checkPending checks each call, the order of the calls of each message, and that the calls agree with c.Reason. The
// agents must be valid.
func (c Continuation) checkPending() error {
	// If one call of a message asks for approval, none of its calls was executed, so all of them may be pending.
	paths := pathsOf(c.Agents)
	asks, last := map[string]bool{}, map[string]int{}
	for _, p := range c.Pending {
		key := pathKey(p.Path)
		asks[key], last[key] = asks[key] || p.Approval, -1
	}

	asked, seen := false, make(map[string]bool, len(c.Pending))
	for i, p := range c.Pending {
		path, key := "pending/"+strconv.Itoa(i)+"/", pathKey(p.Path)
		if err := p.check(path); err != nil {
			return err
		}
		switch {
		case len(p.Path) > 0 && !slices.Equal(paths[key], p.Path):
			return &CodecError{Field: path + "path", Err: errNoPath}
		case p.Call.Index <= last[key]:
			return wrong(path+"index", "%d does not come after %d: calls stand in their order, each once",
				p.Call.Index, last[key])
		case paths[pathKey(append(slices.Clone(p.Path), p.Call))] != nil:
			return wrong(path+"index", "a sub-agent of call %d waits", p.Call.Index)
		case seen[p.ID]:
			return wrong(path+"tool_call_id", "another call has it")
		case c.Reason == content.StopResults && p.Approval, !asks[key] && !p.Deferred:
			return wrong(path+"deferred", "the run waits for results, and not for that of this call")
		}
		asked, last[key], seen[p.ID] = asked || p.Approval, p.Call.Index, true
	}

	// The reason and the calls must agree, or no replies would fit.
	if c.Reason == content.StopApproval && !asked {
		return wrong("pending", "the run waits for approval, and no call asks for it")
	}
	for i, a := range c.Agents {
		if asks[pathKey(a.Path[:len(a.Path)-1])] {
			return wrong("agents/"+strconv.Itoa(i), "a call beside it waits for approval, so it was not executed")
		}
	}
	return nil
}

// appendAgents appends the paused sub-agents, if there are any.
func appendAgents(dst []byte, agents []PausedAgent) []byte {
	if len(agents) == 0 {
		return dst
	}
	dst = append(write.Name(dst, "agents"), '[')
	for _, a := range agents {
		call := a.Path[len(a.Path)-1]
		dst = appendPath(append(write.Comma(dst), '{'), a.Path)
		dst = write.String(write.OptString(dst, "call_id", call.ID), "name", call.Name)
		dst = write.OptString(write.JSON(dst, "arguments", call.Input), "run_id", a.Run)
		dst = write.OptString(write.OptString(dst, "continuation_id", a.ID), "parent_continuation_id", a.Parent)
		dst = appendTotals(write.OptString(dst, "message_id", a.Message.String()), a.Totals)
		dst = append(appendInner(dst, a.InnerTurns, a.InnerCalls), '}')
	}
	return append(dst, ']')
}

// agents reads the paused sub-agents; nil if there are none.
func (o savedObject) agents() []PausedAgent {
	if !o.Has("agents") {
		return nil
	}

	// The empty path is the run itself: agents of the run are below it.
	var agents []PausedAgent
	paths := map[string][]Call{"": nil}
	for each := range o.Objects("agents") {
		in := savedObject{each}
		a := PausedAgent{
			Run: in.Text("run_id"), ID: in.Text("continuation_id"), Parent: in.OptText("parent_continuation_id", ""),
			Message: in.node("message_id"), Totals: savedObject{in.Object("totals")}.totals(content.StopResults),
		}
		a.InnerTurns, a.InnerCalls = in.inner()

		// The path is saved as indexes. Its calls were read with the agents before.
		indexes := in.Ints("path")
		if len(indexes) == 0 {
			in.Fail("path", jsonx.ErrAbsent)
			break
		}
		last := len(indexes) - 1
		before, known := paths[pathKey(callsAt(indexes[:last]))]
		if !known {
			in.Fail("path", errPath)
			break
		}
		call := Call{Index: indexes[last], Name: in.Text("name"), ID: in.OptText("call_id", "")}
		call.Input = in.arguments("arguments", true)
		a.Path = append(slices.Clone(before), call)
		paths[pathKey(a.Path)] = a.Path
		agents = append(agents, a)
	}
	return agents
}

// pathOf reads the path of a pending call; nil for a call of the run itself.
func (o savedObject) pathOf(paths map[string][]Call) []Call {
	if !o.Has("path") {
		return nil
	}
	path, known := paths[pathKey(callsAt(o.Ints("path")))]
	if !known {
		o.Fail("path", errNoPath)
	}
	return path
}

// callsAt returns calls with these indexes.
func callsAt(indexes []int) []Call {
	calls := make([]Call, len(indexes))
	for i, index := range indexes {
		calls[i].Index = index
	}
	return calls
}
