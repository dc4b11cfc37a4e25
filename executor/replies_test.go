package executor_test

import (
	"slices"
	"strconv"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// replySet is what is replied to calls, by their names: the provider's ID, or call_N for an empty or a repeated one. The name of a
// sub-agent's call has the names of the calls around it before its own, with slashes.
type replySet map[string]answer

// answer makes a reply to a call.
type answer func(dag.Pending) executor.Reply

func approved() answer { return executor.Approved }

func approvedWith(input content.JSON) answer {
	return func(p dag.Pending) executor.Reply { return executor.ApprovedWith(p, input) }
}

func declined(reason string) answer {
	return func(p dag.Pending) executor.Reply { return executor.Declined(p, reason) }
}

func returned(r executor.Result) answer {
	return func(p dag.Pending) executor.Reply { return executor.Returned(p, r) }
}

func failed(text string) answer {
	return func(p dag.Pending) executor.Reply { return executor.Failed(p, text) }
}

// callNames returns the name of every call in d, and of those inside its sub-agents.
func callNames(d dag.DAG) map[node.CallKey]string {
	names := map[node.CallKey]string{}
	addNames(names, d, "")
	return names
}

func addNames(names map[node.CallKey]string, d dag.DAG, before string) {
	for _, n := range d.Nodes() {
		if m, ok := n.Message(); ok && m.Role == content.Assistant {
			times := map[string]int{}
			for _, use := range m.Blocks.ToolUses() {
				times[use.ID]++
			}
			number := -1
			for i, b := range m.Blocks.All() {
				use, is := b.(content.ToolUse)
				if !is {
					continue
				}
				number++
				name := use.ID
				if name == "" || times[name] > 1 {
					// The made name must differ from the ID of every call, also of a later one.
					name = "call_" + strconv.Itoa(number)
					for n := 2; times[name] > 0; n++ {
						name = "call_" + strconv.Itoa(number) + "_" + strconv.Itoa(n)
					}
					times[name] = 1
				}
				names[node.CallKey{Message: n.ID(), Index: i}] = before + name
			}
		}
		if key, ok := n.Call(); ok && n.Children().Len() > 0 {
			addNames(names, dag.FromNode(n), names[key]+"/")
		}
	}
}

// nameOf returns the name of a call of d.
func nameOf(d dag.DAG, p dag.Pending) string { return callNames(d)[p.Key] }

// approvedAll approves every call of d that waits for approval.
func approvedAll(d dag.DAG) (replies []executor.Reply) {
	for _, p := range d.Pending() {
		if p.Approval {
			replies = append(replies, executor.Approved(p))
		}
	}
	return replies
}

// of returns the replies to the calls of d. A name that does not wait is replied to as to a call that does.
func (s replySet) of(d dag.DAG) []executor.Reply {
	if len(s) == 0 {
		return nil
	}
	names := callNames(d)
	keys := map[string]node.CallKey{}
	for key, name := range names {
		// A provider may use an ID again: the last call with it counts.
		if old, has := keys[name]; !has || old.Message.String() < key.Message.String() {
			keys[name] = key
		}
	}
	pending := map[node.CallKey]dag.Pending{}
	for _, p := range d.Pending() {
		pending[p.Key] = p
	}
	var order []string
	for name := range s {
		order = append(order, name)
	}
	slices.Sort(order)

	var replies []executor.Reply
	for _, name := range order {
		key, has := keys[name]
		if !has {
			key = node.CallKey{Message: node.ID{1}, Index: 0}
		}
		p, waits := pending[key]
		if !waits {
			p = dag.Pending{Key: key}
		}
		replies = append(replies, s[name](p))
	}
	return replies
}
