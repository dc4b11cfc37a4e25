package storetest

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// RunReopened checks that a store that is closed and opened again holds what it held. Open opens the same store each
// time it is called, first an empty one, and closes it with t.Cleanup:
//
//	path := filepath.Join(t.TempDir(), "store.db")
//	storetest.RunReopened(t, func(t *testing.T) store.Driver { return open(t, path) })
func RunReopened(t *testing.T, open func(t *testing.T) store.Driver) {
	// The order of the IDs is not that of the records.
	root, next, large := record(), record(), record()
	root.ID, next.ID, large.ID = node.ID{3}, node.ID{2}, node.ID{1}
	next.Links, large.Links = idsOf(root), idsOf(next)
	large.Outline = outline(large.ID, 1)

	first := step(0, root)
	first.Header = []byte("\x00header\xff")
	second := step(1, next, large)
	redacted := next
	redacted.Line = []byte(`{"redacted":true}`)
	redacted.Sum = store.SumOf(redacted.Line)
	replace := step(2, redacted)
	replace.Nodes, replace.Replace = idsOf(large), true
	fork := store.AppendRequest{Conversation: "c", Head: "fork", Nodes: idsOf(root)}
	other := first
	other.Conversation = "d"
	apart := fork
	apart.Conversation, apart.Head, apart.Records = "e", "main", []store.Record{root}

	for _, change := range []struct {
		name string
		make func(t *driverTest)
	}{
		{"a first append", func(t *driverTest) { t.append(first) }},
		{"an append", func(t *driverTest) { t.append(second) }},
		{"a replaced record", func(t *driverTest) { t.append(replace) }},
		{"a fork", func(t *driverTest) { t.append(fork) }},
		{"another conversation", func(t *driverTest) { t.append(other) }},
		{"a third one", func(t *driverTest) { t.append(apart) }},
		{"a removed head", func(t *driverTest) { require.NoError(t, t.RemoveHead(t.ctx, "c", "main", 3)) }},
		{"a removed last head", func(t *driverTest) { require.NoError(t, t.RemoveHead(t.ctx, "d", "main", 1)) }},
		{"a deleted conversation", func(t *driverTest) { require.NoError(t, t.Delete(t.ctx, "e")) }},
		{"a pruned conversation", func(t *driverTest) {
			_, err := t.Prune(t.ctx, "c", false)
			require.NoError(t, err)
		}},
	} {
		// The subtest closes the store when it ends.
		var want map[string]any
		made := t.Run(change.name, func(t *testing.T) {
			d := &driverTest{T: t, Driver: open(t), ctx: context.Background()}
			change.make(d)
			want = d.whole()
		})
		t.Run(change.name+" is there again", func(t *testing.T) {
			if !made || want == nil {
				t.Skip("SKIPPED: there was no such change")
			}
			d := &driverTest{T: t, Driver: open(t), ctx: context.Background()}
			require.Equal(t, want, d.whole(), "what to change in the driver: write each change before its method returns")
		})
	}
}

// whole returns all of a store that a caller can see, but for the watching of heads.
func (t *driverTest) whole() map[string]any {
	t.Helper()
	whole := t.all()
	keys, err := t.Conversations(t.ctx, store.Page{})
	require.NoError(t, err)
	for _, key := range keys {
		heads, err := t.Heads(t.ctx, key, store.Page{})
		require.NoError(t, err)
		for _, h := range heads {
			o, err := t.Open(t.ctx, key, h.Name, nil)
			require.NoError(t, err)
			slices.SortFunc(o.Outlined, func(a, b node.ID) int { return bytes.Compare(a[:], b[:]) })
			whole[key+"\n"+h.Name+"\nopened"] = o
		}
	}
	return whole
}
