// Command riverui serves River's web UI for a database of durable runs: queues, jobs and their errors, as they change.
//
//	go run ./examples/riverui runs.db                        # http://localhost:8084
//	go run ./examples/riverui -addr localhost:9000 postgres://localhost/DATABASE
//
// It is a module of its own, because the UI and what it needs are in no other program. Anybody who can open the page can
// cancel jobs and pause queues: put it behind a login.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	_ "modernc.org/sqlite"
	"riverqueue.com/riverui"
)

func main() {
	addr := flag.String("addr", "localhost:8084", "address to listen on")
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: riverui [-addr ADDRESS] DATABASE") }
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := start(ctx, *addr, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// start serves the UI until ctx is done.
func start(ctx context.Context, addr string, args []string, out io.Writer) error {
	if len(args) != 1 {
		return errors.New("usage: riverui [-addr ADDRESS] DATABASE")
	}
	database := args[0]
	if strings.Contains(database, "://") {
		pool, err := pgxpool.New(ctx, database)
		if err != nil {
			return err
		}
		defer pool.Close()
		return serve(ctx, addr, riverpgxv5.New(pool), out)
	}

	if _, err := os.Stat(database); err != nil {
		return err // SQLite would make an empty file
	}
	db, err := sql.Open("sqlite", "file:"+database+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	return serve(ctx, addr, riversqlite.New(db), out)
}

// serve serves the UI of a database.
func serve[T any](ctx context.Context, addr string, driver riverdriver.Driver[T], out io.Writer) error {
	client, err := river.NewClient(driver, &river.Config{})
	if err != nil {
		return err
	}
	handler, err := riverui.NewHandler(&riverui.HandlerOpts{
		Endpoints: riverui.NewEndpoints(client, nil), Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	if err := handler.Start(ctx); err != nil {
		return err
	}

	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "River's UI: http://%s\n", listener.Addr())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
