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

// Compaction keeps the messages of a conversation within a budget of tokens. If they take more, a [Policy] summarizes
// the middle of the conversation, and the summary is sent in its place, as one Compaction node. The replaced nodes stay
// in the graph. The first messages, up to the first response, and the last tokens stay as they are. A call is never
// separated from its results.
//
// After a compaction the conversation begins the same at each turn, so a prompt cache holds until the next one.
type Compaction struct {
	// Budget is how many tokens the messages may take. Required.
	Budget int
	// Keep is how many of the last tokens stay, at least. Defaults to half of Budget.
	Keep int
	// Count returns the number of tokens of messages. It is called with a few messages at a time, mostly new ones, and
	// the results are added up. Defaults to [api.EstimateTokens].
	Count func(messages []content.Message) int
	// Policy makes the replacement for the middle. Defaults to a note with the number of messages.
	Policy Policy

	counter any // the key under which a conversation remembers the results of Count; nil remembers none
}

// Policy returns the content of the message that replaces messages. They begin and end between turns, so every call
// among them has its result. An error leaves the conversation as it is.
type Policy func(ctx context.Context, messages []content.Message) (content.Blocks, error)

// dropMiddle replaces messages by a note with their number.
func dropMiddle(_ context.Context, messages []content.Message) (content.Blocks, error) {
	return content.Words(fmt.Sprintf("[%d earlier messages were left out here.]", len(messages))), nil
}

// TruncateOutputs replaces messages by their text, with each tool result cut to a number of bytes.
func TruncateOutputs(bytes int) Policy {
	return func(_ context.Context, messages []content.Message) (content.Blocks, error) {
		return content.Words("[Earlier messages, with the output of tools cut:]\n" + textOf(messages, bytes)), nil
	}
}

// Summarise replaces messages by a model's summary of their text. instructions is the system prompt for it. Defaults to
// a prompt that keeps what is needed to continue. An empty or cut-off summary is an error.
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

		// A cut-off summary would silently lose the end of the messages.
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
//   - Before a turn, if it is over the budget: also before the first one of a run, with its new message.
//   - When the provider refuses a request as too long ([Hook.TooLong]): Count was wrong, or a hook added messages. The
//     conversation is then compacted whatever Count returns, and at most half of it stays.
//
// An error of the policy ends the run. To continue instead, fall back to another policy inside the policy.
func (c Compaction) Hook() Hook {
	c.counter = new(int) // a pointer, to differ from the key of every other hook
	return Hook{
		BeforeTurn: func(ctx context.Context, d dag.DAG) (dag.DAG, error) { return c.compact(ctx, d, false) },
		TooLong:    func(ctx context.Context, d dag.DAG) (dag.DAG, error) { return c.compact(ctx, d, true) },
	}
}

// Compact returns the conversation, compacted to the budget. It returns it unchanged if it fits, if calls are open, or
// if nothing can be left out. The error is the policy's; the conversation beside it is unchanged.
func (c Compaction) Compact(ctx context.Context, d dag.DAG) (dag.DAG, error) {
	return c.compact(ctx, d, false)
}

// compact is Compact. If refused is set, the conversation does not fit, regardless of Count.
func (c Compaction) compact(ctx context.Context, d dag.DAG, refused bool) (dag.DAG, error) {
	// A Compaction node must not come between calls and their results.
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
		c.Policy = dropMiddle
	}

	// A refused conversation is too long whatever Count returns. Its size in Count's units still sets how much to keep.
	t := shared.Of(&d)
	size := t.Sum(c.counter, c.Count)
	if size <= c.Budget && !refused {
		return d, nil
	}
	if refused {
		c.Keep = min(c.Keep, size/2)
	}

	// A single message is not worth a summary.
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

// middle returns the range of messages that may be left out. It begins at the first response, or at a summary before
// it, and ends before the newest messages that stay.
func (c Compaction) middle(t shared.Transcript) (first, end int) {
	messages := t.Messages
	for first < len(messages) && messages[first].Role == content.User {
		if _, is := t.Summary(first); is {
			break // the summary of an earlier compaction: the new summary includes and replaces it
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

// replaced returns the IDs of the nodes of messages [first, end) and of the executions with their results. It does not
// list nodes replaced by an earlier compaction again: this compaction replaces the earlier one.
func replaced(t shared.Transcript, first, end int) []node.ID {
	var ids []node.ID
	for i := first; i < end; i++ {
		if id, is := t.Summary(i); is {
			ids = append(ids, id)
			continue
		}

		n := t.Nodes[i]
		for j := range n.NumParents() {
			if _, is := n.Parent(j).Payload().(node.ToolExecution); is {
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
			case describe.Thought: // left out: the texts and calls that follow say what came of it
			}
		}
	}
	return strings.TrimSpace(b.String())
}
