package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// Run checks a driver against the rules of [store.Driver], with one subtest for each. NewDriver returns an empty store,
// and closes it with t.Cleanup.
//
// Use goleak in TestMain to find goroutines left behind by a sequence.
func Run(t *testing.T, newDriver func(t *testing.T) store.Driver) {
	for _, c := range driverCases {
		t.Run(c.name, func(t *testing.T) {
			// Without this limit, a driver that never wakes a watcher would hang. A busy machine may take long.
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			t.Cleanup(func() {
				if t.Failed() && c.change != "" {
					t.Logf("what to change in the driver: %s", c.change)
				}
			})
			c.check(&driverTest{T: t, Driver: newDriver(t), ctx: ctx})
		})
	}
}

// driverCases has a case for each rule of the interface comment, in its order.
var driverCases = []struct {
	name   string
	check  func(t *driverTest)
	change string // what to do about a failure; "" if the name says it
}{
	{"names are compared byte by byte", (*driverTest).hostileNames,
		"compare and sort names as bytes: no collation, no trimming, no wildcards in Page.Prefix"},
	{"a context that is done has no effect", (*driverTest).doneContext,
		"return the error of a context that is done, before any effect"},
	{"slices belong to the caller", (*driverTest).ownSlices,
		"copy the slices that you keep and those that you return"},
	{"conversations share nothing", (*driverTest).separate,
		"put the conversation into every key and every query"},
	{"a conversation exists as long as it has a head", (*driverTest).exists,
		"list conversations by their heads; reading makes none; without a head all of it goes"},

	{"an append stores records and moves a head", (*driverTest).appendStores,
		"store the head and the records that AppendRequest.Apply returns, and return records in the order in which they were first stored"},
	{"an append to another version is refused", (*driverTest).conflict,
		"give the stored head to AppendRequest.Apply, and store its new one whole"},
	{"of many writers one wins", (*driverTest).race,
		"read the head in the transaction that writes it, so that no other writer comes in between"},
	{"an append with an unknown outcome can be repeated", (*driverTest).repeated,
		"return the *store.ConflictError of AppendRequest.Apply as it is"},
	{"a stored record is accepted again", (*driverTest).acceptedAgain,
		"store the records that AppendRequest.Apply returns alone, and give it those that are stored"},
	{"a stored record is not changed", (*driverTest).unchanged,
		"give the stored record to AppendRequest.Apply, with its links and its sum"},
	{"a stored record is replaced on request", (*driverTest).replaced,
		"overwrite a record that AppendRequest.Apply returns; it keeps its place in the order"},
	{"a link to nothing is refused", (*driverTest).missingLink,
		"return nil from stored for a record of this conversation that is not there"},
	{"a head to nothing is refused", (*driverTest).missingTo,
		"return nil from stored for a record of this conversation that is not there"},
	{"an append that makes no sense is refused", (*driverTest).senseless,
		"return the error of AppendRequest.Check, or of AppendRequest.Apply, as it is"},
	{"a head keeps its header", (*driverTest).header,
		"store the head of AppendRequest.Apply whole, and return nil and an empty header as they came"},
	{"a head moves without records", (*driverTest).movesAlone,
		"store the head also if there are no records"},
	{"a fork is a further head", (*driverTest).fork,
		"key a head by its conversation and its name"},
	{"an append may be large", (*driverTest).large,
		"allow lines of megabytes and thousands of records in an append"},

	{"a head that is not there", (*driverTest).noHead,
		"wrap store.ErrNotStored in the error"},
	{"heads are listed in pages", (*driverTest).heads,
		"sort by name, begin after Page.After, and end after Page.Max"},
	{"conversations are listed in pages", (*driverTest).conversations,
		"sort by key, begin after Page.After, and end after Page.Max"},

	{"a record comes once, after its links", (*driverTest).readOrder,
		"yield records in the order in which they were first stored, each once"},
	{"a read leaves out what the caller has", (*driverTest).readHave,
		"leave out have, and what only have reaches"},
	{"a head is opened with what is read from it", (*driverTest).opens,
		"return the head as Head does, and as Records all of the conversation or those of Read"},
	{"a read of nothing fails", (*driverTest).readMissing,
		"end with a *store.RecordError with store.ErrNotStored, beside a zero record"},
	{"an outline is kept with its record", (*driverTest).outlines,
		"store Record.Outline with its record, and leave it out in Read"},
	{"nothing is outlined without Records", (*driverTest).outlinesNothing,
		"leave Opened.Outlined empty in a driver that has no Records"},
	{"records are read by ID", (*driverTest).records,
		"yield the records of the IDs alone, once each, in the order in which they were stored"},
	{"a read can be left", (*driverTest).readLeft,
		"end the query when yield returns false"},
	{"readers see whole appends", (*driverTest).readPrefix,
		"write an append in one transaction, and read in one"},

	{"a head is removed at its version", (*driverTest).removeHead,
		"compare the version; else return a *store.ConflictError with the head as it is, or with its name alone; the last head takes all records along"},
	{"a deleted conversation is gone", (*driverTest).delete,
		"remove heads and records of the conversation, and no others"},
	{"prune removes what no head reaches", (*driverTest).prune, ""},
	{"a context that is done prunes nothing", (*driverTest).pruneDone, ""},
	{"a dry run removes nothing", (*driverTest).pruneDry, ""},
	{"prune removes much in parts", (*driverTest).pruneMuch, ""},
	{"prune keeps what a moving head reaches", (*driverTest).pruneRace, ""},

	{"watch yields the heads and then each move", (*driverTest).watch, ""},
	{"watch never misses the last version", (*driverTest).watchLast, ""},
	{"watch reports removed heads", (*driverTest).watchRemoved, ""},
	{"watch waits for a conversation", (*driverTest).watchEarly, ""},
	{"watch ends with its context", (*driverTest).watchEnds, ""},
}

// driverTest is one case.
type driverTest struct {
	*testing.T
	store.Driver
	ctx context.Context
}

// linked returns a new record with these links.
func linked(links ...node.ID) store.Record {
	r := record()
	r.Links = links
	return r
}

// inChain returns n new records, each linked to the one before it.
func inChain(n int) []store.Record {
	list := []store.Record{record()}
	for len(list) < n {
		list = append(list, linked(list[len(list)-1].ID))
	}
	return list
}

// step returns an append to head "main" of conversation "c". The head then points to the last record.
func step(expect uint64, records ...store.Record) store.AppendRequest {
	a := store.AppendRequest{Conversation: "c", Head: "main", Expect: expect, Records: records}
	if len(records) > 0 {
		a.Nodes = []node.ID{records[len(records)-1].ID}
	}
	return a
}

func (t *driverTest) append(a store.AppendRequest) store.Head {
	t.Helper()
	h, err := t.Append(t.ctx, a)
	require.NoError(t, err)
	return h
}

// refuse checks that an append fails with an error about the record, and stores nothing.
func (t *driverTest) refuse(a store.AppendRequest, id node.ID, want error) {
	t.Helper()
	before := t.all()
	_, err := t.Append(t.ctx, a)
	require.ErrorIs(t, err, want)
	require.ErrorIs(t, err, store.ErrRecord)
	var about *store.RecordError
	require.ErrorAs(t, err, &about)
	require.Equal(t, a.Conversation, about.Conversation)
	require.Equal(t, id, about.ID)
	require.Equal(t, before, t.all())

	// No head reaches the other records of the append, so all would not show them.
	for _, r := range a.Records {
		if r.ID != id {
			t.notStored(a.Conversation, r)
		}
	}
}

// notStored fails the test if a record is stored, unless it was stored before the case began to look.
func (t *driverTest) notStored(conversation string, r store.Record) {
	t.Helper()
	_, err := collect(t.Read(t.ctx, conversation, []node.ID{r.ID}, nil))
	require.ErrorIs(t, err, store.ErrNotStored)
}

// all returns the heads of all conversations with everything in reach.
func (t *driverTest) all() map[string]any {
	t.Helper()
	all := map[string]any{}
	keys, err := t.Conversations(t.ctx, store.Page{})
	require.NoError(t, err)
	for _, key := range keys {
		heads, err := t.Heads(t.ctx, key, store.Page{})
		require.NoError(t, err)
		for _, h := range heads {
			all[key+"\n"+h.Name] = h
			all[key+"\n"+h.Name+"\nrecords"] = t.read(key, h.Nodes...)
		}
	}
	return all
}

// read returns the records of Read, and checks the order.
func (t *driverTest) read(conversation string, from ...node.ID) []store.Record {
	t.Helper()
	records, err := collect(t.Read(t.ctx, conversation, from, nil))
	require.NoError(t, err)
	t.ordered(records, nil)
	return records
}

// ordered fails the test unless each record comes once and after its links.
func (t *driverTest) ordered(records []store.Record, have []node.ID) {
	t.Helper()
	seen := map[node.ID]bool{}
	for _, id := range have {
		seen[id] = true
	}
	for _, r := range records {
		require.False(t, seen[r.ID], "a record comes twice")
		for _, id := range r.Links {
			require.True(t, seen[id], "a record comes before one that it is linked to")
		}
		seen[r.ID] = true
	}
}

// collect returns the values of a sequence, and its error. The error must come last and alone.
func collect[T any](seq iter.Seq2[T, error]) (list []T, err error) {
	for v, e := range seq {
		if err != nil {
			return list, errors.New("more came after the error")
		}
		if err = e; err == nil {
			list = append(list, v)
		}
	}
	return list, err
}

// normal returns a record with nil in place of empty slices, to compare it.
func normal(r store.Record) store.Record {
	r.Links = append([]node.ID(nil), r.Links...)
	r.Line = append([]byte(nil), r.Line...)
	return r
}

// same requires two lists with the same records in any order.
func (t *driverTest) same(want, got []store.Record) {
	t.Helper()
	require.Len(t, got, len(want))
	byID := map[node.ID]store.Record{}
	for _, r := range got {
		byID[r.ID] = normal(r)
	}
	for _, r := range want {
		require.Equal(t, normal(r), byID[r.ID])
	}
}

func idsOf(records ...store.Record) (ids []node.ID) {
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	return ids
}

// conflictOf requires a conflict, and returns it.
func (t *driverTest) conflictOf(err error) *store.ConflictError {
	t.Helper()
	require.ErrorIs(t, err, store.ErrMoved)
	var c *store.ConflictError
	require.ErrorAs(t, err, &c)
	require.Empty(t, c.KeptHead)
	return c
}

func (t *driverTest) head(conversation, name string) store.Head {
	t.Helper()
	h, err := t.Head(t.ctx, conversation, name)
	require.NoError(t, err)
	return h
}

// hostile are difficult names: a database may confuse, trim, fold or misinterpret them. They are sorted.
var hostile = func() []string {
	names := []string{
		" ", "  ", "a", "A", "a ", " a", "á", "a\u0301", "ß", "ss", "ı", "i", "I", "İ", "%", "_", "a%", "a_", "ab", "a*",
		"*", "?", "[a-z]", "'", "''", `"`, "`", `\`, `\\`, "';--", "'; DROP TABLE nodes; --", "$1", "?1", ":a", "@a", "{}",
		"null", "NULL", "0", "00", "1e3", "true", "..", ".", "/", "a/b", "a\\b", "\u00a0", "\u200b", "\u202e", "\ufeff",
		"\ufffd", "😀", "é", strings.Repeat("n", 200),
		strings.Repeat("é", 100), "main", "Main", "main~", "main\u00ad",
	}
	slices.Sort(names)
	return names
}()

func (t *driverTest) hostileNames() {
	for i, name := range hostile {
		r := record()
		a := store.AppendRequest{Conversation: name, Head: name, Records: []store.Record{r}, Nodes: idsOf(r)}
		a.Header = []byte{byte(i)}
		t.append(a)
		a.Conversation = "c"
		t.append(a)
	}

	// Each name is a conversation and a head of its own, in the order of bytes.
	keys, err := t.Conversations(t.ctx, store.Page{})
	require.NoError(t, err)
	want := append(slices.Clone(hostile), "c")
	slices.Sort(want)
	require.Equal(t, want, keys)

	heads, err := t.Heads(t.ctx, "c", store.Page{})
	require.NoError(t, err)
	for i, name := range hostile {
		require.Equal(t, name, heads[i].Name)
		require.Equal(t, []byte{byte(i)}, heads[i].Header)
		require.Equal(t, heads[i], t.head("c", name))
		require.Equal(t, heads[i].Nodes, t.head(name, name).Nodes)

		after, err := t.Heads(t.ctx, "c", store.Page{After: name, Limit: 1})
		require.NoError(t, err)
		if i+1 < len(hostile) {
			require.Equal(t, heads[i+1:i+2], after)
		} else {
			require.Empty(t, after)
		}

		prefixed, err := t.Conversations(t.ctx, store.Page{Prefix: name})
		require.NoError(t, err)
		others := func(s string) bool { return !strings.HasPrefix(s, name) }
		require.Equal(t, slices.DeleteFunc(slices.Clone(want), others), prefixed)

		var names []string
		heads, err := t.Heads(t.ctx, "c", store.Page{Prefix: name})
		require.NoError(t, err)
		for _, h := range heads {
			names = append(names, h.Name)
		}
		require.Equal(t, slices.DeleteFunc(slices.Clone(hostile), others), names)
	}

	// A name with a wildcard of SQL removes nothing else.
	require.NoError(t, t.Delete(t.ctx, "%"))
	require.NoError(t, t.RemoveHead(t.ctx, "c", "_", 1))
	keys, err = t.Conversations(t.ctx, store.Page{})
	require.NoError(t, err)
	require.Len(t, keys, len(want)-1)
	heads, err = t.Heads(t.ctx, "c", store.Page{})
	require.NoError(t, err)
	require.Len(t, heads, len(hostile)-1)
}

func (t *driverTest) doneContext() {
	r := record()
	t.append(step(0, r))

	before := t.all()

	ctx, cancel := context.WithCancel(t.ctx)
	cancel()
	refused := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, context.Canceled)
	}

	_, err := t.Append(ctx, step(1, linked(r.ID)))
	refused(err)
	_, err = t.Head(ctx, "c", "main")
	refused(err)
	_, err = t.Heads(ctx, "c", store.Page{})
	refused(err)
	_, err = collect(t.Read(ctx, "c", idsOf(r), nil))
	refused(err)

	_, err = t.Conversations(ctx, store.Page{})
	refused(err)
	refused(t.RemoveHead(ctx, "c", "main", 1))
	refused(t.Delete(ctx, "c"))
	require.Equal(t, before, t.all())
}

// outline returns an outline in its saved form, with one node to load and one absent node, whose depth is n.
func outline(id node.ID, n byte) []byte {
	text := []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1}
	text = append(append(append(text, id[:]...), make([]byte, len(id))...), 0, 0, 0, n)
	sum := store.SumOf(append(id[:], text...))
	return append(sum[:], text...)
}

func (t *driverTest) outlines() {
	t.Records(t.ctx, "c", nil) // skips the case for a driver without it
	list := inChain(3)
	one, two := outline(list[0].ID, 1), outline(list[1].ID, 2)
	list[1].Outline = two
	t.append(step(0, list...))
	outlined := func(want ...node.ID) {
		t.Helper()
		o, err := t.Open(t.ctx, "c", "main", nil)
		require.NoError(t, err)
		require.ElementsMatch(t, want, o.Outlined)
	}
	outlined(list[1].ID)

	// A stored record gets one, and never another one. Replacing the record keeps it.
	list[0].Outline, list[1].Outline = one, outline(list[1].ID, 3)
	t.append(step(1, list...))
	outlined(list[0].ID, list[1].ID)
	replaced := list[1]
	replaced.Line, replaced.Outline = []byte(`{"redacted":true}`), nil
	replaced.Sum = store.SumOf(replaced.Line)
	a := step(2, replaced)
	a.Nodes, a.Replace = []node.ID{list[2].ID}, true
	t.append(a)

	got, err := collect(t.Records(t.ctx, "c", []node.ID{list[1].ID}))
	require.NoError(t, err)
	require.Equal(t, two, got[0].Outline)
	require.Equal(t, replaced.Line, got[0].Line)
	for _, r := range t.read("c", list[2].ID) {
		require.Nil(t, r.Outline, "Read leaves it out")
	}
}

func (t *driverTest) outlinesNothing() {
	if t.Driver.Records(t.ctx, "c", nil) != nil {
		t.Skip("SKIPPED: the driver has Records")
	}
	r := record()
	r.Outline = outline(r.ID, 1)
	t.append(step(0, r))
	o, err := t.Open(t.ctx, "c", "main", nil)
	require.NoError(t, err)
	require.Empty(t, o.Outlined)
}

func (t *driverTest) records() {
	list := inChain(300)
	t.append(step(0, list...))

	// In the order of links, each once, and no others.
	var ids []node.ID
	for i := len(list) - 1; i >= 0; i -= 2 {
		ids = append(ids, list[i].ID, list[i].ID)
	}
	got, err := collect(t.Records(t.ctx, "c", ids))
	require.NoError(t, err)
	require.Len(t, got, 150)
	for i, r := range got {
		require.Equal(t, normal(list[2*i+1]), normal(r))
	}

	for _, c := range []string{"c", "none"} {
		_, err = collect(t.Records(t.ctx, c, []node.ID{{99}}))
		require.ErrorIs(t, err, store.ErrNotStored)
		var refused *store.RecordError
		require.ErrorAs(t, err, &refused)
	}
}

func (t *driverTest) ownSlices() {
	given := func() (store.AppendRequest, store.Record) {
		first := store.Record{ID: node.ID{1}, Line: []byte("{}"), Sum: store.SumOf([]byte("{}"))}
		r := store.Record{ID: node.ID{2}, Links: []node.ID{first.ID}, Line: []byte("[2]"), Sum: store.SumOf([]byte("[2]"))}
		a := step(0, first, r)
		a.Header = []byte("header")
		return a, r
	}
	a, _ := given()
	_, want := given()
	got := t.append(a)

	// Change all slices given to the driver.
	a.Records[1].Line[0], a.Records[1].Links[0] = 'x', node.ID{9}
	a.Header[0], a.Nodes[0] = 'x', node.ID{9}
	check := func() {
		t.Helper()
		h := t.head("c", "main")
		require.Equal(t, []node.ID{{2}}, h.Nodes)
		require.Equal(t, "header", string(h.Header))
		require.Equal(t, normal(want), normal(t.read("c", node.ID{2})[1]))
	}
	check()

	// Change all slices returned by the driver.
	for _, h := range []store.Head{got, t.head("c", "main")} {
		h.Nodes[0], h.Header[0] = node.ID{9}, 'y'
	}
	heads, err := t.Heads(t.ctx, "c", store.Page{})
	require.NoError(t, err)
	heads[0].Nodes[0], heads[0].Header[0] = node.ID{9}, 'y'
	r := t.read("c", node.ID{2})[1]
	r.Line[0], r.Links[0] = 'y', node.ID{9}
	check()
}

func (t *driverTest) separate() {
	r := record()
	t.append(step(0, r))

	// The same ID with another content, in another conversation.
	other := r
	other.Line, other.Sum = []byte(`{"other":1}`), store.SumOf([]byte(`{"other":1}`))
	b := step(0, other)
	b.Conversation = "d"
	t.append(b)
	t.same([]store.Record{r}, t.read("c", r.ID))
	t.same([]store.Record{other}, t.read("d", r.ID))

	// The records of one do not serve another.
	b.Conversation, b.Records = "e", []store.Record{linked(r.ID)}
	b.Nodes = idsOf(b.Records...)
	t.refuse(b, b.Records[0].ID, node.ErrParent)

	require.NoError(t, t.Delete(t.ctx, "d"))
	t.same([]store.Record{r}, t.read("c", r.ID))
}

func (t *driverTest) exists() {
	keys := func() []string {
		t.Helper()
		keys, err := t.Conversations(t.ctx, store.Page{})
		require.NoError(t, err)
		return keys
	}

	// Without a conversation there is nothing to find, and looking makes none.
	require.Empty(t, keys())
	heads, err := t.Heads(t.ctx, "c", store.Page{})
	require.NoError(t, err)
	require.Empty(t, heads)
	require.Empty(t, t.read("c"))
	require.Empty(t, keys(), "looking makes no conversation")

	// The first head makes the conversation, and the last one ends it.
	t.append(step(0))
	require.Equal(t, []string{"c"}, keys())
	require.NoError(t, t.RemoveHead(t.ctx, "c", "main", 1))
	require.Empty(t, keys())
}

func (t *driverTest) appendStores() {
	root := record()
	left, right := linked(root.ID), linked(root.ID)
	a := step(0, root, left, right)
	a.Nodes, a.Header = idsOf(right, left), []byte("\x00header\xff")

	got := t.append(a)
	require.Equal(t, store.Head{Name: "main", Version: 1, Nodes: a.Nodes, Header: a.Header}, got)
	require.Equal(t, got, t.head("c", "main"))
	t.same(a.Records, t.read("c", got.Nodes...))

	// Another append keeps the header, and moves the head to the new record alone.
	merge := linked(right.ID, left.ID)
	got = t.append(step(1, merge))
	require.Equal(t, store.Head{Name: "main", Version: 2, Nodes: idsOf(merge), Header: a.Header}, got)
	records := t.read("c", merge.ID)
	t.same([]store.Record{root, left, right, merge}, records)
}

func (t *driverTest) conflict() {
	conflict := func(a store.AppendRequest, current store.Head) {
		t.Helper()
		before := t.all()
		_, err := t.Append(t.ctx, a)
		c := t.conflictOf(err)
		require.Equal(t, []string{a.Conversation, a.Head}, []string{c.Conversation, c.Head})
		require.Equal(t, a.Expect, c.Expect)
		require.Equal(t, current, c.Current)
		require.Equal(t, before, t.all())
		t.notStored(a.Conversation, a.Records[0])
	}

	// There is no such head yet.
	conflict(step(1, record()), store.Head{Name: "main"})

	a := step(0, record())
	a.Header = []byte("h")
	first := t.append(a)
	conflict(step(0, record()), first)
	conflict(step(2, record()), first)

	// Each other version is refused, however near or far.
	second := t.append(step(1, record()))
	conflict(step(0, record()), second)
	conflict(step(1, record()), second)
	conflict(step(3, record()), second)
	conflict(step(1<<62, record()), second)
}

func (t *driverTest) race() {
	const writers, each = 16, 4
	root := record()
	t.append(step(0, root))

	var wait sync.WaitGroup
	failures := make([]error, writers)
	for i := range writers {
		wait.Go(func() {
			for wins := 0; wins < each && failures[i] == nil; {
				h, err := t.Head(t.ctx, "c", "main")
				if err == nil {
					_, err = t.Append(t.ctx, step(h.Version, linked(h.Nodes...)))
				}

				// After a conflict the writer reads the head again.
				switch {
				case err == nil:
					wins++
				case !errors.Is(err, store.ErrMoved):
					failures[i] = err
				}
			}
		})
	}
	wait.Wait()
	require.NoError(t, errors.Join(failures...))

	// Every accepted append is one version and one record of the chain.
	h := t.head("c", "main")
	require.EqualValues(t, 1+writers*each, h.Version)
	require.Len(t, t.read("c", h.Nodes...), 1+writers*each)
}

func (t *driverTest) repeated() {
	r := record()
	a := step(0, r)
	a.Header = []byte("h")
	h := t.append(a)

	// The conflict of the second append shows that the first one was stored.
	_, err := t.Append(t.ctx, a)
	require.Equal(t, h, t.conflictOf(err).Current)
	require.Equal(t, a.Nodes, h.Nodes)
	t.same([]store.Record{r}, t.read("c", r.ID))
}

func (t *driverTest) acceptedAgain() {
	r := record()
	next := linked(r.ID)
	t.append(step(0, r, next))

	// In a batch with new records linked to it, and under another head.
	last := linked(next.ID, r.ID)
	b := step(0, next, r, last)
	b.Records = []store.Record{r, next, last}
	b.Head = "fork"
	t.append(b)
	t.same([]store.Record{r, next, last}, t.read("c", last.ID))
	t.same([]store.Record{r, next}, t.read("c", t.head("c", "main").Nodes...))
}

func (t *driverTest) unchanged() {
	root, other := record(), record()
	r := linked(root.ID)
	t.append(step(0, root, other, r))

	content, links, fewer := r, r, r
	content.Line, content.Sum = []byte("{}"), store.SumOf([]byte("{}"))
	links.Links = idsOf(other)
	fewer.Links = nil
	for _, changed := range []store.Record{content, links, fewer} {
		t.refuse(step(1, record(), changed), r.ID, dag.ErrDuplicateID)
	}

	// Replace changes the line of a record, never its links.
	for _, changed := range []store.Record{links, fewer} {
		a := step(1, record(), changed)
		a.Replace = true
		t.refuse(a, r.ID, dag.ErrDuplicateID)
	}
}

func (t *driverTest) replaced() {
	r := record()
	next := linked(r.ID)
	t.append(step(0, r, next))

	redacted := r
	redacted.Line = []byte(`{"redacted":true}`)
	redacted.Sum = store.SumOf(redacted.Line)
	b := step(1, redacted)
	b.Nodes, b.Replace = idsOf(next), true
	t.append(b)
	t.same([]store.Record{redacted, next}, t.read("c", next.ID))

	// A refused append replaces nothing.
	again := redacted
	again.Line, again.Sum = []byte("{}"), store.SumOf([]byte("{}"))
	c := step(2, again, linked(record().ID))
	c.Replace = true
	_, err := t.Append(t.ctx, c)
	require.ErrorIs(t, err, node.ErrParent)
	t.same([]store.Record{redacted, next}, t.read("c", next.ID))
}

func (t *driverTest) missingLink() {
	root := record()
	t.append(step(0, root))

	// A link to a missing record, or to one after the link, or in a new conversation.
	missing := record()
	bad := linked(root.ID, missing.ID)
	t.refuse(step(1, record(), bad), bad.ID, node.ErrParent)
	t.refuse(step(1, record(), bad, missing), bad.ID, node.ErrParent)
	a := step(0, linked(missing.ID))
	a.Conversation = "new"
	t.refuse(a, a.Records[0].ID, node.ErrParent)
}

func (t *driverTest) missingTo() {
	root, missing := record(), record()
	t.append(step(0, root))
	a := step(1, record())
	a.Nodes = append(a.Nodes, root.ID, missing.ID)
	t.refuse(a, missing.ID, store.ErrNotStored)
	a.Conversation, a.Expect, a.Nodes = "new", 0, idsOf(root)
	t.refuse(a, root.ID, store.ErrNotStored)
}

func (t *driverTest) senseless() {
	root, a, b := record(), record(), record()
	t.append(step(0, root))
	self := linked(a.ID)
	self.ID = a.ID
	zero := record()
	zero.ID = node.ID{}

	for name, records := range map[string][]store.Record{
		"a zero ID": {zero}, "an ID twice": {a, a}, "a link to itself": {self}, "a link to a later one": {linked(b.ID), b},
		"a link twice": {linked(root.ID, root.ID)}, "a zero link": {linked(node.ID{})},
	} {
		bad := step(1, records...)
		_, err := t.Append(t.ctx, bad)
		require.ErrorIs(t, err, store.ErrRecord, name)
		require.Equal(t, bad.Check(), err, name)
	}

	twice := step(1, record())
	twice.Nodes = append(twice.Nodes, twice.Nodes...)
	_, err := t.Append(t.ctx, twice)
	require.ErrorIs(t, err, store.ErrRecord)
	require.EqualValues(t, 1, t.head("c", "main").Version)
}

func (t *driverTest) header() {
	a := step(0, record())
	require.Empty(t, t.append(a).Header)
	a.Expect, a.Header = 1, []byte{0, 255, '\'', '\n'}
	require.Equal(t, a.Header, t.append(a).Header)

	// An append without a header keeps the old one. An empty header replaces it.
	b := step(2)
	b.Nodes = a.Nodes
	require.Equal(t, a.Header, t.append(b).Header)
	require.Equal(t, a.Header, t.head("c", "main").Header)
	b.Expect, b.Header = 3, []byte{}
	require.Empty(t, t.append(b).Header)
	require.Empty(t, t.head("c", "main").Header)
}

func (t *driverTest) movesAlone() {
	first, second := record(), record()
	second.Links = idsOf(first)
	t.append(step(0, first, second))

	// Back to an earlier record, to none, and to two.
	a := step(1)
	a.Nodes = idsOf(first)
	require.Equal(t, store.Head{Name: "main", Version: 2, Nodes: idsOf(first)}, t.append(a))
	h := t.append(step(2))
	require.EqualValues(t, 3, h.Version)
	require.Empty(t, h.Nodes)
	require.Empty(t, t.head("c", "main").Nodes)
	a.Expect, a.Nodes = 3, idsOf(second, first)
	require.Equal(t, idsOf(second, first), t.append(a).Nodes)
	t.same([]store.Record{first, second}, t.read("c", a.Nodes...))
}

func (t *driverTest) fork() {
	root := record()
	h := t.append(step(0, root))

	// A second head on the same record, without a record of its own. It can be made once.
	f := store.AppendRequest{Conversation: "c", Head: "fork", Nodes: h.Nodes}
	require.EqualValues(t, 1, t.append(f).Version)
	_, err := t.Append(t.ctx, f)
	t.conflictOf(err)

	// From there on each head moves alone.
	left, right := linked(root.ID), linked(root.ID)
	t.append(step(1, left))
	f.Expect, f.Records, f.Nodes = 1, []store.Record{right}, idsOf(right)
	t.append(f)

	require.Equal(t, idsOf(left), t.head("c", "main").Nodes)
	require.Equal(t, idsOf(right), t.head("c", "fork").Nodes)
	t.same([]store.Record{root, right}, t.read("c", right.ID))
}

func (t *driverTest) large() {
	const many = 3000

	// A line of two megabytes, and a record with 3,001 links.
	root := record()
	root.Line = append(root.Line, strings.Repeat(" ", 2<<20)...)
	root.Sum = store.SumOf(root.Line)
	records := []store.Record{root}
	for range many {
		records = append(records, linked(root.ID))
	}
	merge := linked(idsOf(records...)...)
	a := step(0, append(records, merge)...)
	a.Nodes = idsOf(a.Records...)
	a.Header = []byte(strings.Repeat("h", 1<<20))
	h := t.append(a)
	require.Equal(t, a.Nodes, h.Nodes)
	require.Equal(t, h, t.head("c", "main"))
	t.same(a.Records, t.read("c", merge.ID))

	have := idsOf(records...)
	got, err := collect(t.Read(t.ctx, "c", idsOf(a.Records...), have))
	require.NoError(t, err)
	require.Equal(t, idsOf(merge), idsOf(got...))

	// A chain of the same length. A database must not follow it by unlimited recursion.
	links := idsOf(merge)
	b := store.AppendRequest{Conversation: "c", Head: "chain"}
	for range many {
		r := linked(links...)
		b.Records, links = append(b.Records, r), idsOf(r)
	}
	b.Nodes = links
	t.append(b)
	require.Len(t, t.read("c", links...), 2*many+2)
}

func (t *driverTest) noHead() {
	_, err := t.Head(t.ctx, "c", "main")
	require.ErrorIs(t, err, store.ErrNotStored)
	t.append(step(0, record()))
	for _, name := range []string{"Main", "main ", "mai", "mainn"} {
		_, err = t.Head(t.ctx, "c", name)
		require.ErrorIs(t, err, store.ErrNotStored)
	}
	_, err = t.Head(t.ctx, "d", "main")
	require.ErrorIs(t, err, store.ErrNotStored)
}

// pages checks each way to page through a sorted list of names.
func pages(t *driverTest, names []string, list func(store.Page) []string) {
	t.Helper()
	for limit := 1; limit <= len(names)+1; limit++ {
		var got []string
		for page := (store.Page{Limit: limit}); ; page.After = got[len(got)-1] {
			part := list(page)
			require.LessOrEqual(t, len(part), limit)
			got = append(got, part...)
			require.LessOrEqual(t, len(got), len(names), "a page repeats names")
			if len(part) < limit {
				break
			}
		}
		require.Equal(t, names, got)
	}

	// Without a limit.
	require.Equal(t, names, list(store.Page{}))
	require.Equal(t, names, list(store.Page{Limit: -1}))

	// A prefix, and the name before the page.
	require.Equal(t, []string{"b/1", "b/2"}, list(store.Page{Prefix: "b/"}))
	require.Equal(t, []string{"b/2"}, list(store.Page{Prefix: "b/", After: "b/1"}))
	require.Equal(t, []string{"b/1"}, list(store.Page{Prefix: "b/", After: "a", Limit: 1}))
	require.Equal(t, []string{"c"}, list(store.Page{After: "b/3"}))
	require.Empty(t, list(store.Page{After: "c"}))
	require.Empty(t, list(store.Page{Prefix: "b/", After: "c"}))
	require.Empty(t, list(store.Page{Prefix: "d"}))
}

func (t *driverTest) heads() {
	// Made out of order: the list is sorted by names.
	names := []string{"a", "b/1", "b/2", "c"}
	for i, name := range []string{"c", "b/1", "a", "b/2"} {
		a := step(0, record())
		a.Head, a.Header = name, []byte{byte(i)}
		t.append(a)
	}
	pages(t, names, func(p store.Page) (list []string) {
		heads, err := t.Heads(t.ctx, "c", p)
		require.NoError(t, err)
		for _, h := range heads {
			require.Equal(t, t.head("c", h.Name), h)
			list = append(list, h.Name)
		}
		return list
	})
}

func (t *driverTest) conversations() {
	// Made out of order, as in heads.
	names := []string{"a", "b/1", "b/2", "c"}
	for _, key := range []string{"c", "b/1", "a", "b/2"} {
		a := step(0, record())
		a.Conversation = key
		t.append(a)
		a.Head = "second" // a conversation with two heads is listed once
		t.append(a)
	}
	pages(t, names, func(p store.Page) []string {
		keys, err := t.Conversations(t.ctx, p)
		require.NoError(t, err)
		return keys
	})
}

// diamond stores root, left and right after it, and a merge of both.
func (t *driverTest) diamond() (root, left, right, merge store.Record) {
	root = record()
	left, right = linked(root.ID), linked(root.ID)
	merge = linked(right.ID, left.ID)
	t.append(step(0, root, left, right, merge))
	return root, left, right, merge
}

func (t *driverTest) readOrder() {
	root, left, right, merge := t.diamond()
	t.same([]store.Record{root, left, right, merge}, t.read("c", merge.ID))
	t.same([]store.Record{root, left}, t.read("c", left.ID))
	t.same([]store.Record{root, left, right}, t.read("c", left.ID, right.ID))
	t.same([]store.Record{root, left, right, merge}, t.read("c", merge.ID, root.ID, left.ID, merge.ID))
	require.Empty(t, t.read("c"))

	// The order of links is kept in any order of storing.
	require.Equal(t, idsOf(right, left), t.read("c", merge.ID)[3].Links)
}

func (t *driverTest) readHave() {
	root, left, right, merge := t.diamond()
	read := func(from, have []node.ID) []node.ID {
		t.Helper()
		records, err := collect(t.Read(t.ctx, "c", from, have))
		require.NoError(t, err)
		reached := append(slices.Clone(have), idsOf(t.read("c", have...)...)...)
		records = slices.DeleteFunc(records, func(r store.Record) bool {
			return slices.Contains(reached, r.ID) && !slices.Contains(have, r.ID) // these may come
		})
		t.ordered(records, reached)
		return idsOf(records...)
	}
	require.Empty(t, read(idsOf(merge), idsOf(merge)))
	require.Equal(t, idsOf(merge), read(idsOf(merge), idsOf(left, right)))
	require.Equal(t, idsOf(right, merge), read(idsOf(merge), idsOf(left)))
	require.ElementsMatch(t, idsOf(left, right, merge), read(idsOf(merge), idsOf(root, root)))
	require.Empty(t, read(idsOf(root), idsOf(root, left)))

	records, err := collect(t.Read(t.ctx, "c", idsOf(merge), idsOf(record(), left, right)))
	require.NoError(t, err, "what the caller has need not be stored")
	require.Equal(t, idsOf(merge), idsOf(records...))
}

func (t *driverTest) opens() {
	root, left, right, merge := t.diamond()
	opens := func(name string, have []node.ID) store.Opened {
		t.Helper()
		o, err := t.Open(t.ctx, "c", name, have)
		require.NoError(t, err)
		h, err := t.Head(t.ctx, "c", name)
		require.NoError(t, err)
		require.Equal(t, h, o.Head)
		require.Empty(t, o.Outlined)

		// Few records come with the head or are read afterwards, as the driver likes.
		// A driver without Read returns all records of the conversation.
		if t.Driver.Read(t.ctx, "c", nil, nil) == nil {
			t.ordered(o.Records, nil)
		} else if o.Records != nil {
			records, err := collect(t.Read(t.ctx, "c", h.Nodes, have))
			require.NoError(t, err)
			t.same(records, o.Records)
		}
		return o
	}
	name := "main"
	opens(name, nil)
	opens(name, idsOf(left, right))
	opens(name, idsOf(merge, root))

	// A large record, and a long conversation.
	large := record()
	large.Line = bytes.Repeat([]byte("x"), 1<<20)
	large.Sum = store.SumOf(large.Line)
	list := inChain(200)
	for i, records := range [][]store.Record{{large}, list} {
		a := step(0, records...)
		a.Head = fmt.Sprint("other", i)
		t.append(a)
		opens(a.Head, nil)
		opens(a.Head, a.Nodes)
	}
	opens(name, nil)

	_, err := t.Open(t.ctx, "c", "none", nil)
	require.ErrorIs(t, err, store.ErrNotStored)
	_, err = t.Open(t.ctx, "none", name, nil)
	require.ErrorIs(t, err, store.ErrNotStored)
}

func (t *driverTest) readMissing() {
	root, missing := record(), record()
	t.append(step(0, root))
	for _, conversation := range []string{"c", "d"} {
		var last store.Record
		var err error
		// The error comes alone, with a zero record.
		for last, err = range t.Read(t.ctx, conversation, idsOf(missing), nil) {
		}
		require.ErrorIs(t, err, store.ErrNotStored)
		var about *store.RecordError
		require.ErrorAs(t, err, &about)
		require.Equal(t, missing.ID, about.ID)
		require.Equal(t, conversation, about.Conversation)
		require.Zero(t, last)
	}
	_, err := collect(t.Read(t.ctx, "c", idsOf(root, missing), nil))
	require.ErrorIs(t, err, store.ErrNotStored)
}

func (t *driverTest) readLeft() {
	root, _, _, merge := t.diamond()
	for range 50 { // more often than a driver has connections
		for r, err := range t.Read(t.ctx, "c", idsOf(merge), nil) {
			require.NoError(t, err)
			require.Equal(t, root.ID, r.ID)
			break
		}
	}
	t.append(step(1, linked(merge.ID)))
}

func (t *driverTest) readPrefix() {
	const versions, readers = 50, 4
	t.append(step(0, record()))
	done := make(chan struct{})
	failures := make([]error, readers)
	var wait sync.WaitGroup
	for i := range readers {
		wait.Go(func() {
			for over := false; !over && failures[i] == nil; {
				select {
				case <-done:
					over = true // one last look
				default:
				}
				failures[i] = t.wholeChain()
			}
		})
	}

	for v := uint64(1); v < versions; v++ {
		h := t.head("c", "main")
		t.append(step(v, linked(h.Nodes...)))
	}
	close(done)
	wait.Wait()
	require.NoError(t, errors.Join(failures...))
}

// wholeChain returns an error unless a reader sees a chain with as many records as the head has versions.
func (t *driverTest) wholeChain() error {
	h, err := t.Head(t.ctx, "c", "main")
	if err != nil {
		return err
	}
	records, err := collect(t.Read(t.ctx, "c", h.Nodes, nil))
	if err != nil {
		return err
	}

	// Each append of readPrefix adds one record and one version.
	if len(records) != int(h.Version) || records[len(records)-1].ID != h.Nodes[0] {
		return fmt.Errorf("version %d has %d records", h.Version, len(records))
	}
	for i, r := range records[1:] {
		if !slices.Equal(r.Links, idsOf(records[i])) {
			return fmt.Errorf("record %d of version %d is not linked to the one before", i+1, h.Version)
		}
	}
	return nil
}

func (t *driverTest) removeHead() {
	refused := func(name string, version uint64, current store.Head) {
		t.Helper()
		c := t.conflictOf(t.RemoveHead(t.ctx, "c", name, version))
		require.Equal(t, current, c.Current)
		require.Equal(t, []string{"c", name}, []string{c.Conversation, c.Head})
		require.Equal(t, version, c.Expect)
	}
	refused("main", 0, store.Head{Name: "main"})
	refused("main", 1, store.Head{Name: "main"})

	// A head is removed only at its current version.
	root, next := record(), record()
	next.Links = idsOf(root)
	t.append(step(0, root))
	h := t.append(step(1, next))
	refused("main", 0, h)
	refused("main", 1, h)
	refused("main", 3, h)

	t.append(store.AppendRequest{Conversation: "c", Head: "fork", Nodes: idsOf(root)})
	require.NoError(t, t.RemoveHead(t.ctx, "c", "main", 2))
	_, err := t.Head(t.ctx, "c", "main")
	require.ErrorIs(t, err, store.ErrNotStored)
	refused("main", 2, store.Head{Name: "main"})
	t.same([]store.Record{root, next}, t.read("c", next.ID))

	a := step(0)
	a.Nodes = idsOf(next)
	require.EqualValues(t, 1, t.append(a).Version, "a head that is made again")

	// With the last head the records are gone.
	require.NoError(t, t.RemoveHead(t.ctx, "c", "main", 1))
	require.NoError(t, t.RemoveHead(t.ctx, "c", "fork", 1))
	t.notStored("c", root)
	t.append(step(0, record()))
	t.notStored("c", root)
}

func (t *driverTest) delete() {
	// Without a conversation there is nothing to do.
	require.NoError(t, t.Delete(t.ctx, "c"))

	r := record()
	a := step(0, r)
	t.append(a)
	a.Head = "fork"
	t.append(a)
	a.Conversation = "d"
	t.append(a)

	require.NoError(t, t.Delete(t.ctx, "c"))
	keys, err := t.Conversations(t.ctx, store.Page{})
	require.NoError(t, err)
	require.Equal(t, []string{"d"}, keys)
	heads, err := t.Heads(t.ctx, "c", store.Page{})
	require.NoError(t, err)
	require.Empty(t, heads)
	t.notStored("c", r)
	t.same([]store.Record{r}, t.read("d", r.ID))
	require.NoError(t, t.Delete(t.ctx, "c"))

	// A new conversation with the key is another one.
	_, err = t.Append(t.ctx, step(1, record()))
	t.conflictOf(err)
	fresh := r
	fresh.Line, fresh.Sum = []byte("{}"), store.SumOf([]byte("{}"))
	require.EqualValues(t, 1, t.append(step(0, fresh)).Version)
}

// rewound stores a chain of three, and rewinds to the first. A fork keeps the second.
func (t *driverTest) rewound() (records []store.Record, lost int64) {
	records = inChain(3)
	t.append(step(0, records...))

	a := step(1)
	a.Nodes = idsOf(records[0])
	t.append(a)
	t.append(store.AppendRequest{Conversation: "c", Head: "fork", Nodes: idsOf(records[1])})
	return records, int64(len(records[2].Line))
}

func (t *driverTest) prune() {
	pruned, err := t.Prune(t.ctx, "c", false)
	require.NoError(t, err)
	require.Zero(t, pruned)
	keys, err := t.Conversations(t.ctx, store.Page{})
	require.NoError(t, err)
	require.Empty(t, keys, "pruning makes no conversation")

	records, lost := t.rewound()
	want := store.Pruned{Records: 1, Bytes: lost}
	pruned, err = t.Prune(t.ctx, "c", false)
	require.NoError(t, err)
	require.Equal(t, want, pruned)
	t.notStored("c", records[2])
	t.same(records[:2], t.read("c", records[1].ID))

	pruned, err = t.Prune(t.ctx, "c", false)
	require.NoError(t, err)
	require.Zero(t, pruned)
	require.Equal(t, []uint64{2, 1}, []uint64{t.head("c", "main").Version, t.head("c", "fork").Version})

	// Removed records can no longer be linked to.
	late := linked(records[2].ID)
	t.refuse(step(2, late), late.ID, node.ErrParent)
}

func (t *driverTest) pruneDone() {
	t.rewound()
	ctx, cancel := context.WithCancel(t.ctx)
	cancel()
	_, err := t.Prune(ctx, "c", false)
	require.ErrorIs(t, err, context.Canceled)
	pruned, err := t.Prune(t.ctx, "c", true)
	require.NoError(t, err)
	require.Equal(t, 1, pruned.Records)
}

func (t *driverTest) pruneDry() {
	records, lost := t.rewound()
	for range 2 {
		pruned, err := t.Prune(t.ctx, "c", true)
		require.NoError(t, err)
		require.Equal(t, store.Pruned{Records: 1, Bytes: lost}, pruned)
	}
	t.same(records, t.read("c", records[2].ID))
}

func (t *driverTest) pruneMuch() {
	root := record()
	t.append(step(0, root))

	// A chain left behind by the removed head "lost".
	lose := func() []store.Record {
		a := store.AppendRequest{Conversation: "c", Head: "lost"}
		last := root.ID
		for range 1500 {
			r := linked(last)
			a.Records = append(a.Records, r)
			last = r.ID
		}
		a.Nodes = []node.ID{last}
		t.append(a)
		require.NoError(t, t.RemoveHead(t.ctx, "c", "lost", 1))
		return a.Records
	}

	lost := lose()
	dry, err := t.Prune(t.ctx, "c", true)
	require.NoError(t, err)
	require.Equal(t, 1500, dry.Records)
	pruned, err := t.Prune(t.ctx, "c", false)
	require.NoError(t, err)
	require.Equal(t, dry, pruned)
	t.notStored("c", lost[0])
	t.same([]store.Record{root}, t.read("c", root.ID))

	// A head that moves to one of them in the middle is refused, or keeps everything in its reach.
	lost = lose()
	var wait sync.WaitGroup
	var failure error
	wait.Go(func() { _, failure = t.Prune(t.ctx, "c", false) })
	a := step(1)
	a.Nodes = idsOf(lost[1000])
	_, err = t.Append(t.ctx, a)
	wait.Wait()
	require.NoError(t, failure)
	if err != nil {
		require.ErrorIs(t, err, store.ErrNotStored)
		return
	}
	require.Len(t, t.read("c", lost[1000].ID), 1002)
}

func (t *driverTest) pruneRace() {
	const versions = 60
	root := record()
	t.append(step(0, root))
	_, err := t.Prune(t.ctx, "c", true) // skips the case for a driver without it, which only this goroutine may do
	require.NoError(t, err)

	done := make(chan struct{})
	var failure error
	var wait sync.WaitGroup
	wait.Go(func() {
		for over := false; !over && failure == nil; {
			select {
			case <-done:
				over = true
			default:
			}
			_, failure = t.Prune(t.ctx, "c", false)
		}
	})

	// Every other version rewinds, and so leaves a record behind. Records within reach of a head are never removed.
	for v := uint64(1); v < versions; v += 2 {
		r := linked(root.ID)
		t.append(step(v, r, linked(r.ID)))
		require.Len(t, t.read("c", t.head("c", "main").Nodes...), 3)
		a := step(v + 1)
		a.Nodes = idsOf(root)
		t.append(a)
	}
	close(done)
	wait.Wait()
	require.NoError(t, failure)
	t.same([]store.Record{root}, t.read("c", root.ID))
}

// watcher starts a Watch and returns a function for the next head.
func (t *driverTest) watcher(conversation string) (next func() store.Head) {
	pull, stop := iter.Pull2(t.Watch(t.ctx, conversation))
	t.Cleanup(stop)
	return func() store.Head {
		t.Helper()
		h, err, ok := pull()
		require.True(t, ok, "Watch ended before the next head")
		require.NoError(t, err, "Watch did not yield a head that has moved since it was yielded")
		return h
	}
}

func (t *driverTest) watch() {
	a := step(0, record())
	a.Header = []byte("h")
	main := t.append(a)
	a.Head = "fork"
	fork := t.append(a)
	next := t.watcher("c")
	require.Equal(t, fork, next())
	require.Equal(t, main, next())

	// Moves of this conversation are yielded, and none of another one.
	main = t.append(step(1, record()))
	require.Equal(t, main, next())
	other := step(0, record())
	other.Conversation = "d" // another conversation
	t.append(other)
	a.Expect = 1
	fork = t.append(a)
	require.Equal(t, fork, next())

	again := t.watcher("c") // a second one, of its own
	require.Equal(t, fork, again())
	require.Equal(t, main, again())
}

func (t *driverTest) watchLast() {
	t.append(step(0))
	next := t.watcher("c")
	require.EqualValues(t, 1, next().Version)
	const versions = 20
	for v := uint64(1); v < versions; v++ {
		t.append(step(v))
	}

	// Versions may be skipped, but the last one comes.
	for last := uint64(1); last < versions; {
		h := next()
		require.Greater(t, h.Version, last)
		last = h.Version
	}
}

func (t *driverTest) watchRemoved() {
	t.append(step(0))
	fork := store.AppendRequest{Conversation: "c", Head: "fork"}
	t.append(fork)
	next := t.watcher("c")
	require.Equal(t, "fork", next().Name)
	require.Equal(t, "main", next().Name)

	// Removed, and made again after Watch has yielded the removal.
	require.NoError(t, t.RemoveHead(t.ctx, "c", "fork", 1))
	require.Equal(t, store.Head{Name: "fork"}, next())
	fork.Header = []byte("again")
	remade := t.append(fork)
	require.Equal(t, remade, next())

	// Made again before anybody looked, with the same version: it may be yielded as removed first.
	require.NoError(t, t.RemoveHead(t.ctx, "c", "fork", 1))
	fork.Header = []byte("once more")
	remade = t.append(fork)
	if h := next(); h.Version > 0 {
		require.Equal(t, remade, h)
	} else {
		require.Equal(t, remade, next())
	}

	// All heads of a deleted conversation are removed.
	require.NoError(t, t.Delete(t.ctx, "c"))
	require.ElementsMatch(t, []store.Head{{Name: "fork"}, {Name: "main"}}, []store.Head{next(), next()})
	main := t.append(step(0))
	require.Equal(t, main, next())
}

func (t *driverTest) watchEarly() {
	t.Watch(t.ctx, "c") // skips the case for a driver without it, which only this goroutine may do

	// The watcher begins in a goroutine: it may start before or after the conversation is made.
	heads := make(chan store.Head, 1)
	ctx, cancel := context.WithCancel(t.ctx)
	defer cancel()
	var wait sync.WaitGroup
	wait.Go(func() {
		for h, err := range t.Watch(ctx, "c") {
			if err == nil {
				heads <- h
			}
			break
		}
	})
	want := t.append(step(0, record()))
	wait.Wait()
	require.Equal(t, want, <-heads)
}

func (t *driverTest) watchEnds() {
	t.append(step(0))
	ctx, cancel := context.WithCancel(t.ctx)
	pull, stop := iter.Pull2(t.Watch(ctx, "c"))
	defer stop()
	_, err, ok := pull()
	require.True(t, ok)
	require.NoError(t, err)

	// The error of the context comes last, and nothing after it.
	cancel()
	h, err, ok := pull()
	require.True(t, ok)
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, h)
	_, _, ok = pull()
	require.False(t, ok)
}

// record returns a new record.
func record() store.Record {
	id := node.ID(uuid.New())
	line := []byte(fmt.Sprintf(`{"id":%q}`, id))
	return store.Record{ID: id, Line: line, Sum: store.SumOf(line)}
}
