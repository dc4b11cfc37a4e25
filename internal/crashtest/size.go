package crashtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// The sizes for BenchmarkSizes. The lines have the size of a short message, the payloads the size of a usual call.
const (
	sizedRuns, nodesOfRun, pausesOfRun, callsOfPause = 300, 10, 2, 2

	lineSize, continuationSize, callSize, resultSize = 1000, 1000, 300, 700
)

// BenchmarkSizes fills a database and reports how many bytes of it a node, a head, a run, a pause and a call take, with
// their indexes. bytesOf returns the size of a table with its indexes.
func BenchmarkSizes(b *testing.B, db store.Runs, bytesOf func(table string) int64) {
	b.Helper()
	text := func(size int) []byte { return []byte(strings.Repeat("x", size)) }

	for i := range sizedRuns {
		run := fmt.Sprintf("run-%032d", i)
		key := fmt.Sprintf("customer-%010d", i)
		a := store.AppendRequest{Conversation: key, Head: store.Main}

		var links []node.ID
		for range nodesOfRun {
			r := store.Record{ID: uuid.Must(uuid.NewV7()), Links: links, Line: text(lineSize)}
			r.Sum = store.SumOf(r.Line)
			a.Records, links = append(a.Records, r), []node.ID{r.ID}
		}

		a.Nodes = links
		_, err := db.Begin(b.Context(), store.BeginRequest{Run: run, Agent: "support", Append: a})
		require.NoError(b, err)
		stepsOfRun(b, db, run, text)
	}

	// The time of the benchmark means nothing.
	b.ReportMetric(0, "ns/op")
	for _, of := range []struct {
		name   string
		rows   int
		tables []string
	}{
		{"node", sizedRuns * nodesOfRun, []string{"plait_nodes"}},
		{"conversation", sizedRuns, []string{"plait_conversations", "plait_heads"}},
		{"run", sizedRuns, []string{"plait_runs"}},
		{"pause", sizedRuns * pausesOfRun, []string{"plait_pauses"}},
		{"call", sizedRuns * pausesOfRun * callsOfPause, []string{"plait_tasks"}},
	} {
		var bytes int64
		for _, table := range of.tables {
			bytes += bytesOf(table)
		}
		b.ReportMetric(float64(bytes)/float64(of.rows), "B/"+of.name)
	}
}

// stepsOfRun pauses a run, executes its calls, and ends it.
func stepsOfRun(b *testing.B, db store.Runs, run string, text func(int) []byte) {
	b.Helper()
	consume := ""
	for pause := range pausesOfRun + 1 {
		claimed, err := db.ClaimRuns(b.Context(), store.ClaimRunsRequest{
			Worker: "host-1234", Agents: []string{"support"}, Formats: []int{1}, Run: run, Lease: time.Minute,
		})
		require.NoError(b, err)
		require.Len(b, claimed, 1)

		// The last step ends the run. Each step before it pauses the run.
		step := store.Step{Lease: claimed[0].Lease, Consume: consume, End: store.RunDone, Reason: "end_turn"}
		if pause < pausesOfRun {
			consume = uuid.NewString()
			step.End, step.Reason = "", ""
			step.Pause = &store.Pause{Continuation: consume, Format: 1, Payload: text(continuationSize)}
			for call := range callsOfPause {
				step.Pause.Tasks = append(step.Pause.Tasks, store.Task{
					Key: store.Key{Call: fmt.Sprintf("call_%024d", call)}, Tool: "find_order", Payload: text(callSize), Attempts: 5,
				})
			}
		}
		_, err = db.Commit(b.Context(), step)
		require.NoError(b, err)
		if step.Pause == nil {
			return
		}

		tasks, err := db.ClaimTasks(b.Context(), store.ClaimTasksRequest{
			Worker: "host-1234", Tools: []string{"find_order"}, Lease: time.Minute, Limit: callsOfPause,
		})
		require.NoError(b, err)
		for _, task := range tasks {
			_, err := db.Accept(b.Context(), store.Result{
				Key: task.Lease.Key, Claim: task.Lease.Claim, Worker: "host-1234", Outcome: store.OutcomeOK, Payload: text(resultSize),
			})
			require.NoError(b, err)
		}
	}
}
