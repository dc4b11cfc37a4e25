package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/durable"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/crashtest"
	"github.com/plait-dev/plait/internal/pgtest"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
)

func TestProcessesShareDurableRuns(t *testing.T) {
	url := pgtest.Database(t)
	crashtest.TestShared(t, func() store.Runs { return openAt(t, url, nil) })
}

// A slot holds a connection only in a transaction: 64 calls run at the same time with a pool of 4.
func TestRunsShareFewConnections(t *testing.T) {
	const runs = 64
	ctx, cancel := context.WithTimeout(t.Context(), postgres.Patience)
	defer cancel()
	db := openAt(t, pgtest.Database(t)+"&pool_max_conns=4", nil)

	// No call returns before all of them have begun.
	var begun sync.WaitGroup
	begun.Add(runs)
	meet := executor.Func("meet", "Waits for the others.", func(context.Context, struct{}) (string, error) {
		begun.Done()
		begun.Wait()
		return "met", nil
	})
	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
			if len(req.Messages[len(req.Messages)-1].Blocks.ToolResults()) == 0 {
				return apitest.Call(apitest.Use("meet", struct{}{}))
			}
			return apitest.Say("done")
		}).Always()),
		Tools: []dag.Tool{meet}, Strategy: executor.DeferAll(),
	}

	settings := durable.Settings{Concurrency: runs, Poll: 50 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	engine := &durable.Engine{Store: db, Agents: map[string]executor.Agent{"meeting": agent}, Settings: settings}
	worker := &durable.Worker{Store: db, Tools: []executor.Tool{meet}, Settings: settings}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 2)
	go func() { served <- engine.Serve(serving) }()
	go func() { served <- worker.Serve(serving) }()

	for run := range runs {
		_, err := engine.Start(ctx, durable.StartRequest{
			Run: fmt.Sprint(run), Agent: "meeting", Conversation: fmt.Sprint("talk", run), Text: "Meet.",
		})
		require.NoError(t, err)
	}
	for run := range runs {
		r, err := engine.Wait(ctx, fmt.Sprint(run))
		require.NoError(t, err)
		require.Equal(t, store.RunDone, r.State, r.Reason)
	}
	stop()
	require.NoError(t, errors.Join(<-served, <-served))
	require.NoError(t, db.Check(ctx))
}
