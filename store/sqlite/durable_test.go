package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/durable"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/sqlite"
)

type item struct {
	Name string `json:"name"`
}

// process serves with a connection of its own until the context is done.
func process(ctx context.Context, db store.Runs, calls *sync.Map) (engine *durable.Engine, wait func()) {
	count := executor.Func("count", "Counts.", func(ctx context.Context, in item) (string, error) {
		key, _ := durable.Key(ctx)
		times, _ := calls.LoadOrStore(key, new(atomic.Int32))
		times.(*atomic.Int32).Add(1)
		return "many " + in.Name, nil
	})
	model := apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		if len(req.Messages[len(req.Messages)-1].Blocks.ToolResults()) == 2 {
			return apitest.Say("Done.")
		}
		return apitest.Call(apitest.Use("count", item{"bolts"}), apitest.Use("count", item{"nuts"}))
	}).Always())

	settings := durable.Settings{Poll: 100 * time.Millisecond}
	engine = &durable.Engine{Store: db, Settings: settings, Agents: map[string]executor.Agent{"a": {
		Provider: model, Tools: []dag.Tool{count}, Strategy: executor.DeferAll(),
	}}}
	worker := &durable.Worker{Store: db, Settings: settings, Tools: []executor.Tool{count}}
	var serving sync.WaitGroup
	serving.Go(func() { _ = engine.Serve(ctx) })
	serving.Go(func() { _ = worker.Serve(ctx) })
	return engine, serving.Wait
}

// Engines and workers with connections of their own share the runs: each call is executed once, and each run is done.
func TestProcessesShareDurableRuns(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	open := openShared(t)
	var calls sync.Map
	var engine *durable.Engine
	for range 3 {
		var wait func()
		engine, wait = process(ctx, open(), &calls)
		defer wait()
	}

	const runs = 20
	for i := range runs {
		name := fmt.Sprint("run ", i)
		_, err := engine.Start(ctx, durable.Start{Run: name, Agent: "a", Conversation: "of " + name, Text: "Count."})
		require.NoError(t, err)
	}
	for i := range runs {
		r, err := engine.Wait(ctx, fmt.Sprint("run ", i))
		require.NoError(t, err)
		require.Equal(t, store.RunDone, r.State, r.Reason)
		c, err := store.New(engine.Store, nil).Conversation(ctx, r.Conversation)
		require.NoError(t, err)
		require.Empty(t, c.DAG().Validate())
		require.Equal(t, "Done.", c.DAG().Text())
	}

	executed := 0
	calls.Range(func(key, times any) bool {
		executed++
		require.EqualValues(t, 1, times.(*atomic.Int32).Load(), key)
		return true
	})
	require.Equal(t, 2*runs, executed)
	cancel()
}

// openShared returns a function that opens the same file once more.
func openShared(t *testing.T) func() store.Runs {
	path := filepath.Join(t.TempDir(), "runs.db")
	return func() store.Runs {
		db, err := sqlite.Open(context.Background(), path, nil)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, db.Close()) })
		return db
	}
}
