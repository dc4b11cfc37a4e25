package store

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// Conversation is one head of a stored conversation, as it was when it was opened or last appended to.
//
// It has one writer at a time: open one for each request or run. If another writer has moved the head, the next append
// is refused with a [ConflictError]. [Conversation.Head] opens the head again.
//
// A Conversation is safe for concurrent use.
type Conversation struct {
	store     *Store
	key, name string
	nodes     *nodes // shared by all conversations opened by Head and Fork

	mu   sync.Mutex // held during an append; guards the fields below
	dag  dag.DAG
	head Head // with the header and To of dag; version 0 if nothing is stored
	kept Head // the head for refused nodes; version 0 if there is none
}

// nodes holds the nodes of a conversation known to be stored. A node is added after all nodes it refers to.
type nodes struct {
	mu  sync.Mutex // guards set
	set dag.NodeSet
}

// Key returns the key of the conversation.
func (c *Conversation) Key() string { return c.key }

// Name returns the name of the head.
func (c *Conversation) Name() string { return c.name }

// DAG returns the conversation. It is empty if nothing is stored.
func (c *Conversation) DAG() dag.DAG {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dag
}

// Version returns how often the head was appended to; 0 if it is not stored.
func (c *Conversation) Version() uint64 { return c.current().Version }

// Head opens a head of the same conversation, as it is now. It reads only nodes not yet read by an earlier call. Use it
// with c's own name to see the nodes of other writers. The error holds ErrNotStored if there is no such head.
func (c *Conversation) Head(ctx context.Context, name string) (*Conversation, error) {
	o := c.store.at(c.key, name, c.nodes)
	if err := o.open(ctx, c.current().Nodes, false); err != nil {
		return nil, err
	}
	return o, nil
}

func (c *Conversation) current() Head {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.head
}

// Append saves d as the conversation at this head. In one step it stores all new nodes, including those of refs and
// child conversations, and moves the head. It has the signature of executor.Agent.Save:
//
//	agent.Save = c.Append
//
// The cost grows with the new nodes, and with the number of heads and refs of d. Nothing is written if nothing is new.
// d need not continue [Conversation.DAG]: after a rewind, the nodes left behind stay until [Store.Prune].
//
// When Append returns nil, d is stored as durably as the driver promises. After an error, DAG returns the same as
// before. Errors:
//
//   - *ConflictError if the head was moved since it was opened. The new nodes are then kept under a head of their own,
//     ConflictError.KeptHead. Later refused appends move the same head. Open it with [Conversation.Head] to merge,
//     rename or remove it. If the head was removed, nothing is kept.
//   - the chain's own error;
//   - dag.ErrDuplicateID for a node with the ID of another node;
//   - dag.ErrNotErased for a redacted node whose content is stored: use [Conversation.Rewrite];
//   - errors of the driver. It is then unknown whether d is stored: append it again.
func (c *Conversation) Append(ctx context.Context, d dag.DAG) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	a, fresh, err := c.step(d)
	if err != nil {
		return err
	}
	if c.head.Version > 0 && len(fresh) == 0 && a.Header == nil && slices.Equal(a.Nodes, c.head.Nodes) {
		return nil // nothing is new
	}

	return c.write(ctx, d, a, fresh, func(ctx context.Context, a AppendRequest) (Head, error) {
		h, err := c.store.driver.Append(ctx, a)

		// The reply to an earlier try may have been lost. Then the head already has the nodes and the header of this
		// append.
		var conflict *ConflictError
		if errors.As(err, &conflict) && c.isAt(conflict.Current, a) {
			return conflict.Current, nil
		}
		return h, err
	})
}

// AppendWith is Append with write in place of [Driver.Append]. Use it if the append is part of a larger transaction,
// such as those of [Runs]. write commits the transaction and returns the new head. It is called even if nothing is new.
// If nodes were pruned meanwhile, it is called a second time, with more records.
func (c *Conversation) AppendWith(
	ctx context.Context, d dag.DAG, write func(context.Context, AppendRequest) (Head, error),
) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	a, fresh, err := c.step(d)
	if err != nil {
		return err
	}
	return c.write(ctx, d, a, fresh, write)
}

// isAt reports whether a head already has the nodes and the header of an append.
func (c *Conversation) isAt(h Head, a AppendRequest) bool {
	// An append without a header keeps the old one.
	header := a.Header
	if header == nil {
		header = c.head.Header
	}

	return h.Version > 0 && slices.Equal(h.Nodes, a.Nodes) && bytes.Equal(h.Header, header)
}

// step returns the append for saving d, and its new nodes.
func (c *Conversation) step(d dag.DAG) (AppendRequest, []*node.Node, error) {
	c.nodes.mu.Lock()
	defer c.nodes.mu.Unlock()

	a := AppendRequest{Conversation: c.key, Head: c.name, Expect: c.head.Version}
	fresh, err := c.nodes.set.Missing(d)
	if err != nil {
		return a, nil, err
	}

	// Missing returns a node after all nodes it refers to, so the links are in the set or in the batch.
	batch := make(map[node.ID]bool, len(fresh))
	compacted := lastCompaction(fresh)
	stored := func(id node.ID) bool { return batch[id] || c.nodes.set.Node(id) != nil }
	for _, n := range fresh {
		line := n.Append(nil)
		r := Record{ID: n.ID(), Links: dag.Links(n, stored), Line: line, Sum: SumOf(line)}
		if n == compacted {
			r.Outline = outlineOf(n)
		}
		a.Records = append(a.Records, r)
		batch[n.ID()] = true
	}

	// A nil header keeps the stored one.
	a.Nodes = roots(d)
	if header := d.Header(); c.head.Version == 0 || !bytes.Equal(header, c.head.Header) {
		a.Header = header
	}
	return a, fresh, nil
}

// roots returns the IDs of the heads of d and of its refs, each once. The heads come first.
func roots(d dag.DAG) []node.ID {
	heads := d.Heads()
	for _, r := range d.Refs() {
		heads = append(heads, r.Heads...)
	}

	var ids []node.ID
	for _, h := range node.Distinct(heads) {
		ids = append(ids, h.ID())
	}
	return ids
}

// write writes an append of step. c.mu must be held.
func (c *Conversation) write(ctx context.Context, d dag.DAG, a AppendRequest, fresh []*node.Node, write writer) error {
	h, fresh, err := c.try(ctx, d, a, fresh, write)

	var conflict *ConflictError
	if errors.As(err, &conflict) {
		return c.keep(ctx, d, a, fresh, *conflict)
	}
	if err != nil {
		return err
	}
	c.dag, c.head = d, h
	return nil
}

// writer is Driver.Append, or a transaction with an append in it.
type writer = func(context.Context, AppendRequest) (Head, error)

// try writes the append. If nodes of d were pruned since they were read, it writes a second append with all of d.
func (c *Conversation) try(
	ctx context.Context, d dag.DAG, a AppendRequest, fresh []*node.Node, write writer,
) (Head, []*node.Node, error) {
	h, err := write(ctx, a)
	if errors.Is(err, ErrRecord) && (errors.Is(err, node.ErrParent) || errors.Is(err, ErrNotStored)) {
		// Some known nodes are no longer stored. With none known, step returns all nodes of d.
		c.nodes.forget()
		var all AppendRequest
		if all, fresh, err = c.step(d); err != nil {
			return h, nil, err
		}

		// The head stays that of a: keep and Fork write to another one than step.
		a.Records = all.Records
		h, err = write(ctx, a)
	}
	if err == nil {
		c.nodes.add(fresh)
	}
	return h, fresh, err
}

// keep stores the new nodes of a refused append under a head of their own. It returns the conflict.
func (c *Conversation) keep(
	ctx context.Context, d dag.DAG, a AppendRequest, fresh []*node.Node, conflict ConflictError,
) error {
	// If the head was removed, nothing is kept. Without new nodes there is nothing to keep.
	if conflict.Current.Version == 0 || len(fresh) == 0 {
		return &conflict
	}

	// Later conflicts move this same head.
	if c.kept.Name == "" {
		c.kept.Name = keptName(c.name, fresh[len(fresh)-1])
	}
	a.Head, a.Expect, a.Header = c.kept.Name, c.kept.Version, d.Header()
	h, _, err := c.try(ctx, d, a, fresh, c.store.driver.Append)

	// No other writer makes a head with this name: an earlier call has stored it, and its reply was lost.
	var own *ConflictError
	if errors.As(err, &own) {
		a.Expect = own.Current.Version
		h, _, err = c.try(ctx, d, a, fresh, c.store.driver.Append)
	}
	if err != nil {
		return errors.Join(&conflict, err)
	}
	c.kept, conflict.KeptHead = h, h.Name
	return &conflict
}

// keptName returns the name of a head for refused nodes: the name of the head and the short ID of a node.
func keptName(head string, n *node.Node) string {
	suffix := "~" + node.ShortID(n.ID())
	cut := min(len(head), maxName-len(suffix))

	// Do not cut a character in two: a name is UTF-8.
	for cut < len(head) && !utf8.RuneStart(head[cut]) {
		cut--
	}
	return head[:cut] + suffix
}

// forget empties the set: no node is known to be stored.
func (n *nodes) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.set = dag.NodeSet{}
}

// add adds stored nodes to the set.
func (n *nodes) add(fresh []*node.Node) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.set.Add(fresh...)
}

// Fork makes a head with the conversation of [Conversation.DAG], and opens it. It copies no node. The error is a
// *ConflictError if there is a head with this name.
func (c *Conversation) Fork(ctx context.Context, name string) (*Conversation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	o := c.store.at(c.key, name, c.nodes)

	// Expect stays 0: the head must not exist yet. Records stays empty: the nodes are stored, and try stores them again
	// if they were pruned.
	a := AppendRequest{Conversation: c.key, Head: name, Nodes: c.head.Nodes, Header: c.head.Header}
	h, _, err := c.try(ctx, c.dag, a, nil, c.store.driver.Append)
	if err != nil {
		return nil, err
	}
	o.dag, o.head = c.dag, h
	return o, nil
}

// Remove removes the head. Its nodes stay until [Store.Prune]; with the last head the whole conversation is removed.
// The error is a *ConflictError if the head was moved since it was opened. Another append makes the head again.
func (c *Conversation) Remove(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	if err := c.store.driver.RemoveHead(ctx, c.key, c.name, c.head.Version); err != nil {
		return err
	}
	c.head = Head{Name: c.name}
	return nil
}

// Rewrite saves d as [Conversation.Append] does, and replaces the stored nodes of d whose content was redacted. Then it
// prunes the conversation: nothing holds the content any more. Other heads with a replaced node have its redacted form
// too. Nodes out of reach of d are not changed: redact them there.
//
// If the head was moved since it was opened, the error is a *ConflictError and nothing is changed. If only pruning
// fails, the nodes are replaced: call [Store.Prune].
func (c *Conversation) Rewrite(ctx context.Context, d dag.DAG) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	// Without known nodes, the step has a record for every node of d: the driver replaces the different ones.
	c.nodes.forget()
	a, fresh, err := c.step(d)
	if err != nil {
		return err
	}

	a.Replace = true
	h, err := c.store.driver.Append(ctx, a)
	if err != nil {
		return err
	}
	c.nodes.add(fresh)
	c.dag, c.head = d, h

	_, err = c.store.driver.Prune(ctx, c.key, false)
	return err
}

// Watch yields the conversation at this head: as it is now, and then after each move of the head. Moves in quick
// succession may be yielded as one, but the last one is always yielded. It reads only new nodes, and changes nothing in
// c.
//
// It ends when the caller breaks off, the context is done, or the head is removed. An error ends it; for a removed
// head it holds ErrNotStored. If there is no such head yet, Watch waits for it.
func (c *Conversation) Watch(ctx context.Context) iter.Seq2[dag.DAG, error] {
	return func(yield func(dag.DAG, error) bool) {
		last := c
		for h, err := range c.moves(ctx) {
			// The head may have moved again since, so it is opened as it is now.
			if err == nil && h.Name != c.name {
				continue
			}
			if err == nil {
				last, err = last.Head(ctx, c.name)
			}
			if err != nil {
				yield(dag.DAG{}, err)
				return
			}
			if !yield(last.DAG(), nil) {
				return
			}
		}
	}
}

// moves is Driver.Watch. A driver without it is asked for this head once a second.
func (c *Conversation) moves(ctx context.Context) iter.Seq2[Head, error] {
	if moved := c.store.driver.Watch(ctx, c.key); moved != nil {
		return moved
	}
	return func(yield func(Head, error) bool) { c.poll(ctx, yield) }
}

// pollEvery is the time between two looks at a head.
const pollEvery = time.Second

// poll yields the head when it has moved.
func (c *Conversation) poll(ctx context.Context, yield func(Head, error) bool) {
	for last := (Head{Name: c.name}); ; {
		h, err := c.store.driver.Head(ctx, c.key, c.name)
		if errors.Is(err, ErrNotStored) {
			h, err = Head{Name: c.name}, nil
		}
		if err != nil {
			yield(Head{}, err)
			return
		}
		if !h.equal(last) && !yield(h, nil) {
			return
		}
		last = h

		select {
		case <-time.After(pollEvery):
		case <-ctx.Done():
			yield(Head{}, ctx.Err())
			return
		}
	}
}
