package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
	"github.com/stretchr/testify/require"
)

var ctx = context.Background()

// counting returns an empty conversation whose IDs and times are always the same.
func counting() dag.DAG {
	return dag.New().WithSource(node.Counting(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
}

// everyKind returns a conversation with every kind of node, block and field.
func everyKind(t testing.TB) dag.DAG {
	d, err := dag.Load("../dag/testdata/conversation.v1.json")
	require.NoError(t, err)
	return d
}

func image(size int, letter string) content.Image {
	return content.Image{Source: content.Source{MediaType: "image/png", Data: strings.Repeat(letter, size)}}
}

func written(t testing.TB, d dag.DAG) string {
	var out bytes.Buffer
	require.NoError(t, d.Write(&out))
	return out.String()
}

func open(t testing.TB, s *store.Store, key string) *store.Conversation {
	c, err := s.Conversation(ctx, key)
	require.NoError(t, err)
	return c
}

// saved returns a conversation in which d was saved.
func saved(t testing.TB, s *store.Store, key string, d dag.DAG) *store.Conversation {
	c := open(t, s, key)
	require.NoError(t, c.Append(ctx, d))
	return c
}

func conflictOf(t testing.TB, err error) *store.ConflictError {
	t.Helper()
	require.ErrorIs(t, err, store.ErrMoved)
	var c *store.ConflictError
	require.ErrorAs(t, err, &c)
	return c
}

func TestConversationIsLoadedAsItWasSaved(t *testing.T) {
	child := dag.New().System("helper").User("inside").Assistant("done")
	many := counting().User("Start")
	for i := range 30 {
		many = many.Join(many.Back(0).WithHeads(many.Nodes()[0]).Assistant(fmt.Sprint(i)))
	}

	hard := "line\nbreak \"quote\" \\ <tag> & \u2028 \x00 é 😀 \xff"
	for name, d := range map[string]dag.DAG{
		"empty":              {},
		"metadata alone":     dag.New().WithMetadata("a", 1),
		"every kind":         everyKind(t),
		"hard text":          counting().WithMetadata(hard, hard).System(hard).User(hard).Custom("x", hard),
		"refs":               counting().User("a").WithRef("at a").User("b").WithRef("at b").Back(1),
		"refs and no heads":  counting().User("a").WithRef("at a").WithHeads(),
		"many heads":         many,
		"child":              counting().User("a").SubGraph("sub", child).Assistant("b"),
		"large text":         counting().User(strings.Repeat(hard, 5000)).Assistant("short", image(100_000, "A")),
		"a conversation cut": counting().User("a").Assistant("", content.ToolUse{ID: "1", Name: "f", Input: `{}`}),
	} {
		t.Run(name, func(t *testing.T) {
			s := store.New(store.Memory())
			c := saved(t, s, "k", d)

			for _, got := range []dag.DAG{c.DAG(), open(t, s, "k").DAG()} {
				require.True(t, dag.Equal(d, got))
				require.Equal(t, string(d.Header()), string(got.Header()))
				require.Equal(t, written(t, d.Prune()), written(t, got.Prune()))
				require.Equal(t, d.Metadata(), got.Metadata())
				require.Equal(t, len(d.Refs()), len(got.Refs()))
			}
		})
	}
}

func TestConversationThatIsNotStoredIsEmpty(t *testing.T) {
	s := store.New(store.Memory())
	c := open(t, s, "k")
	require.Zero(t, c.DAG().Len())
	require.Zero(t, c.Version())
	require.Equal(t, "k", c.Key())
	require.Equal(t, store.Main, c.Name())
	for key := range s.Conversations(ctx, "") {
		t.Fatal("opening made a conversation", key)
	}

	_, err := s.Head(ctx, "k", "main")
	require.ErrorIs(t, err, store.ErrNotStored)
	_, err = c.Head(ctx, "main")
	require.ErrorIs(t, err, store.ErrNotStored)
	_, err = s.Conversation(ctx, "a\nb")
	require.ErrorIs(t, err, store.ErrName)
	_, err = s.Head(ctx, "k", "")
	require.ErrorIs(t, err, store.ErrName)
}

// recorder is a driver that records the appends, and can fail.
type recorder struct {
	store.Driver
	mu      sync.Mutex
	appends []store.AppendRequest
	after   func(store.AppendRequest) error         // if it is set, an error after an append that was done
	read    func(store.Record) (store.Record, bool) // if it is set, what is read of a record, and whether it is there
	before  func() error                            // if it is set, called before each Read
	watch   []store.Head                            // if it is set, what Watch yields
}

func (r *recorder) Watch(ctx context.Context, conversation string) iter.Seq2[store.Head, error] {
	if r.watch == nil {
		return r.Driver.Watch(ctx, conversation)
	}
	return func(yield func(store.Head, error) bool) {
		for _, h := range r.watch {
			if !yield(h, nil) {
				return
			}
		}
	}
}

func (r *recorder) Append(ctx context.Context, a store.AppendRequest) (store.Head, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, err := r.Driver.Append(ctx, a)
	if err == nil {
		r.appends = append(r.appends, a)
		if r.after != nil {
			err = r.after(a)
		}
	}
	return h, err
}

// last returns the last append.
func (r *recorder) last() store.AppendRequest { return r.appends[len(r.appends)-1] }

func recording() (*recorder, *store.Store) {
	r := &recorder{Driver: store.Memory()}
	return r, store.New(r)
}

func TestAppendStoresOnlyNewNodes(t *testing.T) {
	driver, s := recording()
	d := counting().System("s").User("one").Assistant("two")
	c := saved(t, s, "k", d)
	require.Len(t, driver.last().Records, 3)

	require.NoError(t, c.Append(ctx, d))
	require.NoError(t, open(t, s, "k").Append(ctx, d))
	require.Len(t, driver.appends, 1, "nothing was new")

	require.NoError(t, c.Append(ctx, d.User("three")))
	require.Len(t, driver.last().Records, 1)
	require.Nil(t, driver.last().Header)
	require.EqualValues(t, 2, c.Version())

	loaded := open(t, s, "k")
	require.NoError(t, loaded.Append(ctx, loaded.DAG().Back(1).User("instead")))
	require.Len(t, driver.last().Records, 1)
	require.NoError(t, loaded.Append(ctx, loaded.DAG().WithMetadata("title", "t")))
	require.Empty(t, driver.last().Records)
	require.NotNil(t, driver.last().Header)
	require.NoError(t, loaded.Append(ctx, loaded.DAG().WithRef("here")))
	require.Empty(t, driver.last().Records)
	require.NoError(t, loaded.Append(ctx, loaded.DAG().Back(1)))
	require.Empty(t, driver.last().Records)
	require.EqualValues(t, 6, loaded.Version())
}

func TestTwoWritersOnOneHead(t *testing.T) {
	driver, s := recording()
	base := dag.New().WithMetadata("title", "talk").User("hello").Assistant("hi")
	saved(t, s, "k", base)
	winner, loser := open(t, s, "k"), open(t, s, "k")
	require.NoError(t, winner.Append(ctx, winner.DAG().User("mine")))

	// The loser's nodes are kept under a head of their own, step by step.
	d := loser.DAG().User("yours")
	conflict := conflictOf(t, loser.Append(ctx, d))
	require.Equal(t, "k", conflict.Conversation)
	require.Equal(t, "main", conflict.Head)
	require.EqualValues(t, 1, conflict.Expect)
	require.EqualValues(t, 2, conflict.Current.Version)
	require.Equal(t, "main~"+node.ShortID(d.Head().ID()), conflict.KeptHead)
	require.Contains(t, conflict.Error(), conflict.KeptHead)
	require.True(t, dag.Equal(base, loser.DAG()), "after an error the conversation is what it was")
	require.Len(t, driver.last().Records, 1)

	d = d.Assistant("and more")
	again := conflictOf(t, loser.Append(ctx, d))
	require.Equal(t, conflict.KeptHead, again.KeptHead)
	require.Len(t, driver.last().Records, 1)

	kept, err := winner.Head(ctx, conflict.KeptHead)
	require.NoError(t, err)
	require.True(t, dag.Equal(d, kept.DAG()))
	require.Equal(t, base.Metadata(), kept.DAG().Metadata())
	require.EqualValues(t, 2, kept.Version())

	// Merged: both are in the conversation, and the kept head is removed.
	current, err := loser.Head(ctx, "main")
	require.NoError(t, err)
	merged := dag.Merge(dag.Branch{DAG: current.DAG()}, dag.Branch{DAG: kept.DAG()})
	require.NoError(t, current.Append(ctx, merged))
	require.NoError(t, kept.Remove(ctx))
	require.True(t, dag.Equal(merged, open(t, s, "k").DAG()))
	pruned, err := s.Prune(ctx, "k", false)
	require.NoError(t, err)
	require.Zero(t, pruned)
}

func TestWriterThatOnlyRewindsLosesWithoutAHead(t *testing.T) {
	_, s := recording()
	saved(t, s, "k", dag.New().User("one").User("two"))
	a, b := open(t, s, "k"), open(t, s, "k")
	require.NoError(t, a.Append(ctx, a.DAG().User("three")))
	require.Empty(t, conflictOf(t, b.Append(ctx, b.DAG().Back(1))).KeptHead)
}

func TestTwoWritersOfMetadataConflict(t *testing.T) {
	_, s := recording()
	saved(t, s, "k", dag.New().User("one"))
	a, b := open(t, s, "k"), open(t, s, "k")
	require.NoError(t, a.Append(ctx, a.DAG().WithMetadata("title", "a")))
	require.ErrorIs(t, b.Append(ctx, b.DAG().WithMetadata("title", "b")), store.ErrMoved)
}

func TestTwoWritersMakeOneConversation(t *testing.T) {
	_, s := recording()
	a, b := open(t, s, "k"), open(t, s, "k")
	require.NoError(t, a.Append(ctx, dag.New().User("first")))
	conflict := conflictOf(t, b.Append(ctx, dag.New().User("second")))
	kept, err := s.Head(ctx, "k", conflict.KeptHead)
	require.NoError(t, err)
	require.Equal(t, "second", kept.DAG().Head().Payload().(node.Message).Blocks.Text())
}

func TestEveryWritersNodesAreKept(t *testing.T) {
	_, s := recording()
	saved(t, s, "k", dag.New().User("start"))
	const writers, steps = 8, 5
	var wait sync.WaitGroup
	failures := make([]error, writers)
	for i := range writers {
		wait.Go(func() {
			c, err := s.Conversation(ctx, "k")
			for step := 0; step < steps && err == nil; step++ {
				d := c.DAG()
				if err = c.Append(ctx, d.User(fmt.Sprint(i, " ", step))); errors.Is(err, store.ErrMoved) {
					c, err = s.Conversation(ctx, "k")
				}
			}
			failures[i] = err
		})
	}
	wait.Wait()
	require.NoError(t, errors.Join(failures...))

	texts := map[string]bool{}
	for h, err := range s.Heads(ctx, "k", "") {
		require.NoError(t, err)
		c, err := s.Head(ctx, "k", h.Name)
		require.NoError(t, err)
		for _, n := range c.DAG().Nodes() {
			texts[n.Payload().(node.Message).Blocks.Text()] = true
		}
	}
	require.Len(t, texts, 1+writers*steps)
}

// TestForksAreAppendedToAtTheSameTime is for the race detector: a conversation and its fork share the set of stored nodes.
func TestForksAreAppendedToAtTheSameTime(t *testing.T) {
	_, s := recording()
	main := saved(t, s, "k", dag.New().User("start"))
	fork, err := main.Fork(ctx, "fork")
	require.NoError(t, err)

	var wait sync.WaitGroup
	failures := make([]error, 2)
	for i, c := range []*store.Conversation{main, fork} {
		wait.Go(func() {
			for range 20 {
				failures[i] = errors.Join(failures[i], c.Append(ctx, c.DAG().User("more")))
			}
		})
	}
	wait.Wait()
	require.NoError(t, errors.Join(failures...))
	require.Equal(t, 21, open(t, s, "k").DAG().Len())
}

func TestLostReplyIsNoConflict(t *testing.T) {
	driver, s := recording()
	c := saved(t, s, "k", dag.New().User("one"))
	lost := errors.New("connection reset")
	driver.after = func(store.AppendRequest) error { return lost }
	d := c.DAG().User("two").WithMetadata("k", "v")
	require.ErrorIs(t, c.Append(ctx, d), lost)
	require.Equal(t, 1, c.DAG().Len())

	driver.after = nil
	require.NoError(t, c.Append(ctx, d))
	require.EqualValues(t, 2, c.Version())
	require.NoError(t, c.Append(ctx, d.User("three")))
	require.True(t, dag.Equal(d.User("three"), open(t, s, "k").DAG()))

	// The reply of keeping refused nodes may be lost too.
	loser := open(t, s, "k")
	require.NoError(t, c.Append(ctx, c.DAG().User("four")))
	driver.after = func(a store.AppendRequest) error { return lost }
	mine := loser.DAG().User("other")
	err := loser.Append(ctx, mine)
	require.ErrorIs(t, err, lost)
	require.ErrorIs(t, err, store.ErrMoved)
	driver.after = nil
	kept, err := s.Head(ctx, "k", conflictOf(t, loser.Append(ctx, mine.Assistant("on"))).KeptHead)
	require.NoError(t, err)
	require.True(t, dag.Equal(mine.Assistant("on"), kept.DAG()))
}

func TestDeletedConversationStaysDeleted(t *testing.T) {
	_, s := recording()
	c := saved(t, s, "k", dag.New().User("one"))
	require.NoError(t, s.Delete(ctx, "k"))
	require.Empty(t, conflictOf(t, c.Append(ctx, c.DAG().User("two"))).KeptHead)
	for key := range s.Conversations(ctx, "") {
		t.Fatal("the append made it again:", key)
	}
	require.ErrorIs(t, c.Remove(ctx), store.ErrMoved)
}

func TestPrunedNodesAreStoredAgain(t *testing.T) {
	driver, s := recording()
	d := dag.New().User("one").User("two", image(40_000, "A"))
	a := saved(t, s, "k", d)
	b := open(t, s, "k")
	require.NoError(t, a.Append(ctx, d.Back(1)))
	pruned, err := s.Prune(ctx, "k", true)
	require.NoError(t, err)
	require.Equal(t, 1, pruned.Records)
	again, err := s.Prune(ctx, "k", false)
	require.NoError(t, err)
	require.Equal(t, pruned, again)

	// b continues what was pruned: its refused nodes are kept with all that they need.
	want := b.DAG().User("three")
	kept, err := s.Head(ctx, "k", conflictOf(t, b.Append(ctx, want)).KeptHead)
	require.NoError(t, err)
	require.Equal(t, written(t, want), written(t, kept.DAG()))
	require.Len(t, driver.last().Records, 3)

	// a goes back to it.
	require.NoError(t, kept.Remove(ctx))
	_, err = s.Prune(ctx, "k", false)
	require.NoError(t, err)
	require.NoError(t, a.Append(ctx, d))
	require.Equal(t, written(t, d), written(t, open(t, s, "k").DAG()))
	_, err = b.Fork(ctx, "fork")
	require.NoError(t, err)
}

func TestForkCopiesNothing(t *testing.T) {
	driver, s := recording()
	d := dag.New().WithMetadata("k", "v").User("one").WithRef("here").User("two")
	c := saved(t, s, "k", d)
	fork, err := c.Fork(ctx, "fork")
	require.NoError(t, err)
	require.Empty(t, driver.last().Records)
	require.True(t, dag.Equal(d, fork.DAG()))
	require.Equal(t, "fork", fork.Name())
	loaded, err := s.Head(ctx, "k", "fork")
	require.NoError(t, err)
	require.Equal(t, written(t, d), written(t, loaded.DAG()))
	_, err = c.Fork(ctx, "fork")
	require.ErrorIs(t, err, store.ErrMoved)

	require.NoError(t, fork.Append(ctx, d.Back(1).User("instead")))
	require.NoError(t, c.Append(ctx, d.User("three")))
	require.Len(t, driver.last().Records, 1)
	fork, err = s.Head(ctx, "k", "fork")
	require.NoError(t, err)
	require.Equal(t, written(t, d.Back(1).WithHeads(fork.DAG().Head())), written(t, fork.DAG()))

	renamed, err := fork.Fork(ctx, "attempt 2")
	require.NoError(t, err)
	require.NoError(t, fork.Remove(ctx))
	require.True(t, dag.Equal(fork.DAG(), renamed.DAG()))
	var names []string
	for h, err := range s.Heads(ctx, "k", "") {
		require.NoError(t, err)
		names = append(names, h.Name)
	}
	require.Equal(t, []string{"attempt 2", "main"}, names)
	_, err = renamed.Fork(ctx, "main")
	require.ErrorIs(t, err, store.ErrMoved)

	empty, err := open(t, s, "new").Fork(ctx, "fork")
	require.NoError(t, err)
	require.Zero(t, empty.DAG().Len())
}

func TestRemovedHeadIsMadeAgainByAnAppend(t *testing.T) {
	_, s := recording()
	c := saved(t, s, "k", dag.New().User("one"))
	old := open(t, s, "k")
	require.NoError(t, c.Append(ctx, c.DAG().User("two")))
	require.ErrorIs(t, old.Remove(ctx), store.ErrMoved)
	require.NoError(t, c.Remove(ctx))
	require.Zero(t, c.Version())
	require.NoError(t, c.Append(ctx, c.DAG().User("three")))
	require.EqualValues(t, 1, c.Version())
	require.Equal(t, 3, open(t, s, "k").DAG().Len())
}

func TestAtReadsOnlyWhatIsNew(t *testing.T) {
	driver, s := recording()
	saved(t, s, "k", counting().User("one").User("two"))
	c := open(t, s, "k")
	other := open(t, s, "k")
	require.NoError(t, other.Append(ctx, other.DAG().WithSource(node.Source{}).User("three").User("four")))

	read := 0
	driver.read = func(r store.Record) (store.Record, bool) {
		read++
		return r, true
	}
	now, err := c.Head(ctx, "main")
	require.NoError(t, err)
	require.Equal(t, 2, read)
	require.True(t, dag.Equal(other.DAG(), now.DAG()))
	require.Same(t, c.DAG().Head(), now.DAG().Nodes()[1], "known nodes are shared")
	require.Equal(t, 2, c.DAG().Len())
	require.NoError(t, now.Append(ctx, now.DAG().User("five")))
}

func (r *recorder) Read(
	ctx context.Context, conversation string, from, have []node.ID,
) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if r.before != nil {
			if err := r.before(); err != nil {
				yield(store.Record{}, err)
				return
			}
		}
		for rec, err := range r.Driver.Read(ctx, conversation, from, have) {
			if err == nil && r.read != nil {
				var there bool
				if rec, there = r.read(rec); !there {
					continue
				}
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

func TestDamagedRecordsAreNamed(t *testing.T) {
	driver, s := recording()
	d := dag.New().User("one").User("two", image(40_000, "A")).SubGraph("sub", dag.New().User("child")).User("three")
	saved(t, s, "k", d)
	nodes := d.WithChildren()
	at := nodes[1].ID()
	change := func(edit func(*store.Record)) func(store.Record) (store.Record, bool) {
		return func(r store.Record) (store.Record, bool) {
			if r.ID == at {
				edit(&r)
			}
			return r, true
		}
	}
	resum := func(r *store.Record) { r.Sum = store.SumOf(r.Line) }

	for name, damage := range map[string]func(*store.Record){
		"a byte changed":       func(r *store.Record) { r.Line = bytes.Replace(r.Line, []byte("two"), []byte("twO"), 1) },
		"a line cut off":       func(r *store.Record) { r.Line = r.Line[:20] },
		"an empty line":        func(r *store.Record) { r.Line = nil },
		"another sum":          func(r *store.Record) { r.Sum[0]++ },
		"no JSON":              func(r *store.Record) { r.Line = []byte("x"); resum(r) },
		"another node's line":  func(r *store.Record) { r.Line = nodes[0].Append(nil); resum(r) },
		"a link less":          func(r *store.Record) { r.Links = nil },
		"another link":         func(r *store.Record) { r.Links = []node.ID{nodes[2].ID()} },
		"a line of a stranger": func(r *store.Record) { r.Line = dag.New().User("x").Head().Append(nil); resum(r) },
	} {
		driver.read = change(damage)
		_, err := s.Conversation(ctx, "k")
		require.ErrorIs(t, err, store.ErrRecord, name)
		var about *store.RecordError
		require.ErrorAs(t, err, &about, name)
		require.Equal(t, "k", about.Conversation, name)
		require.Equal(t, at, about.ID, name)
		require.Contains(t, err.Error(), at.String(), name)
	}

	// A record that is missing is found by the first that refers to it.
	for i, n := range nodes[:len(nodes)-1] {
		driver.read = func(r store.Record) (store.Record, bool) { return r, r.ID != n.ID() }
		_, err := s.Conversation(ctx, "k")
		require.ErrorIs(t, err, node.ErrParent, i)
		require.ErrorIs(t, err, store.ErrRecord, i)
	}
	driver.read = func(r store.Record) (store.Record, bool) { return r, r.ID != d.Head().ID() }
	_, err := s.Conversation(ctx, "k")
	require.ErrorContains(t, err, "a head is not a node")

	driver.read = nil
	require.True(t, dag.Equal(d, open(t, s, "k").DAG()))
}

func TestConversationIsNotEmptyBecauseARecordIsMissing(t *testing.T) {
	driver, s := recording()
	saved(t, s, "k", dag.New().User("one"))
	reads := 0
	driver.before = func() error {
		reads++
		return &store.RecordError{Conversation: "k", Err: store.ErrNotStored}
	}
	_, err := s.Conversation(ctx, "k")
	require.ErrorIs(t, err, store.ErrRecord)
	require.Equal(t, 1, reads, "the head has not moved: it is not read again")
}

func TestOpeningReadsAgainIfTheHeadMovedAndWasPruned(t *testing.T) {
	driver, s := recording()
	saved(t, s, "k", dag.New().User("one"))
	moves := 0
	driver.before = func() error {
		if moves++; moves > 3 {
			return nil
		}
		h, err := driver.Driver.Head(ctx, "k", "main")
		require.NoError(t, err)
		d := dag.New().User(fmt.Sprint("instead ", moves))
		line := d.Head().Append(nil)
		r := store.Record{ID: d.Head().ID(), Line: line, Sum: store.SumOf(line)}
		_, err = driver.Driver.Append(ctx, store.AppendRequest{Conversation: "k", Head: "main", Expect: h.Version,
			Records: []store.Record{r}, Nodes: []node.ID{r.ID}})
		require.NoError(t, err)
		_, err = driver.Driver.Prune(ctx, "k", false)
		require.NoError(t, err)
		return nil
	}
	c := open(t, s, "k")
	require.EqualValues(t, 4, c.Version())
	require.Equal(t, "instead 3", c.DAG().Head().Payload().(node.Message).Blocks.Text())
}

func TestDamagedHeadIsNamed(t *testing.T) {
	driver, s := recording()
	d := dag.New().User("one")
	a := store.AppendRequest{Conversation: "k", Head: "main", Header: []byte(`{"format":"plait","version":9}`)}
	_, err := driver.Append(ctx, a)
	require.NoError(t, err)
	_, err = s.Conversation(ctx, "k")
	require.ErrorIs(t, err, dag.ErrVersion)
	require.Contains(t, err.Error(), `"k"`)

	a.Expect, a.Header = 1, []byte(`{"format":"plait","version":1,"heads":["`+d.Head().ID().String()+`"]}`)
	_, err = driver.Append(ctx, a)
	require.NoError(t, err)
	_, err = s.Conversation(ctx, "k")
	require.ErrorContains(t, err, "a head is not a node")
	_, err = open(t, s, "new").Head(ctx, "main")
	require.ErrorIs(t, err, store.ErrNotStored)
}

func TestRewriteErasesRedactedContent(t *testing.T) {
	driver, s := recording()
	d := dag.New().User("hello").User("SECRET", image(40_000, "S")).Assistant("lost SECRET")
	d = d.Back(1).User("SECRET too").Assistant("fine").SubGraph("sub", dag.New().User("child SECRET"))
	c := saved(t, s, "k", dag.New().User("hello").User("left behind SECRET"))
	require.NoError(t, c.Append(ctx, d))
	fork, err := c.Fork(ctx, "fork")
	require.NoError(t, err)

	child := d.WithChildren()[3].ID()
	clean := c.DAG().Redact(d.Nodes()[1].ID(), child)
	require.NoError(t, clean.Err())
	require.ErrorIs(t, c.Append(ctx, clean), dag.ErrNotErased)
	require.NoError(t, c.Rewrite(ctx, clean))
	require.True(t, driver.last().Replace)
	require.Equal(t, written(t, clean), written(t, open(t, s, "k").DAG()))

	for h, err := range s.Heads(ctx, "k", "") {
		require.NoError(t, err)
		for r, err := range driver.Driver.Read(ctx, "k", h.Nodes, nil) {
			require.NoError(t, err)
			require.NotContains(t, string(r.Line), "SECRET")
		}
	}
	pruned, err := s.Prune(ctx, "k", true)
	require.NoError(t, err)
	require.Zero(t, pruned)
	require.NoError(t, c.Append(ctx, clean.User("on")))
	require.Len(t, driver.last().Records, 1)
	require.NoError(t, fork.Append(ctx, fork.DAG().User("a fork goes on")))

	// A conflict changes nothing.
	old := open(t, s, "k")
	require.NoError(t, c.Append(ctx, c.DAG().User("again")))
	require.Empty(t, conflictOf(t, old.Rewrite(ctx, old.DAG().Redact(old.DAG().Head().ID()))).KeptHead)
	require.Equal(t, written(t, c.DAG()), written(t, open(t, s, "k").DAG()))
}

// TestJoinedConversationIsStoredRedacted appends to a conversation that is new, has the redacted part, or has the other
// one.
func TestJoinedConversationIsStoredRedacted(t *testing.T) {
	asked := dag.New().User("Where is Ann?").Assistant("", content.ToolUse{ID: "call_1", Name: "find", Input: "{}"})
	ran := asked.AppendExecutions(node.ToolExecution{CallID: "call_1", Tool: "find", Input: "{}", Result: content.Words("In Paris.")})
	whole := ran.CloseTools().Assistant("She is there.")
	erased := ran.Redact(ran.Head().ID())
	result := ran.Head().ID()

	for name, before := range map[string]dag.DAG{"new": dag.New(), "has erased": erased, "has whole": whole} {
		for order, joined := range map[string]dag.DAG{"erased first": erased.Join(whole), "whole first": whole.Join(erased)} {
			t.Run(name+"/"+order, func(t *testing.T) {
				s := store.New(store.Memory())
				c := saved(t, s, "k", before)
				err := c.Append(ctx, joined)
				if name == "has whole" {
					require.ErrorIs(t, err, dag.ErrNotErased)
					return
				}
				require.NoError(t, err)
				loaded := open(t, s, "k").DAG()
				require.True(t, loaded.Verify().OK(), loaded.Verify())
				require.True(t, loaded.Node(result).Redacted())
			})
		}
	}
}

func TestAtReadsWhatARewriteHasForgotten(t *testing.T) {
	_, s := recording()
	d := dag.New().User("one").User("two")
	c := saved(t, s, "k", d)
	_, err := c.Fork(ctx, "fork")
	require.NoError(t, err)
	other, err := c.Head(ctx, "main")
	require.NoError(t, err)
	require.NoError(t, other.Rewrite(ctx, d.Back(1)))
	fork, err := c.Head(ctx, "fork")
	require.NoError(t, err)
	require.True(t, dag.Equal(d, fork.DAG()))
}

func TestAppendReturnsTheErrorOfTheChain(t *testing.T) {
	_, s := recording()
	c := saved(t, s, "k", counting().User("one"))
	require.ErrorIs(t, c.Append(ctx, c.DAG().User("")), dag.ErrEmpty)
	require.ErrorIs(t, c.Append(ctx, counting().User("another with the ID of the first")), dag.ErrDuplicateID)
	require.ErrorIs(t, open(t, s, "new").Append(ctx, dag.New().User("")), dag.ErrEmpty)

	done, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, c.Append(done, c.DAG().User("two")), context.Canceled)
	require.Equal(t, 1, c.DAG().Len())
	_, err := s.Conversation(done, "k")
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, c.Append(ctx, c.DAG().User("two")))
}

func TestAppendByIsPartOfATransaction(t *testing.T) {
	driver, s := recording()
	c := saved(t, s, "k", dag.New().User("one"))
	calls := 0
	write := func(ctx context.Context, a store.AppendRequest) (store.Head, error) {
		calls++
		return driver.Append(ctx, a)
	}
	require.NoError(t, c.AppendWith(ctx, c.DAG(), write))
	require.Equal(t, 1, calls, "it is called even if nothing is new")
	require.EqualValues(t, 2, c.Version())

	failed := errors.New("rolled back")
	d := c.DAG().User("two")
	rolledBack := func(context.Context, store.AppendRequest) (store.Head, error) { return store.Head{}, failed }
	require.ErrorIs(t, c.AppendWith(ctx, d, rolledBack), failed)
	require.Equal(t, 1, c.DAG().Len())

	other := open(t, s, "k")
	require.NoError(t, other.Append(ctx, other.DAG().User("other")))
	require.NotEmpty(t, conflictOf(t, c.AppendWith(ctx, d, write)).KeptHead)
}

func TestWatchYieldsEachMoveOfItsHead(t *testing.T) {
	driver, s := recording()
	c := open(t, s, "k")
	var read []node.ID
	driver.read = func(r store.Record) (store.Record, bool) {
		read = append(read, r.ID)
		return r, true
	}
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	want := 0
	var last error
	for d, err := range watched(t, c, watch) {
		if last = err; err != nil {
			break
		}
		want++
		require.Equal(t, want, d.Len())
		require.LessOrEqual(t, len(read), 1, "only what is new is read")
		writer := open(t, s, "k")
		other := saved(t, s, fmt.Sprint("k", want), dag.New().User("another conversation"))
		_, err := other.Fork(ctx, "fork")
		require.NoError(t, err)
		switch want {
		case 5:
			require.NoError(t, writer.Remove(ctx))
		default:
			_, err := writer.Fork(ctx, fmt.Sprint("fork ", want))
			require.NoError(t, err)
			require.NoError(t, writer.Append(ctx, writer.DAG().User("more")))
		}
		read = nil
	}
	require.Equal(t, 5, want)
	require.ErrorIs(t, last, store.ErrNotStored)

	cancel()
	for _, err := range c.Watch(watch) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestWatchPassesOverOtherHeads(t *testing.T) {
	driver, s := recording()
	c := saved(t, s, "k", dag.New().User("one"))
	driver.watch = []store.Head{{Name: "fork", Version: 1}, {Name: "main", Version: 1}, {Name: "main~", Version: 2}}
	yielded := 0
	for _, err := range c.Watch(ctx) {
		require.NoError(t, err)
		yielded++
	}
	require.Equal(t, 1, yielded)
}

// watched is Watch of a conversation whose first version is made while it is watched.
func watched(t *testing.T, c *store.Conversation, ctx context.Context) func(func(dag.DAG, error) bool) {
	return func(yield func(dag.DAG, error) bool) {
		var wait sync.WaitGroup
		defer wait.Wait()
		wait.Go(func() { _ = c.Append(ctx, dag.New().User("first")) })
		c.Watch(ctx)(yield)
	}
}

func TestListsAreReadInPages(t *testing.T) {
	driver := store.Memory()
	s := store.New(driver)
	const many = 2500

	for i := range many {
		_, err := driver.Append(ctx, store.AppendRequest{Conversation: fmt.Sprintf("user/%04d", i), Head: "main"})
		require.NoError(t, err)
		_, err = driver.Append(ctx, store.AppendRequest{Conversation: "other", Head: fmt.Sprintf("h%04d", i)})
		require.NoError(t, err)
	}

	count := 0
	for key, err := range s.Conversations(ctx, "user/") {
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("user/%04d", count), key)
		count++
	}
	require.Equal(t, many, count)

	count = 0
	for h, err := range s.Heads(ctx, "other", "") {
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("h%04d", count), h.Name)
		if count++; count == many-1 {
			break
		}
	}

	for _, err := range s.Conversations(ctx, "\x00") {
		require.ErrorIs(t, err, store.ErrName)
	}
}

func TestKeptHeadHasANameThatIsAllowed(t *testing.T) {
	for _, name := range []string{strings.Repeat("n", 200), strings.Repeat("é", 100), "x" + strings.Repeat("😀", 49), "main"} {
		_, s := recording()
		main := saved(t, s, "k", dag.New().User("one"))
		_, err := main.Fork(ctx, name)
		if name != "main" {
			require.NoError(t, err)
		}
		a, err := s.Head(ctx, "k", name)
		require.NoError(t, err)
		b, err := a.Head(ctx, name)
		require.NoError(t, err)
		require.NoError(t, a.Append(ctx, a.DAG().User("two")))
		kept := conflictOf(t, b.Append(ctx, b.DAG().User("three"))).KeptHead
		require.NoError(t, store.CheckName(kept))
		require.Greater(t, len(kept), min(len(name), 195))
	}
}

func TestGrowthOfASteps(t *testing.T) {
	chain := func(n int) dag.DAG {
		d := counting()
		for range n {
			d = d.User("A message of some length, as people write them.")
		}
		return d
	}

	growthtest.Run(t, []growthtest.Case{
		{Name: "append", Setup: func(t testing.TB, n int) func() {
			c := saved(t, store.New(store.Memory()), "k", chain(n))
			next := c.DAG().User("more").Assistant("and more")
			return func() { require.NoError(t, c.Append(ctx, next)) }
		}},
		{Name: "append to a loaded conversation", Setup: func(t testing.TB, n int) func() {
			s := store.New(store.Memory())
			saved(t, s, "k", chain(n))
			c := open(t, s, "k")
			next := c.DAG().User("more")
			return func() { require.NoError(t, c.Append(ctx, next)) }
		}},
		{Name: "fork", Setup: func(t testing.TB, n int) func() {
			c := saved(t, store.New(store.Memory()), "k", chain(n))
			return func() {
				_, err := c.Fork(ctx, "fork")
				require.NoError(t, err)
			}
		}},
		{Name: "a refused append", Setup: func(t testing.TB, n int) func() {
			s := store.New(store.Memory())
			c := saved(t, s, "k", chain(n))
			other := open(t, s, "k")
			require.NoError(t, other.Append(ctx, other.DAG().WithSource(node.Source{}).User("other")))
			next := c.DAG().User("more")
			return func() { require.ErrorIs(t, c.Append(ctx, next), store.ErrMoved) }
		}},
		{Name: "opening a head again", Setup: func(t testing.TB, n int) func() {
			s := store.New(store.Memory())
			c := saved(t, s, "k", chain(n))
			other := open(t, s, "k")
			require.NoError(t, other.Append(ctx, other.DAG().WithSource(node.Source{}).User("other")))
			return func() {
				_, err := c.Head(ctx, store.Main)
				require.NoError(t, err)
			}
		}},
		{Name: "open", Growth: growthtest.Linear, Setup: func(t testing.TB, n int) func() {
			s := store.New(store.Memory())
			saved(t, s, "k", chain(n))
			return func() { open(t, s, "k") }
		}},
	})
}
