package executor

import (
	"slices"
	"sync"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
)

// Queue holds messages of the user that wait to be said in a run: as [Agent.Steering] or [Agent.FollowUps]. The zero
// value is an empty one that gives its messages one at a time. It is safe for concurrent use, also from inside an event
// of the run.
//
// Each message is delivered once, in order: it becomes a node of the conversation before the model is asked again,
// never between a call and its result. A run that ends before leaves the message in the queue, for the next run that
// has it. A queue of several runs at once gives each message to one of them.
type Queue struct {
	mu      sync.Mutex
	all     bool
	waiting []content.Message
}

// NewQueue returns a queue whose messages are taken all at once.
func NewQueue() *Queue { return &Queue{all: true} }

// Add adds a message: the text, if it is not empty, and the blocks. An empty message is dag.ErrEmpty. Blocks
// that no user writes (tool calls, tool results, thinking) are refused, as from a Hook.Input. Other errors are those of
// content.Of.
func (q *Queue) Add(text string, blocks ...content.Block) error {
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
	q.waiting = append(q.waiting, content.Message{Role: content.User, Blocks: list})
	return nil
}

// Messages returns the messages that wait, in order.
func (q *Queue) Messages() []content.Message {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.waiting)
}

// Len returns the number of messages that wait.
func (q *Queue) Len() int {
	if q == nil {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Clear empties the queue and returns what waited.
func (q *Queue) Clear() []content.Message {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	cleared := q.waiting
	q.waiting = nil
	return cleared
}

// take returns what is to be said next.
func (q *Queue) take() []content.Message {
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.waiting)
	if !q.all {
		n = min(n, 1)
	}
	taken := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return taken
}

// putBack puts what was taken and not said where it was.
func (q *Queue) putBack(messages []content.Message) {
	if len(messages) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = slices.Concat(messages, q.waiting)
}
