package crashtest

import (
	"context"
	"fmt"
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
)

// counted is the argument of the tool.
type counted struct {
	Name string `json:"name"`
}

// serveShared serves with a connection of its own until the context is done.
func serveShared(ctx context.Context, db store.Runs, calls *sync.Map) (engine *durable.Engine, wait func()) {
	// The tool counts its executions by the key of the call. TestShared looks for repetitions.
	count := executor.Func("count", "Counts.", func(ctx context.Context, in counted) (string, error) {
		key, _ := durable.CallKey(ctx)
		times, _ := calls.LoadOrStore(key, new(atomic.Int32))
		times.(*atomic.Int32).Add(1)
		return "many " + in.Name, nil
	})

	model := apitest.NewScript(apitest.Func(func(req api.Request) apitest.Turn {
		if len(req.Messages[len(req.Messages)-1].Blocks.ToolResults()) == 2 {
			return apitest.Say("Done.")
		}
		return apitest.Call(apitest.Use("count", counted{"bolts"}), apitest.Use("count", counted{"nuts"}))
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

// TestShared runs three engines and workers, each on a store of its own from open: stores of one database with separate
// connections. It fails if a call is not executed exactly once, or a run is not done.
func TestShared(t *testing.T, open func() store.Runs) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var calls sync.Map
	var engine *durable.Engine
	for range 3 {
		var wait func()
		engine, wait = serveShared(ctx, open(), &calls)
		defer func() {
			cancel() // also after a failure of the test
			wait()
		}()
	}

	// The last engine starts the runs and waits for them. Any of the three may execute them.
	const runs = 20
	for i := range runs {
		name := fmt.Sprint("run ", i)
		_, err := engine.Start(ctx, durable.StartRequest{Run: name, Agent: "a", Conversation: "of " + name, Text: "Count."})
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

	// Each call was executed once, by any worker.
	executed := 0
	calls.Range(func(key, times any) bool {
		executed++
		require.EqualValues(t, 1, times.(*atomic.Int32).Load(), key)
		return true
	})
	require.Equal(t, 2*runs, executed)
}
