package durable

import (
	"bytes"
	"context"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/sqlstore"
	"github.com/plait-dev/plait/internal/testkit/pgtest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
	"github.com/plait-dev/plait/store/sqlite"
)

// secret is in every place that can hold text of a conversation, its key included.
const secret = "mauve-4711-elephant"

func TestErasedConversationIsInNoFileOfSQLite(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	w := openWorld(t, filepath.Join(folder, "runs.db"))
	e := w.fillWithSecrets()
	require.NotEmpty(t, filesWith(t, folder, secret))

	_, err := e.Erase(t.Context(), "alice "+secret)
	require.NoError(t, err)
	require.NoError(t, w.db.(*sqlite.DB).Scrub(t.Context()))
	require.Empty(t, filesWith(t, folder, secret))
	w.stillHasBob(e)
}

func TestErasedConversationIsInNoTableOfPostgres(t *testing.T) {
	t.Parallel()
	if pgtest.Missing() {
		t.Skip("SKIPPED: no PostgreSQL server is installed")
	}
	cluster, err := pgtest.Start()
	require.NoError(t, err)
	defer func() { require.NoError(t, cluster.Remove()) }()
	url, err := cluster.Database()
	require.NoError(t, err)
	t.Run("server", func(t *testing.T) {
		w := openWorld(t, url)
		e := w.fillWithSecrets()
		require.NotEmpty(t, w.tablesWith(e, secret))

		_, err := e.Erase(t.Context(), "alice "+secret)
		require.NoError(t, err)
		require.Empty(t, w.tablesWith(e, secret))

		// VACUUM FULL writes new files. The log of changes stays, until the server recycles it.
		db := w.db.(*postgres.DB)
		require.NoError(t, db.Scrub(t.Context(), false))
		require.NoError(t, db.Scrub(t.Context(), true, e.queue.dialect().jobs))
		_, err = db.Pool().Exec(t.Context(), `CHECKPOINT`)
		require.NoError(t, err)
		for _, file := range filesWith(t, filepath.Join(cluster.Socket, "data"), secret) {
			require.Contains(t, file, "pg_wal")
		}
		w.stillHasBob(e)
	})
}

// fillWithSecrets makes runs whose conversation, inbox, jobs, errors and reasons hold the secret.
func (w *world) fillWithSecrets() *Engine {
	w.Helper()
	down := &api.Error{Kind: api.ErrOverloaded, Message: "cannot read " + secret}
	asks := apitest.Call(apitest.Use("pay", item{secret}))
	w.impatient = true
	e := w.engine(func(o *Options) {
		o.Attempts = 1
		o.Agents = map[string]executor.Agent{
			"fails": {Provider: once(apitest.Fail(down).Always())},
			"asks":  {Provider: once(asks.Always()), Hooks: []executor.Hook{executor.RequireApproval("pay")}},
			"says":  {Provider: once(apitest.Say("Hello.").Always())},
		}
		for name, a := range o.Agents {
			a.Tools = append(a.Tools, tool("pay", func(context.Context, string) (string, error) { return "", nil }))
			o.Agents[name] = a
		}
	})
	stop := w.serve(e)
	key := "alice " + secret

	// Many edits of the same rows leave copies of them in pages that other rows have left.
	c, err := e.Store().Conversation(w.Context(), key)
	require.NoError(w, err)
	d := c.DAG().System("About " + secret)
	edits := 60
	if seedtest.All() {
		edits = 300
	}
	for range edits {
		d = d.User(secret + strings.Repeat(" words", 50)).Assistant("Yes, " + secret)
		require.NoError(w, c.Append(w.Context(), d))
	}
	data := strings.Repeat("aaaa", 10_000) + hex.EncodeToString([]byte(secret))
	image := content.Image{Source: content.Source{MediaType: "image/png", Data: data}}
	require.NoError(w, c.Append(w.Context(), d.User(secret, image)))
	_, err = c.Fork(w.Context(), "other")
	require.NoError(w, err)

	failed := w.wait(e, w.start(e, StartRequest{Agent: "fails", Conversation: key, Text: secret}))
	require.Equal(w, Parked, failed.State)
	require.NoError(w, e.Cancel(w.Context(), failed.ID, secret))
	waiting := w.start(e, StartRequest{Agent: "asks", Conversation: key, Head: "other", Text: secret})
	require.Eventually(w, func() bool {
		r, err := e.Run(w.Context(), waiting)
		return err == nil && r.State == Waiting
	}, time.Minute, 20*time.Millisecond)
	_, err = e.Send(w.Context(), key, "other", "and "+secret)
	require.NoError(w, err)
	w.wait(e, w.start(e, StartRequest{Agent: "says", Conversation: "bob", Text: "Hi."}))
	stop()
	return e
}

// stillHasBob checks that another conversation has everything.
func (w *world) stillHasBob(e *Engine) {
	w.Helper()
	require.Equal(w, "Hello.", w.text("bob"))
	require.NoError(w, w.db.(checks).Check(w.Context()))
	runs, err := e.Runs(w.Context(), RunsRequest{})
	require.NoError(w, err)
	require.Len(w, runs, 1)
	require.Equal(w, "bob", runs[0].Conversation)
}

// filesWith returns the files in a folder that hold a text, also in hexadecimal.
func filesWith(t *testing.T, folder, text string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) || bytes.Contains(data, []byte(hex.EncodeToString([]byte(text)))) {
			names = append(names, path)
		}
		return err
	}))
	return names
}

// tablesWith returns the tables with a row that holds a text. A column of bytes is text in hexadecimal.
func (w *world) tablesWith(e *Engine, text string) (names []string) {
	w.Helper()
	for _, table := range append([]string{e.queue.dialect().jobs}, sqlstore.Tables...) {
		require.NoError(w, w.db.View(w.Context(), func(tx store.Tx) error {
			return query(w.Context(), tx, `SELECT COUNT(*) FROM `+table+` t WHERE t::TEXT LIKE $1 OR t::TEXT LIKE $2`,
				[]any{"%" + text + "%", "%" + hex.EncodeToString([]byte(text)) + "%"}, func(rows store.Rows) error {
					var n int64
					err := rows.Scan(&n)
					if n > 0 {
						names = append(names, table)
					}
					return err
				})
		}))
	}
	return names
}
