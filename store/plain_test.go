package store_test

import (
	"context"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// plain is a driver without the methods that a driver may do without.
type plain struct{ store.Driver }

func (p plain) Open(ctx context.Context, conversation, name string, have []node.ID) (store.Opened, error) {
	o, err := p.Driver.Open(ctx, conversation, name, have)
	if err != nil {
		return o, err
	}

	// All records, whichever head is opened.
	heads, err := p.Heads(ctx, conversation, store.Page{})
	if err != nil {
		return o, err
	}
	var from []node.ID
	for _, h := range heads {
		from = append(from, h.Nodes...)
	}
	o.Outlined = nil
	for r, err := range p.Driver.Read(ctx, conversation, from, nil) {
		if err != nil {
			return o, err
		}
		o.Records = append(o.Records, r)
	}
	return o, nil
}

func (plain) Read(context.Context, string, []node.ID, []node.ID) iter.Seq2[store.Record, error] {
	return nil
}
func (plain) Records(context.Context, string, []node.ID) iter.Seq2[store.Record, error] { return nil }
func (plain) Watch(context.Context, string) iter.Seq2[store.Head, error]                { return nil }
func (plain) Prune(context.Context, string, bool) (store.Pruned, error) {
	return store.Pruned{}, errors.ErrUnsupported
}

func TestAStoreNeedsNoMoreThanAPlainDriver(t *testing.T) {
	s := store.New(plain{store.Memory()})
	empty := opened(t, s)
	require.NoError(t, empty.Append(t.Context(), dag.New()))
	require.NoError(t, opened(t, s).Append(t.Context(), dag.New().User("One.")))

	// A fork and its origin load each what is theirs.
	c := opened(t, s)
	fork, err := c.Fork(t.Context(), "fork")
	require.NoError(t, err)
	require.NoError(t, fork.Append(t.Context(), fork.DAG().Assistant("Two.")))
	require.Equal(t, 1, opened(t, s).DAG().Len())
	again, err := c.Head(t.Context(), "fork")
	require.NoError(t, err)
	require.Equal(t, 2, again.DAG().Len())

	_, err = s.Prune(t.Context(), "c", false)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.NoError(t, fork.Remove(t.Context()))
}

// outlining is a plain driver that has a mistake: it outlines records, and does not return them by ID.
type outlining struct {
	plain
	reads, outlines bool // whether it has Read, and whether the records of Open have their outlines
}

func (o outlining) Open(ctx context.Context, conversation, name string, have []node.ID) (store.Opened, error) {
	all, err := o.plain.Open(ctx, conversation, name, have)
	if err != nil {
		return all, err
	}
	whole, err := o.Driver.Open(ctx, conversation, name, nil)
	all.Outlined = whole.Outlined
	for i, r := range all.Records {
		for r := range o.Driver.Records(ctx, conversation, []node.ID{r.ID}) {
			if o.outlines {
				all.Records[i].Outline = r.Outline
			}
		}
	}
	return all, err
}

func (o outlining) Read(ctx context.Context, conversation string, from, have []node.ID) iter.Seq2[store.Record, error] {
	if o.reads {
		return o.Driver.Read(ctx, conversation, from, have)
	}
	return nil
}

func TestOutlinesWithoutRecordsAreIgnored(t *testing.T) {
	for _, reads := range []bool{false, true} {
		for _, outlines := range []bool{false, true} {
			for _, last := range []bool{false, true} { // whether the compaction is the head
				driver := outlining{plain{store.Memory()}, reads, outlines}
				d := longTalk(1000, 1)
				if last {
					d = compacted(d, 1)
				}
				require.NoError(t, opened(t, store.New(driver)).Append(t.Context(), d))
				c := opened(t, store.New(driver))
				require.Equal(t, d.Len(), c.DAG().Len())
				require.NoError(t, c.DAG().LoadAll())
				require.NoError(t, c.Append(t.Context(), c.DAG().User("More?")))
			}
		}
	}
}

func opened(t *testing.T, s *store.Store) *store.Conversation {
	t.Helper()
	c, err := s.Conversation(t.Context(), "c")
	require.NoError(t, err)
	return c
}

func TestAHeadOfAPlainDriverIsWatchedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.New(plain{store.Memory()})
		c := opened(t, s)
		next, stop := iter.Pull2(c.Watch(t.Context()))
		defer stop()

		// The head comes into being, moves, and is removed.
		begun := time.Now()
		time.AfterFunc(1500*time.Millisecond, func() {
			require.NoError(t, c.Append(t.Context(), dag.New().User("One.")))
		})
		d, err, _ := next()
		require.NoError(t, err)
		require.Equal(t, 1, d.Len())
		require.Equal(t, 2*time.Second, time.Since(begun))

		require.NoError(t, c.Append(t.Context(), d.Assistant("Two.")))
		d, err, _ = next()
		require.NoError(t, err)
		require.Equal(t, "Two.", d.Text())

		require.NoError(t, c.Remove(t.Context()))
		_, err, _ = next()
		require.ErrorIs(t, err, store.ErrNotStored)
	})
}

func TestAStoreRefusesNamesThatAreNotAllowed(t *testing.T) {
	s := store.New(store.Memory())
	_, err := s.Conversation(t.Context(), "a\nb")
	require.ErrorIs(t, err, store.ErrName)
	_, err = s.Head(t.Context(), "c", "")
	require.ErrorIs(t, err, store.ErrName)
	_, err = opened(t, s).Head(t.Context(), "\x00")
	require.ErrorIs(t, err, store.ErrName)
	_, err = opened(t, s).Fork(t.Context(), "\x00")
	require.ErrorIs(t, err, store.ErrName)
	require.ErrorIs(t, s.Delete(t.Context(), ""), store.ErrName)
	_, err = s.Prune(t.Context(), "", true)
	require.ErrorIs(t, err, store.ErrName)
	for _, err := range s.Conversations(t.Context(), "\n") {
		require.ErrorIs(t, err, store.ErrName)
	}
	for _, err := range s.Heads(t.Context(), "", "") {
		require.ErrorIs(t, err, store.ErrName)
	}
	for _, err := range s.Heads(t.Context(), "c", "\n") {
		require.ErrorIs(t, err, store.ErrName)
	}
}
