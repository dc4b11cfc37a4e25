package fake

import (
	"maps"
	"slices"
	"strings"
)

const anthropicPrefill = "This model does not support assistant message prefill. The conversation must end with a user message."

// anthropicTurn holds the blocks of one role up to the next message of the other: the API joins messages of one role in
// a row.
type anthropicTurn struct {
	role   string
	blocks []anthropicRequestBlock
}

func (t anthropicTurn) of(kind string) []anthropicRequestBlock {
	var found []anthropicRequestBlock
	for _, b := range t.blocks {
		if b.kind == kind {
			found = append(found, b)
		}
	}
	return found
}

// conversation checks the relations between blocks. Each block is valid by itself.
func (c *anthropicCheck) conversation() {
	// The API joins messages of one role in a row.
	var turns []anthropicTurn
	for _, b := range c.blocks {
		if n := len(turns); n == 0 || turns[n-1].role != b.role {
			turns = append(turns, anthropicTurn{role: b.role})
		}
		t := &turns[len(turns)-1]
		t.blocks = append(t.blocks, b)
	}

	c.uniqueIDs()

	open := map[string]anthropicRequestBlock{}
	for i, t := range turns {
		last := i == len(turns)-1
		if t.role == "assistant" {
			c.order(t)
			var next anthropicTurn
			if !last {
				next = turns[i+1]
				c.answered(t, next)
			}
			c.serverTools(t, next, open)
			continue
		}

		var before anthropicTurn
		if i > 0 {
			before = turns[i-1]
		}
		c.expected(before, t)
	}

	c.end(turns[len(turns)-1], open)
	c.pending(open)

	// With adaptive thinking, a loop need not begin with thinking: one without was recorded, and accepted.
	if c.thinking == "enabled" {
		c.toolLoop(turns)
	}
}

func (c *anthropicCheck) uniqueIDs() {
	// A recorded request with an ID used again in a later turn was accepted, others were refused. The strictest counts.
	seen := map[string]bool{}
	for _, b := range c.blocks {
		if !strings.HasSuffix(b.kind, "tool_use") {
			continue
		}
		if seen[b.id] {
			c.fail("messages.%d.content.%d: `tool_use` ids must be unique", b.message, b.block)
		}
		seen[b.id] = true
	}
}

// order checks that calls come last, and that no message ends with thinking.
func (c *anthropicCheck) order(t anthropicTurn) {
	// Newer models refuse any other block after a call.
	called := false
	for i, b := range t.blocks {
		if called && b.kind != "tool_use" {
			c.fail(anthropicPrefill) // the API's own message for this case
		}
		called = called || b.kind == "tool_use"
		ends := i == len(t.blocks)-1 || t.blocks[i+1].message != b.message
		if ends && strings.HasSuffix(b.kind, "thinking") {
			c.fail("messages.%d: The final block in an assistant message cannot be `thinking`.", b.message)
		}
	}
}

// answered checks that next begins with the results of t's calls.
func (c *anthropicCheck) answered(t, next anthropicTurn) {
	// Results after another block do not count: the API wants them first.
	given := map[string]bool{}
	for _, b := range next.blocks {
		if b.kind != "tool_result" {
			break
		}
		given[b.id] = true
	}

	// The error lists all calls without a result, at the message of the first.
	var missing []string
	at := 0
	for _, call := range t.of("tool_use") {
		if !given[call.id] {
			if len(missing) == 0 {
				at = call.message
			}
			missing = append(missing, call.id)
		}
	}

	if len(missing) > 0 {
		c.fail("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block "+
			"must have a corresponding `tool_result` block in the next message.", at, strings.Join(missing, ", "))
	}
}

// expected checks that every result of t belongs to a call of the turn before, and that no call has two.
func (c *anthropicCheck) expected(before, t anthropicTurn) {
	calls := map[string]bool{}
	for _, call := range before.of("tool_use") {
		calls[call.id] = true
	}

	// Results count here wherever they are: answered checks that they come first.
	given := map[string]bool{}
	for _, b := range t.of("tool_result") {
		if !calls[b.id] {
			c.fail("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must "+
				"have a corresponding `tool_use` block in the previous message.", b.message, b.block, b.id)
		}

		if given[b.id] {
			c.fail("messages.%d.content.%d: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s",
				b.message, b.block, b.id)
		}
		given[b.id] = true
	}
}

// serverTools checks that each call of a server tool has its result before the turn ends. A turn is unfinished at the
// end of the conversation, and after tool calls of a program: a server tool may wait for their results, and its own
// result then follows in a later message (github.com/UKGovernmentBEIS/inspect_ai, pull request 4603). A message with
// more than these results ends it (platform.claude.com, "Handle tool calls"). Next is the user's turn after t.
func (c *anthropicCheck) serverTools(t, next anthropicTurn, open map[string]anthropicRequestBlock) {
	for _, b := range t.blocks {
		switch {
		case b.kind == "server_tool_use", b.kind == "mcp_tool_use":
			open[b.id] = b
			c.called[b.id] = true
		case isServerResult(b.kind):
			if _, ok := open[b.id]; !ok {
				c.fail("messages.%d.content.%d: unexpected `tool_use_id` found in `%s` blocks: %s. Each `%s` block must have a "+
					"corresponding `server_tool_use` block before it.", b.message, b.block, b.kind, b.id, b.kind)
			}
			delete(open, b.id)
		}

		// A caller has the ID of a call (ServerToolCallerParam of the SDK). What the API does with another one was not
		// observed, so none is accepted.
		if b.caller != "" && !c.called[b.caller] {
			c.fail("messages.%d.content.%d: the caller %s is no call of a server tool before it", b.message, b.block, b.caller)
		}
	}

	unfinished := len(t.of("tool_use")) > 0 && len(next.of("tool_result")) == len(next.blocks)
	if len(next.blocks) == 0 || unfinished {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(open)) {
		b := open[id]
		c.fail("messages.%d: `%s` tool use with id `%s` was found without a corresponding `%s_tool_result` block",
			b.message, b.name, b.id, b.name)
	}
}

// pending checks that a request with a waiting call of code execution names its container, if the code made calls
// itself (github.com/anthropics/anthropic-sdk-python, issue 1801; anthropic-sdk-typescript, issue 1114).
func (c *anthropicCheck) pending(open map[string]anthropicRequestBlock) {
	for _, b := range c.blocks {
		if _, waits := open[b.caller]; waits && !c.container {
			c.fail("container_id is required when there are pending tool uses generated by code execution with tools.")
		}
	}
}

// end checks the last turn. It must be the user's, or an assistant's waiting for a server tool.
func (c *anthropicCheck) end(t anthropicTurn, open map[string]anthropicRequestBlock) {
	if t.role == "user" {
		return
	}

	// Older models accept a last message of the assistant and continue it. The strictest counts. A response may pause
	// after a compaction (BetaStopReasonCompaction of the SDK), and continues from it.
	b := t.blocks[len(t.blocks)-1]
	if _, waits := open[b.id]; !waits && b.kind != "compaction" || len(t.of("tool_use")) > 0 {
		c.fail(anthropicPrefill)
	}
}

// toolLoop checks that an open tool loop begins with thinking. A loop begins after the user's last message without
// results. An assistant's turn after text beside results begins anew too.
func (c *anthropicCheck) toolLoop(turns []anthropicTurn) {
	last := len(turns) - 1
	if last < 1 || turns[last].role != "user" || len(turns[last].of("tool_result")) == 0 {
		return
	}

	begun := false // an assistant's turn after text beside results was found

	// Walk back over the assistant's turns of the open loop: roles alternate, so these are every second turn.
	for i := last - 1; i >= 0; i -= 2 {
		first := i == 0 || len(turns[i-1].of("tool_result")) == 0
		beside := i > 0 && len(turns[i-1].of("tool_result")) < len(turns[i-1].blocks)
		if first || beside && !begun {
			begun = true
			c.beginsThinking(turns[i].blocks[0])
		}
		if first {
			return
		}
	}
}

func (c *anthropicCheck) beginsThinking(b anthropicRequestBlock) {
	if strings.HasSuffix(b.kind, "thinking") {
		return
	}
	c.fail("messages.%d.content.%d.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a "+
		"final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` "+
		"blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`.",
		b.message, b.block, b.kind)
}
