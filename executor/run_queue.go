package executor

import (
	"slices"
	"sync"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// Queue holds user messages for a run, as [Agent.Steering] or [Agent.FollowUps]. The zero value is an empty queue whose
// messages are taken one at a time. It is safe for concurrent use, even in the loop over the run's events.
//
// Each message is delivered once, in order. It becomes a node of the conversation before the next request, never
// between a call and its result. If a run ends before that, the message stays in the queue for the next run. If several
// runs share a queue, each message goes to one of them.
type Queue struct {
	mu      sync.Mutex
	all     bool
	waiting []queued
	filled  chan struct{} // closed when a message comes; nil unless Filled waits for one
}

// queued is a message in a queue, with the metadata of its node.
type queued struct {
	content.Message
	meta node.Meta
}

// NewQueue returns a queue whose messages are taken all at once.
func NewQueue() *Queue { return &Queue{all: true} }

// Add adds a message: the text, if it is not empty, and the blocks. An empty message is dag.ErrEmpty. Blocks of an
// assistant's or a results message (tool calls, tool results, thinking) are an error, as from a Hook.Input. Other
// errors are those of content.Of.
func (q *Queue) Add(text string, blocks ...content.Block) error {
	return q.AddMeta(node.Meta{}, text, blocks...)
}

// AddMeta is Add with metadata for the node of the message.
func (q *Queue) AddMeta(meta node.Meta, text string, blocks ...content.Block) error {
	if text != "" {
		blocks = append([]content.Block{content.Text{Text: text}}, blocks...)
	}

	list, err := content.Of(blocks...)
	if err == nil && list.Len() == 0 {
		err = dag.ErrEmpty
	}
	if err == nil {
		err = holdable(list)
	}
	if err != nil {
		return err
	}

	q.mu.Lock()
	defer q.mu.Unlock()
	q.fill(append(q.waiting, queued{content.Message{Role: content.User, Blocks: list}, meta}))
	return nil
}

// fill sets the messages of the queue. q.mu must be held.
func (q *Queue) fill(messages []queued) {
	q.waiting = messages
	if q.filled != nil {
		close(q.filled)
		q.filled = nil
	}
}

// Filled returns a channel that is closed as soon as the queue has a message. That of a nil queue stays open.
func (q *Queue) Filled() <-chan struct{} {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) > 0 {
		now := make(chan struct{})
		close(now)
		return now
	}
	if q.filled == nil {
		q.filled = make(chan struct{})
	}
	return q.filled
}

// Messages returns the messages in the queue, in order.
func (q *Queue) Messages() []content.Message {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return messagesOf(q.waiting)
}

// messagesOf returns the messages without their metadata.
func messagesOf(list []queued) []content.Message {
	messages := make([]content.Message, len(list))
	for i, m := range list {
		messages[i] = m.Message
	}
	return messages
}

// Len returns the number of messages in the queue.
func (q *Queue) Len() int {
	if q == nil {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Clear empties the queue and returns its messages.
func (q *Queue) Clear() []content.Message {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	cleared := messagesOf(q.waiting)
	q.waiting = nil
	return cleared
}

// take removes and returns the next messages: one, or all if q.all is set.
func (q *Queue) take() []queued {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.waiting)
	if !q.all {
		n = min(n, 1)
	}

	// A copy, because Delete moves the other messages within the same memory.
	taken := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return taken
}

// putBack puts messages that were taken back at the front of the queue.
func (q *Queue) putBack(messages []queued) {
	if len(messages) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fill(slices.Concat(messages, q.waiting))
}
