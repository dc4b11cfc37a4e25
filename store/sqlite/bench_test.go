package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/storetest"
)

// BenchmarkAppend compares an append of one record of 1 kB with a bare INSERT and commit on the same database.
func BenchmarkAppend(b *testing.B) {
	for _, nodes := range []uint64{10, 100_000} {
		if nodes > 10 && testing.Short() {
			continue
		}
		b.Run(fmt.Sprintf("after=%d", nodes), func(b *testing.B) {
			db, _ := openNew(b, nil)
			chain(b, db, "talk", "main", 1, nodes+1)
			h, err := db.Head(b.Context(), "talk", "main")
			require.NoError(b, err)
			require.NoError(b, db.database.Write(b.Context(), func(tx sqlstore.Tx) error {
				_, err := tx.Exec(b.Context(), `CREATE TABLE bare (seq INTEGER PRIMARY KEY, conv INTEGER, id BLOB, links BLOB, sum BLOB,
					line BLOB) STRICT`)
				return err
			}))
			appendAndInsert(b, db, h.Version, nodes+1)
		})
	}
}

// appendAndInsert runs the appends and the bare inserts in turn, so that both see the same load of the machine, and on one
// connection, whose cache another one would empty.
func appendAndInsert(b *testing.B, db *DB, version, next uint64) {
	b.Helper()
	var appends, inserts []time.Duration
	for ; b.Loop(); next++ {
		r := record(next, 1000, next-1)
		start := time.Now()
		h, err := db.Append(b.Context(), store.AppendRequest{Conversation: "talk", Head: "main", Expect: version,
			Records: []store.Record{r}, Nodes: []node.ID{r.ID}})
		require.NoError(b, err)
		version = h.Version
		appends = append(appends, time.Since(start))

		require.NoError(b, db.database.do(&job{ctx: b.Context(), read: func(c *connection) error {
			start := time.Now()
			require.NoError(b, c.run(`BEGIN IMMEDIATE`))
			_, err := c.Exec(b.Context(), `INSERT INTO bare (conv, id, links, sum, line) VALUES ($1, $2, $3, $4, $5)`,
				int64(1), r.ID[:], r.Links[0][:], r.Sum[:], r.Line)
			require.NoError(b, err)
			require.NoError(b, c.run(`COMMIT`))
			inserts = append(inserts, time.Since(start))
			return nil
		}}))
	}
	reportRatio(b, appends, inserts)
}

// reportRatio reports the medians, their ratio, and that of the first deciles, which other programs have disturbed least.
func reportRatio(b *testing.B, appends, inserts []time.Duration) {
	b.Helper()
	slices.Sort(appends)
	slices.Sort(inserts)
	at := func(d []time.Duration, tenths int) float64 { return float64(d[len(d)*tenths/10].Nanoseconds()) / 1000 }
	b.ReportMetric(at(appends, 5), "µs/append")
	b.ReportMetric(at(inserts, 5), "µs/insert")
	b.ReportMetric(at(appends, 5)/at(inserts, 5), "ratio")
	b.ReportMetric(at(appends, 1)/at(inserts, 1), "decile-ratio")
}

// BenchmarkWriters compares appends of four handles of one database, as of four programs that take turns, with as many
// appends of one handle, one after the other.
func BenchmarkWriters(b *testing.B) {
	const handles, appends = 4, 10
	first, path := openNew(b, nil)
	others := []*DB{first}
	for range handles - 1 {
		db, err := Open(b.Context(), path, nil)
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, db.Close()) })
		others = append(others, db)
	}

	next := uint64(0)
	work := func(db *DB, conversation string, n uint64) {
		for i := range uint64(appends) {
			r := record(n+i+1, 1000)
			_, err := db.Append(b.Context(), store.AppendRequest{
				Conversation: conversation, Head: fmt.Sprint(n + i), Records: []store.Record{r}, Nodes: []node.ID{r.ID},
			})
			require.NoError(b, err)
		}
	}
	var together, alone []time.Duration
	for b.Loop() {
		began := time.Now()
		var all sync.WaitGroup
		for i, db := range others {
			n := next + uint64(i*appends)
			all.Go(func() { work(db, "together", n) })
		}
		all.Wait()
		together = append(together, time.Since(began))
		next += handles * appends

		began = time.Now()
		for range handles {
			work(first, "alone", next)
			next += appends
		}
		alone = append(alone, time.Since(began))
	}
	reportRatio(b, together, alone)
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
					rows, err := c.Query(b.Context(), `SELECT id, links, sum, line FROM plait_nodes WHERE conv = 1 ORDER BY seq`)
					require.NoError(b, err)
					defer rows.Close()
					count := uint64(0)
					var id, links, sum, line []byte
					for rows.Next() {
						if err := rows.Scan(&id, &links, &sum, &line); err != nil {
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
					_, err := db.Append(context.Background(), store.AppendRequest{Conversation: name, Head: "main", Expect: n,
						Records: []store.Record{r}, Nodes: []node.ID{r.ID}})
					if err != nil {
						panic(err)
					}
				}
			})
		})
	}
}

func BenchmarkFirstRequest(b *testing.B) {
	path := filepath.Join(b.TempDir(), "sessions.db")
	storetest.BenchmarkFirstRequest(b, func(b *testing.B) store.Driver { return openAt(b, path, nil) })
}
