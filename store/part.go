package store

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// minLeftOut is the least number of nodes for which a conversation is loaded in part.
var minLeftOut = 256

// loadTimeout limits the loading of the rest of a conversation, which has no context of its own.
const loadTimeout = 5 * time.Minute

// lastCompaction returns the last compaction of new nodes, or nil. An append has rarely more than one.
func lastCompaction(fresh []*node.Node) *node.Node {
	for _, n := range slices.Backward(fresh) {
		if _, is := n.Payload().(node.Compaction); is {
			return n
		}
	}
	return nil
}

// outlineOf returns Record.Outline for a compaction: the sum of its ID and the outline, and the outline. It is nil if too
// little would be left out.
func outlineOf(compaction *node.Node) []byte {
	text, leftOut := dag.Outline(compaction)
	if leftOut < minLeftOut {
		return nil
	}
	sum := outlineSum(compaction.ID(), text)
	return append(sum[:], text...)
}

func outlineSum(id node.ID, text []byte) Sum { return SumOf(slices.Concat(id[:], text)) }

// CheckOutline returns an error if the outline of a record is damaged. It may be removed then: the conversation is
// loaded as a whole until its next compaction.
func (r Record) CheckOutline() error {
	_, err := r.outline()
	return err
}

var errOutlineSum = errors.New("its outline has another sum")

// outline returns the outline without its sum.
func (r Record) outline() ([]byte, error) {
	var sum Sum
	if len(r.Outline) < len(sum) {
		return nil, errOutlineSum
	}
	text := r.Outline[len(sum):]
	if sum = outlineSum(r.ID, text); !bytes.Equal(sum[:], r.Outline[:len(sum)]) {
		return nil, errOutlineSum
	}
	return text, nil
}

// loadPart reads what a conversation needs from its newest compaction on, and reports whether this was possible. The
// rest is read when it is first used. For any error it reports false: reading everything finds the reason. No other
// conversation may use c.nodes yet.
func (c *Conversation) loadPart(ctx context.Context, opened Opened) bool {
	h, outlined := opened.Head, opened.Outlined
	if len(outlined) == 0 {
		return false
	}

	// Read the nodes after the compaction. All paths to older nodes must pass the same one. A driver without Read has
	// returned all records already.
	read := c.store.driver.Read(ctx, c.key, h.Nodes, outlined)
	if read == nil {
		return false
	}
	recent, err := all(read)
	if err != nil {
		return false
	}
	compaction, ok := lastOutlined(recent, h, outlined)
	if !ok {
		return false
	}

	// Then read the compaction and the nodes of its outline. A driver without Records has no record here.
	records, err := all(c.store.driver.Records(ctx, c.key, []node.ID{compaction}))
	if err != nil || len(records) != 1 {
		return false
	}
	text, err := records[0].outline()
	if err != nil {
		return false
	}

	// Values of the context, such as those of a trace, count for the rest too. Its end does not.
	background := context.WithoutCancel(ctx)
	var set dag.NodeSet
	ids, absent, err := set.Expect(text, func(rest *dag.NodeSet, from []node.ID) error {
		return c.loadRest(background, rest, from)
	})
	if err != nil {
		return false
	}
	ids = slices.DeleteFunc(ids, func(id node.ID) bool { return id == compaction })
	older, err := all(c.store.driver.Records(ctx, c.key, ids))
	if err != nil || holdsAny(recent, append(ids, absent...)) {
		return false
	}

	records = slices.Concat(older, records, recent)
	if c.parse(&set, records) != nil || set.Ready() != nil {
		return false
	}

	c.nodes.mu.Lock()
	defer c.nodes.mu.Unlock()
	c.nodes.set = set
	return true
}

// lastOutlined returns the only one of the outlined records that the records, or the head, refer to.
func lastOutlined(recent []Record, h Head, outlined []node.ID) (last node.ID, ok bool) {
	isOutlined := make(map[node.ID]bool, len(outlined))
	for _, id := range outlined {
		isOutlined[id] = true
	}

	found := map[node.ID]bool{}
	links := slices.Clone(h.Nodes)
	for _, r := range recent {
		links = append(links, r.Links...)
	}
	for _, id := range links {
		if isOutlined[id] {
			last, found[id] = id, true
		}
	}
	return last, len(found) == 1
}

// holdsAny reports whether one of the records has one of the IDs.
func holdsAny(records []Record, ids []node.ID) bool {
	held := make(map[node.ID]bool, len(ids))
	for _, id := range ids {
		held[id] = true
	}
	return slices.ContainsFunc(records, func(r Record) bool { return held[r.ID] })
}

// loadRest reads the nodes within reach of from that the set does not have.
func (c *Conversation) loadRest(ctx context.Context, rest *dag.NodeSet, from []node.ID) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()

	records, err := all(c.store.driver.Read(ctx, c.key, from, nil))
	if err != nil {
		return err
	}
	return c.parse(rest, records)
}
