package postgres_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/crashtest"
	"github.com/plait-dev/plait/internal/pgtest"
	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/store/postgres"
)

// tables are the tables with the rows of a store, in an order in which they refer to those before.
var tables = []string{
	"plait_conversations", "plait_nodes", "plait_heads", "plait_blobs", "plait_uses", "plait_runs", "plait_pauses",
	"plait_tasks",
}

// wires are the connections of a process.
type wires struct {
	mu   sync.Mutex
	open []net.Conn
}

func (w *wires) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		w.mu.Lock()
		w.open = append(w.open, conn)
		w.mu.Unlock()
	}
	return conn, err
}

// cut closes all of them, as the end of the process does.
func (w *wires) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.open {
		_ = conn.Close()
	}
	w.open = nil
}

// pooled is a store that closes its pool. Without that, the server would soon have too many connections.
type pooled struct {
	*postgres.DB
	pool *pgxpool.Pool
}

func (p pooled) Close() error {
	defer p.pool.Close()
	return p.DB.Close()
}

// points stops a process at all points of its transactions. Its death closes its connections.
func points(t *testing.T) crashtest.Points {
	url := pgtest.Database(t)
	admin := newPool(t, url, func(*pgxpool.Config) {})
	openAt(t, url, nil) // makes the tables
	var process wires

	return crashtest.Points{
		Open: func(ctx context.Context, url string, wrap func(sqlstore.DB) sqlstore.DB) (crashtest.Store, error) {
			if wrap == nil {
				return postgres.Open(ctx, url, postgres.Patient)
			}

			pool := newPool(t, url, func(c *pgxpool.Config) { c.ConnConfig.DialFunc = process.dial })
			db, err := postgres.NewWrapped(ctx, pool, wrap)
			return pooled{db, pool}, err
		},

		Database: func() string {
			_, err := admin.Exec(context.Background(), `TRUNCATE `+strings.Join(tables, ", "))
			require.NoError(t, err)
			return url
		},

		Crash: func(url string) string {
			process.cut()
			return url
		},

		Dump: func(string) string {
			var all strings.Builder
			for _, table := range tables {
				var rows string
				query := fmt.Sprintf(`SELECT COALESCE(STRING_AGG(t::TEXT, E'\n' ORDER BY t::TEXT), '') FROM %s t`, table)
				require.NoError(t, admin.QueryRow(context.Background(), query).Scan(&rows))
				fmt.Fprintf(&all, "%s\n%s\n", table, rows)
			}
			return all.String()
		},
	}
}

func TestEveryPointOfEveryTransactionMayBeTheLast(t *testing.T) {
	points(t).Test(t)
}

func TestPointsShowATransactionThatIsCommittedHalfway(t *testing.T) {
	points(t).TestControl(t)
}
