package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/node"
)

// Compaction keeps what a model is sent within a budget. Where a conversation takes more, its middle is replaced by
// what a [Policy] makes of it: one Compaction node, behind which everything stays in the graph. What was said first, up
// to the first answer, and the last tokens stay as they are. A call is never parted from its results.
//
// From there on the conversation begins the same at each turn, so that a prompt cache holds until the next compaction.
type Compaction struct {
	// Budget is how many tokens the messages may take. Required.
	Budget int
	// Keep is how many of the last tokens stay, at least. Defaults to half of Budget.
	Keep int
	// Count returns how many tokens messages take. It gets a few messages at a time, mostly those that are
	// new, and its answers are added up. Defaults to [api.EstimateTokens].
	Count func(messages []content.Message) int
	// Policy returns what replaces the middle. Defaults to [DropMiddle].
	Policy Policy

	counter any // the key under which a conversation remembers the results of Count; nil remembers none
}

// Policy returns the content of the message that replaces messages. They begin and end between turns, so that every
// call among them has its result. An error leaves the conversation as it is.
type Policy func(ctx context.Context, messages []content.Message) (content.Blocks, error)

// DropMiddle replaces messages by a note of how many were left out.
func DropMiddle() Policy {
	return func(_ context.Context, messages []content.Message) (content.Blocks, error) {
		return content.Words(fmt.Sprintf("[%d earlier messages were left out here.]", len(messages))), nil
	}
}

// TruncateOutputs replaces messages by their text, with each tool result cut to a number of bytes.
func TruncateOutputs(bytes int) Policy {
	return func(_ context.Context, messages []content.Message) (content.Blocks, error) {
		return content.Words("[Earlier messages, with the output of tools cut:]\n" + textOf(messages, bytes)), nil
	}
}

// Summarise replaces messages by a summary that a model makes of their text. Instructions is the system prompt for it;
// "" is one that keeps what is needed to continue. A summary that is empty or was cut off is an error.
func Summarise(p api.Provider, instructions string) Policy {
	if instructions == "" {
		instructions = "Summarise this part of a conversation for the assistant that goes on with it: what was asked, decided and found out, " +
			"names and numbers as they are, what is still open. Write nothing else."
	}
	return func(ctx context.Context, messages []content.Message) (content.Blocks, error) {
		answer, err := api.NewClient(p, nil).Send(ctx, api.Request{
			System: []string{instructions}, Messages: []content.Message{{Role: content.User, Blocks: content.Words(textOf(messages, 2000))}},
		})
		if err != nil {
			return content.Blocks{}, fmt.Errorf("executor: the summary of earlier messages: %w", err)
		}

		// A summary that was cut off would lose the end of what it replaces, and nobody would notice.
		text := strings.TrimSpace(answer.Blocks.Text())
		if text == "" || answer.Stop == content.StopMaxTokens {
			return content.Blocks{}, fmt.Errorf("executor: the summary of earlier messages stopped with %s: %w", answer.Stop, errNoSummary)
		}
		return content.Words("[Summary of earlier messages:]\n" + text), nil
	}
}

var errNoSummary = errors.New("there is no summary")

// Hook compacts a run's conversation in two cases:
//
//   - After a turn that leaves it beyond the budget.
//   - When the provider refuses a request as too long ([Hook.TooLong]). Count was wrong then, or a hook added messages.
//     The conversation is compacted whatever Count returns, and at most half of it stays.
//
// An error of the policy ends the run. To continue without compaction, let the policy return what another policy
// returns.
func (c Compaction) Hook() Hook {
	c.counter = new(int) // as a pointer it is equal to no other hook's
	return Hook{
		Next: func(ctx context.Context, turn Turn) (Turn, error) {
			if turn.Stop != "" {
				return turn, nil
			}
			d, err := c.Compact(ctx, turn.DAG)
			turn.DAG = d
			return turn, err
		},
		TooLong: func(ctx context.Context, d dag.DAG) (dag.DAG, error) { return c.compact(ctx, d, true) },
	}
}

// Compact returns the conversation within the budget. It returns it as it is if it fits, if calls are open, or if
// nothing can be left out. Beside an error, which is the policy's, it returns the conversation as it was.
func (c Compaction) Compact(ctx context.Context, d dag.DAG) (dag.DAG, error) {
	return c.compact(ctx, d, false)
}

// compact is Compact. If refused is set, the conversation does not fit, regardless of Count.
func (c Compaction) compact(ctx context.Context, d dag.DAG, refused bool) (dag.DAG, error) {
	// A compaction between calls and their results would part them.
	if d.Err() != nil || len(d.OpenCalls()) > 0 {
		return d, d.Err()
	}
	if c.Count == nil {
		c.Count, c.counter = roughly, roughlyKey{}
	}
	if c.Keep <= 0 {
		c.Keep = c.Budget / 2
	}
	if c.Policy == nil {
		c.Policy = DropMiddle()
	}

	// The provider has the last word: what it refused is too long, whatever Count returns.
	t := shared.Of(d.Heads())
	size := t.Sum(c.counter, c.Count)
	if size <= c.Budget && !refused {
		return d, nil
	}
	if refused {
		c.Keep = min(c.Keep, size/2)
	}

	// One message is not worth a summary in its place.
	first, end := c.middle(t)
	if end-first < 2 {
		return d, nil
	}

	summary, err := c.Policy(ctx, slices.Clone(t.Messages[first:end]))
	if err != nil {
		return d, err
	}
	shorter := d.Append(node.Compaction{Summary: summary, Replaced: node.ListOf(replaced(t, first, end)...)})
	if err := shorter.Err(); err != nil {
		return d, err
	}
	return shorter, nil
}

// middle returns the messages that may be left out: from the first answer, or the summary before it, up to those that
// stay.
func (c Compaction) middle(t shared.Transcript) (first, end int) {
	messages := t.Messages
	for first < len(messages) && messages[first].Role == content.User {
		if _, is := t.Summary(first); is {
			break // of an earlier compaction: the new summary replaces it, and is made from it
		}
		first++
	}

	// Keep the newest messages, at least one, up to c.Keep tokens.
	end = len(messages)
	for kept := 0; end > first; end-- {
		kept += c.Count(messages[end-1 : end])
		if kept > c.Keep && end < len(messages) {
			break
		}
	}
	for end > first && end < len(messages) && len(messages[end].Blocks.ToolResults()) > 0 {
		end-- // results stay with their calls
	}
	return first, end
}

// replaced returns the nodes of the messages from first to the one before end, with the executions whose results they
// hold. Nodes replaced by an earlier compaction are not listed again: this compaction replaces the earlier one.
func replaced(t shared.Transcript, first, end int) []node.ID {
	var ids []node.ID
	for i := first; i < end; i++ {
		if id, is := t.Summary(i); is {
			ids = append(ids, id)
			continue
		}

		n := t.Nodes[i]
		for j := range n.NumParents() {
			if isExecution(n.Parent(j)) {
				ids = append(ids, n.Parent(j).ID())
			}
		}
		ids = append(ids, n.ID())
	}
	return ids
}

// roughlyKey is the key for roughly.
type roughlyKey struct{}

// roughly estimates the tokens of messages.
func roughly(messages []content.Message) int {
	return int(api.EstimateTokens(api.Request{Messages: messages}))
}

// textOf returns messages as text, with each tool result cut to a number of bytes.
func textOf(messages []content.Message, output int) string {
	var b strings.Builder
	for _, m := range messages {
		for p := range describe.Parts(m.Blocks) {
			switch p.Form {
			case describe.Said:
				fmt.Fprintf(&b, "%s: %s\n", m.Role, p.Text)
			case describe.Asked:
				fmt.Fprintf(&b, "%s calls %s(%s)\n", m.Role, p.Name, p.JSON)
			case describe.Returned:
				short, _ := cutBlocks(p.Content, output, 0)
				outcome := "returned"
				if p.Failed {
					outcome = "failed"
				}
				fmt.Fprintf(&b, "the tool %s: %s\n", outcome, describe.Text(short))
			case describe.Shown:
				fmt.Fprintf(&b, "%s: %s\n", m.Role, p.Word())
			case describe.Thought: // what came of it is said
			}
		}
	}
	return strings.TrimSpace(b.String())
}
