package sqlite

import (
	"database/sql"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// deciding are the columns that decide what a conversation is. The others: seq and the num of a head are only compared
// with each other; plait_index is made from conversations and jobs.
var deciding = map[string][]string{
	"plait_conversations": {"num", "name"},
	"plait_nodes":         {"conv", "id", "links", "sum", "outline", "line"},
	"plait_heads":         {"conv", "name", "version", "nodes", "header"},
	"plait_inbox":         {"conv", "head", "call", "payload", "sum", "taken", "arrived"},
}

func TestCheckNoticesEveryFlippedBit(t *testing.T) {
	t.Parallel()
	db, path := openNew(t, nil)
	fillForFlips(t, db)
	require.NoError(t, db.Check(t.Context()))
	raw, err := sql.Open("sqlite", path) // without foreign keys
	require.NoError(t, err)
	defer raw.Close()

	r := rand.New(rand.NewPCG(seedtest.First(t), 0))
	flipped := 0
	for _, table := range slices.Sorted(maps.Keys(deciding)) {
		for _, column := range deciding[table] {
			for range seedtest.Rounds(4, 200) {
				undo, ok := flip(t, raw, r, table, column)
				if !ok {
					continue // the database itself refuses it
				}
				flipped++
				require.Error(t, db.Check(t.Context()), "%s.%s", table, column)
				undo()
			}
		}
	}
	require.NoError(t, db.Check(t.Context()))
	t.Logf("%d bits flipped, all noticed", flipped)
	require.Greater(t, flipped, seedtest.Rounds(50, 2000))
}

func TestRepairRemovesDamagedOutlines(t *testing.T) {
	db, _ := openNew(t, nil)
	fillForFlips(t, db)
	require.NoError(t, db.database.Write(t.Context(), func(tx sqlstore.Tx) error {
		_, err := tx.Exec(t.Context(), `UPDATE plait_nodes SET outline = x'00' WHERE conv = 1 AND outline IS NOT NULL`)
		return err
	}))
	require.ErrorContains(t, db.Check(t.Context()), "outline")
	require.NoError(t, db.Repair(t.Context()))
	require.NoError(t, db.Check(t.Context()))

	for key, outlines := range map[string]int{"one": 0, "two": 1} {
		opened, err := db.Open(t.Context(), key, "side", nil)
		require.NoError(t, err)
		require.Len(t, opened.Outlined, outlines)
	}
}

// fillForFlips stores conversations with an outline, heads with a header, and a row of the inbox.
func fillForFlips(t *testing.T, db *DB) {
	d := dag.New().System("Be brief.").User("Begin.")
	for range 400 {
		d = d.Assistant("Yes.").User("And?")
	}
	var ids []node.ID
	for _, n := range d.Transcript().Nodes[1:700] {
		ids = append(ids, n.ID())
	}
	d = d.Append(node.Compaction{Summary: content.Words("short"), Replaced: node.ListOf(ids...)}).User("See")

	for _, key := range []string{"one", "two"} {
		c, err := store.New(db).Conversation(t.Context(), key)
		require.NoError(t, err)
		require.NoError(t, c.Append(t.Context(), d.WithRef("here")))
		_, err = c.Fork(t.Context(), "side")
		require.NoError(t, err)
	}
	opened, err := db.Open(t.Context(), "one", "side", nil)
	require.NoError(t, err)
	require.Len(t, opened.Outlined, 1)
	require.NoError(t, db.database.Write(t.Context(), func(tx sqlstore.Tx) error {
		for _, call := range []string{"", "a call"} {
			row := sqlstore.InboxRow{Conversation: "one", Head: "main", Call: call, Payload: []byte("hello"), Taken: 1, Arrived: 2}
			sum := row.Sum()
			_, err := tx.Exec(t.Context(), `INSERT INTO plait_inbox (conv, head, call, payload, sum, taken, arrived)
				VALUES (1, 'main', $1, $2, $3, 1, 2)`, call, row.Payload, sum[:])
			if err != nil {
				return err
			}
		}
		return nil
	}))
}

// flip flips a random bit of a random value. It reports false if the database refuses the new value.
func flip(t *testing.T, raw *sql.DB, r *rand.Rand, table, column string) (undo func(), ok bool) {
	t.Helper()
	var rows, row int64
	var old any
	from := ` FROM ` + table + ` WHERE LENGTH(` + column + `) > 0`
	require.NoError(t, raw.QueryRow(`SELECT COUNT(*)`+from).Scan(&rows))
	require.NoError(t, raw.QueryRow(`SELECT rowid, `+column+from+` ORDER BY rowid LIMIT 1 OFFSET ?`, r.Int64N(rows)).Scan(&row, &old))

	set, value := `UPDATE `+table+` SET `+column+` = ? WHERE rowid = ?`, any(nil)
	switch old := old.(type) {
	case int64:
		value = old ^ 1<<r.IntN(40)
	case string:
		changed := []byte(old)
		changed[r.IntN(len(changed))] ^= 1 << r.IntN(7)
		value = string(changed)
	case []byte:
		changed := slices.Clone(old)
		changed[r.IntN(len(changed))] ^= 1 << r.IntN(8)
		value = changed
	}

	if _, err := raw.Exec(set, value, row); err != nil {
		return nil, false
	}
	return func() {
		// A flipped num is the row's ID.
		if n, is := value.(int64); is && column == "num" {
			row = n
		}
		_, err := raw.Exec(set, old, row)
		require.NoError(t, err)
	}, true
}
