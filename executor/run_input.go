package executor

import (
	"fmt"
	"slices"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/node"
)

// inputs is what is said to the model between its turns.
type inputs struct {
	same        repeats           // counts equal calls for Limits.Repeats
	nudge       []content.Message // the run's own message for the next request
	from        *Queue            // the queue of undelivered
	undelivered []queued          // messages taken from a queue, neither appended nor rejected yet
}

// checkInput passes the conversation's last message through the Input hooks, even if declarations follow it.
func (r *run) checkInput() error {
	// Prompts, tools, records and the start of a run may follow the message.
	last := r.d.Head()
	var after []*node.Node
	for last != nil && last.NumParents() == 1 && isDeclaration(last.Payload()) {
		after, last = append(after, last), last.Parent(0)
	}
	if last == nil {
		return nil
	}

	message, ok := last.Message()
	if !ok || message.Role != content.User || lineage.Has[content.ToolResult](message.Blocks) {
		return nil
	}

	m, err := r.runInputHooks(content.Message{Role: message.Role, Blocks: message.Blocks})
	if r.ctx.Err() != nil && err != nil {
		return errorOf(r.ctx) // the end of the context is no decision of a hook
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRejected, err)
	}
	if m.Blocks.Equal(message.Blocks) {
		return nil
	}

	// Nodes never change: the message and what follows it are appended again.
	message.Blocks = m.Blocks
	d := r.d.WithHeads(last.Parents()...).AppendMeta(message, last.Meta())
	for _, n := range slices.Backward(after) {
		d = d.AppendMeta(n.Payload(), n.Meta())
	}
	r.d = d
	return d.Err()
}

// isDeclaration reports whether a node with payload p may follow the last message: a prompt, tools, a record, or the
// start of a run that got no further.
func isDeclaration(p node.Payload) bool {
	switch p.(type) {
	case node.System, node.Tools, node.RunStart, node.Custom:
		return true
	}
	return false
}

// runInputHooks passes a user message through the Input hooks. Its error rejects the message.
func (r *run) runInputHooks(m content.Message) (content.Message, error) {
	for _, check := range r.hooks.input {
		changed, err := guard(r.ctx, &r.crew, check, m)
		if err != nil {
			return m, err
		}

		// Only the blocks of the hook's message count: the role stays.
		if m.Blocks = changed.Blocks; m.Blocks.Len() == 0 {
			return m, dag.ErrEmpty
		}
		if err := holdable(m.Blocks); err != nil {
			return m, fmt.Errorf("a hook's message is not a user message: %w", err)
		}
	}
	return m, nil
}

// accepted takes messages from a queue until the hooks accept one, or none is left. Each message taken is in r.undelivered
// until it is appended or rejected, so that an early end of the run puts it back in the queue.
func (r *run) accepted(q *Queue) ([]content.Message, error) {
	for {
		taken := q.take()
		r.from, r.undelivered = q, slices.Clone(taken)

		var input []content.Message
		for _, m := range taken {
			changed, err := r.runInputHooks(m.Message)
			if err == nil {
				input = append(input, changed)
				continue
			}
			if r.ctx.Err() != nil {
				return nil, err // the context ended, no hook rejected it: it goes back to the queue
			}

			// Messages rejected before this one were deleted too, so it follows the accepted ones.
			r.undelivered = slices.Delete(r.undelivered, len(input), len(input)+1)
			if !emit(r, Rejected{Message: m.Message, Err: err}) {
				return nil, errLeft
			}
		}

		if len(taken) == 0 || len(input) > 0 {
			return input, nil
		}
	}
}

// appendInput appends the input to the conversation.
func (r *run) appendInput(input []content.Message) error {
	for i, m := range input {
		if !emit(r, MessageStart{Turn: r.turn, Role: content.User}) {
			return errLeft
		}

		// The run's own message comes first. It is from no queue, and so not in undelivered.
		var meta node.Meta
		fromQueue := len(input)-i <= len(r.undelivered)
		if fromQueue {
			meta = r.undelivered[0].meta
		}
		next := r.d.AppendMeta(node.Message{Role: content.User, Blocks: m.Blocks}, meta)
		if next.Err() == nil && fromQueue {
			r.undelivered = r.undelivered[1:]
		}
		if err := r.append(next); err != nil {
			return err
		}
	}
	return nil
}

// append continues the run with d, whose head is a new message, and holds its MessageEnd.
func (r *run) append(d dag.DAG) error {
	if err := d.Err(); err != nil {
		return err
	}
	r.d = d
	if !emit(r, MessageEnd{Turn: r.turn, Node: d.Head()}) {
		return errLeft
	}
	return nil
}
