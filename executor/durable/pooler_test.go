//go:build unix

package durable

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/testkit/pgtest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
)

// pooler starts PgBouncer in transaction mode in front of a new database, with few connections to the server. It returns a
// URL for it.
func pooler(t *testing.T) string {
	t.Helper()
	program := os.Getenv("PLAIT_PGBOUNCER")
	if program == "" {
		t.Skip("SKIPPED: PLAIT_PGBOUNCER=/usr/sbin/pgbouncer tests runs behind it")
	}
	server, err := url.Parse(pgtest.Database(t))
	require.NoError(t, err)
	_, schema, _ := strings.Cut(server.Query().Get("options"), "search_path=")
	require.NotEmpty(t, schema)

	dir, err := os.MkdirTemp("", "plait-pgb-") // t.TempDir may be longer than the path of a socket can be
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o777)) // the program does not run as root
	config := filepath.Join(dir, "pgbouncer.ini")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `[databases]
runs = host=%s dbname=postgres user=postgres connect_query='SET search_path TO %s'
[pgbouncer]
listen_port = 6432
unix_socket_dir = %s
auth_type = any
pool_mode = transaction
default_pool_size = 6
max_client_conn = 200
`, server.Query().Get("host"), schema, dir), 0o644))

	args := []string{config}
	if os.Getuid() == 0 {
		args = append(args, "-u", "nobody")
	}
	cmd := exec.Command(program, args...)
	var log strings.Builder
	cmd.Stderr = &log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("unix", filepath.Join(dir, ".s.PGSQL.6432"))
		if err == nil {
			err = conn.Close()
		}
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	return "postgres:///runs?port=6432&user=postgres&host=" + url.QueryEscape(dir)
}

// The whole life of a run, and a day of programs, behind PgBouncer.
func TestRunsBehindPgBouncer(t *testing.T) {
	address := pooler(t)
	pool, err := pgxpool.New(t.Context(), address+"&default_query_exec_mode=exec&pool_max_conns=8")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	db, err := postgres.New(t.Context(), pool, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	w := &world{T: t, db: db, polls: true}

	l := &life{world: w, limit: time.Minute}
	require.Empty(t, l.live(nil))

	w.stubborn = false
	programs, history := day(w, false, func(db store.Transactor) store.Transactor { return db })
	programs.hour(seedtest.Rounds(15, 200))
	require.Empty(t, programs.finish(time.Minute))
	require.Empty(t, programs.faults(history))
	require.NoError(t, db.Check(t.Context()))
}
