package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/pgtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
	"github.com/plait-dev/plait/store/storetest"
)

// syncing returns a database of a server that syncs.
func syncing(b *testing.B) (*postgres.DB, *pgxpool.Pool) {
	b.Helper()
	pgtest.Database(b) // skips where there is no server
	cluster, err := pgtest.Start()
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, cluster.Remove()) })
	url, err := cluster.Database()
	require.NoError(b, err)
	return openAt(b, url+"&pool_max_conns=32", nil), newPool(b, url, func(*pgxpool.Config) {})
}

// BenchmarkAppend compares an append of one record of 1 kB with a bare INSERT on the same database.
func BenchmarkAppend(b *testing.B) {
	db, pool := syncing(b)
	_, err := pool.Exec(b.Context(), `CREATE TABLE bare (seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, conv BIGINT, id BYTEA,
		links BYTEA, sum BYTEA, line BYTEA)`)
	require.NoError(b, err)

	// In turn, so that both see the same load of the machine.
	var appends, inserts []time.Duration
	for n := uint64(1); b.Loop(); n++ {
		start := time.Now()
		_, err := db.Append(b.Context(), next(n))
		require.NoError(b, err)
		appends = append(appends, time.Since(start))

		r := record(n, 1000, n-1)
		start = time.Now()
		_, err = pool.Exec(b.Context(), `INSERT INTO bare (conv, id, links, sum, line) VALUES ($1, $2, $3, $4, $5)`,
			int64(1), r.ID[:], r.Links[0][:], r.Sum[:], r.Line)
		require.NoError(b, err)
		inserts = append(inserts, time.Since(start))
	}
	slices.Sort(appends)
	slices.Sort(inserts)
	median := func(d []time.Duration) float64 { return float64(d[len(d)/2].Nanoseconds()) / 1000 }
	b.ReportMetric(median(appends), "µs/append")
	b.ReportMetric(median(inserts), "µs/insert")
	b.ReportMetric(median(appends)/median(inserts), "ratio")
}

// BenchmarkConcurrentAppend is the rate of many conversations at once, beside that of one.
func BenchmarkConcurrentAppend(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			db, _ := syncing(b)
			b.ResetTimer()
			var all sync.WaitGroup
			for w := range writers {
				all.Go(func() {
					for n := range uint64(b.N / writers) {
						a := next(n + 1)
						a.Conversation = fmt.Sprint("talk", w)
						if _, err := db.Append(context.Background(), a); err != nil {
							panic(err)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// BenchmarkRead compares reading a conversation with a bare SELECT of its rows.
func BenchmarkRead(b *testing.B) {
	for _, nodes := range []uint64{10, 1000, 10_000} {
		if nodes > 1000 && testing.Short() {
			continue
		}
		url := pgtest.Database(b)
		db, pool := openAt(b, url, nil), newPool(b, url, func(*pgxpool.Config) {})
		a := store.AppendRequest{Conversation: "talk", Head: "main", Nodes: []node.ID{id(nodes)}}
		for n := range nodes {
			a.Records = append(a.Records, next(n + 1).Records[0])
		}
		_, err := db.Append(b.Context(), a)
		require.NoError(b, err)

		b.Run(fmt.Sprintf("read/nodes=%d", nodes), func(b *testing.B) {
			for b.Loop() {
				for _, err := range db.Read(b.Context(), "talk", []node.ID{id(nodes)}, nil) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
		b.Run(fmt.Sprintf("select/nodes=%d", nodes), func(b *testing.B) {
			for b.Loop() {
				rows, err := pool.Query(b.Context(), `SELECT id, links, sum, line FROM plait_nodes WHERE conv = 1 ORDER BY seq`)
				require.NoError(b, err)
				var id, links, sum, line []byte
				for rows.Next() {
					if err := rows.Scan(&id, &links, &sum, &line); err != nil {
						b.Fatal(err)
					}
				}
				require.NoError(b, rows.Err())
			}
		})
	}
}

func BenchmarkFirstRequest(b *testing.B) {
	url := pgtest.Database(b)
	storetest.BenchmarkFirstRequest(b, func(b *testing.B) store.Driver { return openAt(b, url, nil) })
}
