package sqlite

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// BenchmarkAppend compares an append of one record of 1 kB with a bare INSERT and commit on the same database.
func BenchmarkAppend(b *testing.B) {
	for _, nodes := range []uint64{10, 100_000} {
		if nodes > 10 && testing.Short() {
			continue
		}
		db, _ := openNew(b, nil)
		chain(b, db, "talk", "main", 1, nodes+1)
		h, err := db.Head(b.Context(), "talk", "main")
		require.NoError(b, err)
		next := nodes + 1
		b.Run(fmt.Sprintf("append/after=%d", nodes), func(b *testing.B) {
			for b.Loop() {
				h, err = db.Append(b.Context(), store.Append{Conversation: "talk", Head: "main", Expect: h.Version,
					Records: []store.Record{record(next, 1000, next-1)}, To: []node.ID{id(next)}})
				require.NoError(b, err)
				next++
			}
		})
		bare(b, db, func(c *connection) {
			b.Run(fmt.Sprintf("insert/after=%d", nodes), func(b *testing.B) {
				row := uint64(0)
				for b.Loop() {
					row++
					r := record(row, 1000, 1)
					require.NoError(b, c.run(`BEGIN IMMEDIATE`))
					_, err := c.Exec(b.Context(), `INSERT INTO bare (conv, id, links, sum, line) VALUES ($1, $2, $3, $4, $5)`,
						int64(1), append([]byte(nil), r.ID[:]...), r.Links[0][:], r.Sum[:], r.Line)
					require.NoError(b, err)
					require.NoError(b, c.run(`COMMIT`))
				}
			})
		})
	}
}

// bare runs f with a table of its own and the connection that writes.
func bare(b *testing.B, db *DB, f func(c *connection)) {
	b.Helper()
	err := db.database.alone(context.Background(), func(c *connection) error {
		_, err := c.Exec(b.Context(), `CREATE TABLE IF NOT EXISTS bare (seq INTEGER PRIMARY KEY, conv INTEGER, id BLOB, links BLOB,
			sum BLOB, line BLOB) STRICT`)
		require.NoError(b, err)
		f(c)
		return nil
	})
	require.NoError(b, err)
}

// BenchmarkRead compares reading a conversation with a bare SELECT of its rows.
func BenchmarkRead(b *testing.B) {
	for _, nodes := range []uint64{10, 1000, 10_000, 100_000} {
		if nodes > 1000 && testing.Short() {
			continue
		}
		db, _ := openNew(b, nil)
		chain(b, db, "talk", "main", 1, nodes+1)
		b.Run(fmt.Sprintf("read/nodes=%d", nodes), func(b *testing.B) {
			for b.Loop() {
				require.EqualValues(b, nodes, read(b, db, "talk", nodes))
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(nodes), "µs/node")
		})
		b.Run(fmt.Sprintf("select/nodes=%d", nodes), func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, db.database.read(b.Context(), func(c *connection) error {
					rows, err := c.Query(b.Context(), `SELECT id, links, sum, cuts, line FROM plait_nodes WHERE conv = 1 ORDER BY seq`)
					require.NoError(b, err)
					defer rows.Close()
					count := uint64(0)
					var id, links, sum, cuts, line []byte
					for rows.Next() {
						if err := rows.Scan(&id, &links, &sum, &cuts, &line); err != nil {
							b.Fatal(err)
						}
						count++
					}
					require.Equal(b, nodes, count)
					return rows.Err()
				}))
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(nodes), "µs/node")
		})
	}
}

// BenchmarkConcurrentAppend is the rate of 64 conversations at once, beside that of one.
func BenchmarkConcurrentAppend(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			db, _ := openNew(b, nil)
			b.ResetTimer()
			concurrently(writers, func(w int) {
				name := fmt.Sprint("talk", w)
				for n := range uint64(b.N / writers) {
					r := record(n+1, 1000)
					if n > 0 {
						r = record(n+1, 1000, n)
					}
					_, err := db.Append(context.Background(), store.Append{Conversation: name, Head: "main", Expect: n,
						Records: []store.Record{r}, To: []node.ID{r.ID}})
					if err != nil {
						panic(err)
					}
				}
			})
		})
	}
}
