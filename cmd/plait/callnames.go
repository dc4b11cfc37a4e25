package main

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// namedCall is a call that waits, with the name that people use for it.
type namedCall struct {
	dag.Pending
	// name is the provider's ID of the call, or one made from its index if that is empty or not unique. The name of a
	// sub-agent's call has those of the calls around it before its own, with slashes between them.
	name string
}

// pendingIn returns the calls that wait in d, with their names.
func pendingIn(d dag.DAG) []namedCall {
	names := map[node.CallKey]string{}
	addNames(names, d)
	var list []namedCall
	for _, p := range d.Pending() {
		var parts []string
		for _, key := range append(slices.Clone(p.Path), p.Key) {
			parts = append(parts, strings.ReplaceAll(names[key], "/", "%2F"))
		}
		list = append(list, namedCall{p, strings.Join(parts, "/")})
	}
	return list
}

// addNames adds the names of the calls in the open tool phases of d, and of those inside paused sub-agents.
func addNames(names map[node.CallKey]string, d dag.DAG) {
	for _, h := range d.Heads() {
		if key, ok := h.Call(); ok {
			if _, known := names[key]; !known {
				nameCalls(names, h.Parent(0))
			}
			addNames(names, dag.FromNode(h))
		}
	}
}

// nameCalls adds the names of the calls of a message.
func nameCalls(names map[node.CallKey]string, message *node.Node) {
	m, _ := message.Message()
	times := map[string]int{}
	for _, use := range m.Blocks.ToolUses() {
		times[use.ID]++
	}
	for i, b := range m.Blocks.All() {
		use, is := b.(content.ToolUse)
		if !is {
			continue
		}

		// A made name must differ from the ID of every call, also of a later one.
		name := use.ID
		if name == "" || times[name] > 1 {
			name = "call_" + strconv.Itoa(i)
			for n := 2; times[name] > 0; n++ {
				name = "call_" + strconv.Itoa(i) + "_" + strconv.Itoa(n)
			}
			times[name] = 1
		}
		names[node.CallKey{Message: message.ID(), Index: i}] = name
	}
}

// asksApproval reports whether a call in d waits for approval.
func asksApproval(d dag.DAG) bool {
	return slices.ContainsFunc(d.Pending(), func(p dag.Pending) bool { return p.Approval })
}

// repliesTo returns the replies of saved, by the names of the calls that wait in d, or by their keys. A name without
// such a call is left to the run, which refuses it.
func repliesTo(d dag.DAG, saved map[string]json.RawMessage) (replies []executor.Reply, wrong string, err error) {
	calls := map[string]dag.Pending{}
	for _, c := range pendingIn(d) {
		calls[c.name], calls[c.Key.String()] = c.Pending, c.Pending
	}

	// Sorted: of several wrong replies, the same one is reported each time.
	var names []string
	for name := range saved {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p, waits := calls[name]
		if !waits {
			return nil, name, executor.ErrUnknownCall
		}
		reply, err := executor.ReplyTo(p, saved[name])
		if err != nil {
			return nil, name, err
		}
		replies = append(replies, reply)
	}
	return replies, "", nil
}
