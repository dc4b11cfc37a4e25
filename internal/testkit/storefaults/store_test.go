//go:build disk

package storefaults

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	sqlite3 "github.com/ncruces/go-sqlite3/driver"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	_ "github.com/plait-dev/plait/internal/testkit/quick"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
)

func TestMain(m *testing.M) {
	// Lives of runs wait, for heartbeats and for River's next look.
	flag.Parse()
	_ = flag.Set("test.parallel", "8")
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("database/sql.(*DB).connectionOpener"))
}

// session is a store on a disk.
type session struct {
	*sqlite.DB
	pool *sql.DB
	end  func()
}

// open opens the store on a disk, with one connection. A checkpoint comes after so many pages in the log.
func (d *disk) open(pages int) (*session, error) {
	return d.connect(pages, 1, time.Millisecond, "&_pragma=locking_mode(exclusive)")
}

// connect opens the store on a disk.
func (d *disk) connect(pages, connections int, busy time.Duration, settings string) (*session, error) {
	name, end := d.register()
	settings += "&_pragma=wal_autocheckpoint(" + fmt.Sprint(pages) + ")"
	if d.setting != "" {
		settings += "&_pragma=synchronous(" + d.setting + ")"
	}
	pool := sql.OpenDB(connector{"?vfs=" + name + "&_pragma=busy_timeout(1)" + settings})
	pool.SetMaxOpenConns(connections)

	db, err := sqlite.New(context.Background(), pool, &sqlite.Options{BusyTimeout: busy})
	if err != nil {
		err = errors.Join(err, pool.Close())
		end()
		return nil, err
	}
	return &session{db, pool, end}, nil
}

// connector connects to the database on a disk. It is also the driver, which adds the parameters for the disk to the
// name of a file.
type connector struct{ parameters string }

// Connect implements driver.Connector.
func (c connector) Connect(context.Context) (driver.Conn, error) { return c.Open("file:/sessions.db") }

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver { return c }

// Open implements driver.Driver.
func (c connector) Open(name string) (driver.Conn, error) {
	return new(sqlite3.SQLite).Open(name + c.parameters)
}

// close closes the store, and the driver's connections.
func (s *session) close() error {
	defer s.end()
	return errors.Join(s.DB.Close(), s.pool.Close())
}

// state is what a conversation must be: its heads, sorted by name.
type state []store.Head

// String returns all of a state but the headers.
func (s state) String() string {
	var b strings.Builder
	for _, h := range s {
		fmt.Fprintf(&b, "%s:%d:%x ", h.Name, h.Version, h.Nodes)
	}
	return b.String()
}

// with returns the state after a head has moved.
func (s state) with(h store.Head) state {
	next := slices.DeleteFunc(slices.Clone(s), func(old store.Head) bool { return old.Name == h.Name })
	next = append(next, h)
	slices.SortFunc(next, func(a, b store.Head) int { return strings.Compare(a.Name, b.Name) })
	return next
}

// observe reads the state of a conversation.
func observe(db store.Driver, conversation string) (state, error) {
	return db.Heads(context.Background(), conversation, store.Page{})
}

// expected is what a test knows of a conversation. The lock of the disk guards it.
type expected struct {
	acked   state
	maybe   []state         // what changes would make of it whose success is unknown, or that are running
	history map[string]bool // the states before
}

func (e *expected) clone() *expected {
	return &expected{e.acked, slices.Clone(e.maybe), e.history} // history only grows, and is asked for older states only
}

// allows reports whether a conversation may be in this state.
func (e *expected) allows(s state) bool {
	return s.String() == e.acked.String() ||
		slices.ContainsFunc(e.maybe, func(m state) bool { return m.String() == s.String() })
}

// is notes that a conversation is in this state.
func (e *expected) is(s state) {
	e.history[e.acked.String()] = true
	e.acked, e.maybe = s, nil
}

// writer changes one conversation. The same random numbers make the same changes.
type writer struct {
	disk         *disk
	conversation string
	random       *rand.Rand
	expected     *expected
	apart        bool // the negative control: records and head are stored in two transactions
}

func newWriter(d *disk, conversation string, seed uint64) *writer {
	return &writer{disk: d, conversation: conversation, random: rand.New(rand.NewPCG(seed, 1)),
		expected: &expected{history: map[string]bool{}}}
}

// step makes a change: usually one to three records that continue a head, sometimes a blob, a fork, or the end of the
// conversation.
func (w *writer) step(db store.Driver) error {
	now := w.expected.acked // only this writer sets it
	if len(now) > 0 && w.random.IntN(40) == 0 {
		return w.change(nil, func(ctx context.Context) error { return db.Delete(ctx, w.conversation) })
	}

	a := store.AppendRequest{Conversation: w.conversation, Head: "main"}
	if len(now) > 0 {
		from := now[w.random.IntN(len(now))]
		a.Nodes = from.Nodes
		if a.Head, a.Expect = from.Name, from.Version; len(now) < 4 && w.random.IntN(8) == 0 {
			a.Head, a.Expect = fmt.Sprint("fork", w.random.Uint32()), 0
		}
	}
	for range 1 + w.random.IntN(3) {
		r := w.record(a.Nodes)
		a.Records = append(a.Records, r)
		a.Nodes = []node.ID{r.ID}
	}

	if w.apart {
		first := a
		first.Nodes = nil
		if i := slices.IndexFunc(now, func(h store.Head) bool { return h.Name == a.Head }); i >= 0 {
			first.Nodes = now[i].Nodes
		}
		if err := w.append(db, first); err != nil {
			return err
		}
		a.Records, a.Expect = nil, first.Expect+1
	}
	return w.append(db, a)
}

func (w *writer) append(db store.Driver, a store.AppendRequest) error {
	next := w.expected.acked.with(store.Head{Name: a.Head, Version: a.Expect + 1, Nodes: a.Nodes})
	return w.change(next, func(ctx context.Context) error {
		_, err := db.Append(ctx, a)
		return err
	})
}

// change makes a change that leads to the state next.
func (w *writer) change(next state, f func(context.Context) error) error {
	w.disk.mu.Lock()
	w.expected.maybe = append(w.expected.maybe, next)
	w.disk.mu.Unlock()
	if err := f(context.Background()); err != nil {
		return err
	}

	w.disk.mu.Lock()
	defer w.disk.mu.Unlock()
	w.expected.is(next)
	return nil
}

// record returns a new record, whose line follows from its ID.
func (w *writer) record(links []node.ID) store.Record {
	var id node.ID
	binary.BigEndian.PutUint64(id[:], w.random.Uint64())
	binary.BigEndian.PutUint64(id[8:], w.random.Uint64())
	line := lineOf(id)
	return store.Record{ID: id, Links: links, Line: line, Sum: store.SumOf(line)}
}

// lineOf returns the line of a record: up to 6,000 bytes.
func lineOf(id node.ID) []byte {
	seed := binary.BigEndian.Uint64(id[:])
	return []byte(strings.Repeat(fmt.Sprintf("%x,", id), 1+int(seed>>32%180)))
}

// verdict is what was found on a disk.
type verdict string

const (
	sound   verdict = "sound"
	lost    verdict = "lost"    // a state that was acknowledged is gone, and an older one is there whole
	damaged verdict = "damaged" // anything else: a state that never was, wrong sums, a database that cannot be opened
	orphans verdict = "orphans" // records that no head reaches
)

// examine opens the store on a disk and compares it with what is expected of each conversation. It makes the state that it
// finds the expected one.
func (d *disk) examine(all map[string]*expected) (verdict, error) {
	db, err := d.open(1000)
	if err != nil {
		return damaged, err
	}
	found, err := inspect(db, all)
	if closed := db.close(); err == nil && closed != nil {
		return damaged, closed
	}
	return found, err
}

func inspect(db *session, all map[string]*expected) (verdict, error) {
	ctx := context.Background()
	if err := db.Check(ctx); err != nil { // begins with SQLite's integrity check
		return damaged, err
	}

	found := sound
	var why error
	for conversation, e := range all {
		pruned, err := db.Prune(ctx, conversation, true)
		if err != nil {
			return damaged, err
		}
		if pruned.Records > 0 {
			return orphans, fmt.Errorf("%q has %d records that nothing reaches", conversation, pruned.Records)
		}

		heads, err := observe(db, conversation)
		if err != nil {
			return damaged, err
		}
		for _, h := range heads {
			if err := readBack(db, conversation, h.Nodes); err != nil {
				return damaged, err
			}
		}
		if !e.allows(heads) {
			found, why = lost, fmt.Errorf("%q is %q and not %q", conversation, state(heads), e.acked)
			if !e.history[state(heads).String()] {
				return damaged, why
			}
		}
		e.is(heads)
	}
	return found, why
}

// readBack reads all that a head reaches, and compares every line.
func readBack(db store.Driver, conversation string, to []node.ID) error {
	ctx := context.Background()
	var records []store.Record
	seen := map[node.ID]bool{}
	for r, err := range db.Read(ctx, conversation, to, nil) {
		if err != nil {
			return err
		}
		for _, link := range r.Links {
			if !seen[link] {
				return fmt.Errorf("record %s is linked to %s, which does not come before it", r.ID, link)
			}
		}
		seen[r.ID] = true
		records = append(records, r)
	}

	for _, r := range records {
		if string(r.Line) != string(lineOf(r.ID)) {
			return fmt.Errorf("record %s has another line", r.ID)
		}
	}
	if len(to) > 0 && !seen[to[0]] {
		return fmt.Errorf("record %s is not read", to[0])
	}
	return nil
}

func TestSimulatedDiskKeepsWhatIsStored(t *testing.T) {
	d := newDisk()
	db, err := d.open(8)
	require.NoError(t, err)
	w := newWriter(d, "talk", 1)
	for range 100 {
		require.NoError(t, w.step(db))
	}
	require.NoError(t, db.close())
	found, err := d.settled().examine(map[string]*expected{"talk": w.expected})
	require.NoError(t, err)
	require.Equal(t, sound, found)
}
