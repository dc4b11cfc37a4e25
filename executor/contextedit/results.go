package contextedit

import (
	"context"
	"fmt"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// Results keeps the results in a request within a budget of tokens. When they take more, old ones are left out until the
// newest of Keep tokens remain. Between these steps requests begin the same, so a prompt cache holds.
type Results struct {
	// Budget is how many tokens results may take. Required.
	Budget int
	// Keep is how many tokens of the newest results stay. Defaults to half of Budget. The last message with results
	// always stays.
	Keep int
	// Least is the size below which a message with results stays: its note would save nothing. Defaults to 100 tokens.
	Least int
	// Count returns the number of tokens of messages. Defaults to [api.EstimateTokens].
	Count func(messages []content.Message) int
}

// Hook edits a run's conversation after each turn, and lets [ReadResult] find the conversation.
func (r Results) Hook() executor.Hook {
	return executor.Hook{
		Observe: remember,
		Next: func(_ context.Context, turn executor.Turn) (executor.Turn, error) {
			if turn.Stop == "" { // else there may be no further request
				turn.DAG = r.Edit(turn.DAG)
			}
			return turn, nil
		},
	}
}

// Edit returns the conversation without old results. It returns it unchanged if its results fit, if calls are open, or if
// nothing can be left out.
func (r Results) Edit(d dag.DAG) dag.DAG {
	if d.Err() != nil || len(d.OpenCalls()) > 0 {
		return d // a Compaction node must not come between calls and their results
	}
	r.setDefaults()

	// What is left out already is a message of its compaction: it has no results of its node.
	old, total := r.sent(d)
	if total <= r.Budget {
		return d
	}

	shorter := d
	names := d.ShortIDs()
	for _, results := range old {
		if total <= r.Keep {
			break
		}
		total -= results.tokens
		if results.tokens >= r.Least {
			shorter = shorter.Append(node.Compaction{
				Summary: notes(results.node, names(results.node)), Replaced: node.ListOf(replaced(results.node)...),
			})
		}
	}
	if shorter.Err() != nil {
		return d
	}
	return shorter
}

func (r *Results) setDefaults() {
	if r.Keep <= 0 {
		r.Keep = r.Budget / 2
	}
	if r.Least <= 0 {
		r.Least = 100
	}
	if r.Count == nil {
		r.Count = func(messages []content.Message) int {
			return int(api.EstimateTokens(api.Request{Messages: messages}))
		}
	}
}

// sentResults is a message with results that is sent whole.
type sentResults struct {
	node   *node.Node
	tokens int
}

// sent returns the messages with results that are sent whole, without the last one, and the tokens of them all.
func (r *Results) sent(d dag.DAG) (old []sentResults, total int) {
	t := d.Transcript()
	for i, m := range t.Messages {
		own, _ := t.Nodes[i].Message()
		if m.Role != content.User || len(m.Blocks.ToolResults()) == 0 || own.Blocks != m.Blocks {
			continue
		}

		tokens := r.Count(t.Messages[i : i+1])
		old, total = append(old, sentResults{t.Nodes[i], tokens}), total+tokens
	}
	if len(old) > 0 {
		old = old[:len(old)-1]
	}
	return old, total
}

// notes returns the message that is sent in place of results. A text beside them stays.
func notes(results *node.Node, name string) content.Blocks {
	m, _ := results.Message()
	blocks := m.Blocks.Slice()
	for i, b := range blocks {
		if result, ok := b.(content.ToolResult); ok {
			result.Content = content.Words(fmt.Sprintf("[This result was left out to save space. %s returns it: %q.]", toolName, nameOf(name, i)))
			blocks[i] = result
		}
	}
	list, err := content.Of(blocks...)
	if err != nil {
		return m.Blocks // cannot be: these are the blocks of a message
	}
	return list
}

// replaced returns the IDs of a message with results and of its executions.
func replaced(results *node.Node) (ids []node.ID) {
	for i := range results.NumParents() {
		if _, is := results.Parent(i).Payload().(node.ToolExecution); is {
			ids = append(ids, results.Parent(i).ID())
		}
	}
	return append(ids, results.ID())
}
