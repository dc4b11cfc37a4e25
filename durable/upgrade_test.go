package durable

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/store"
)

// newer is the store as a process of a newer version uses it: some of what it stores has version 2, which this version
// does not know, and it reads both.
type newer struct {
	store.Runs
	what string // "continuation" or "call"
}

// upgrade replaces the version of saved data.
func upgrade(data []byte) []byte {
	return bytes.Replace(data, []byte(`"schema_version":2`), []byte(`"schema_version":3`), 1)
}

func downgrade(data []byte) []byte {
	return bytes.Replace(data, []byte(`"schema_version":3`), []byte(`"schema_version":2`), 1)
}

func (n newer) Commit(ctx context.Context, s store.Step) (store.Head, error) {
	if s.Pause != nil {
		pause := *s.Pause
		if n.what == "continuation" {
			pause.Format, pause.Payload = 3, upgrade(pause.Payload)
		}
		pause.Tasks = nil
		for _, task := range s.Pause.Tasks {
			if n.what == "call" {
				task.Payload = upgrade(task.Payload)
			}
			pause.Tasks = append(pause.Tasks, task)
		}
		s.Pause = &pause
	}
	return n.Runs.Commit(ctx, s)
}

func (n newer) ClaimRuns(ctx context.Context, c store.ClaimRunsRequest) ([]store.ClaimedRun, error) {
	c.Formats = append(c.Formats, 3)
	runs, err := n.Runs.ClaimRuns(ctx, c)
	for i := range runs {
		if paused := runs[i].Continuation; paused != nil {
			paused.Payload = downgrade(paused.Payload)
		}
	}
	return runs, err
}

func (n newer) ClaimTasks(ctx context.Context, c store.ClaimTasksRequest) ([]store.ClaimedTask, error) {
	tasks, err := n.Runs.ClaimTasks(ctx, c)
	for i := range tasks {
		tasks[i].Task.Payload = downgrade(tasks[i].Task.Payload)
	}
	return tasks, err
}

// While a fleet is upgraded, processes of two versions share a database.
func TestOlderProcessLeavesAloneWhatItDoesNotKnow(t *testing.T) {
	for _, what := range []string{"continuation", "call"} {
		t.Run(what, func(t *testing.T) {
			require.Empty(t, within(t, func(w *world) {
				// The newer process pauses the run, and ends: at once, or after the results, before it resumes.
				last := map[string]string{"continuation": "claim run after", "call": "pause after"}[what]
				w.options = CallOptions{}
				first := w.add(func(p *process) {
					p.Runs = newer{p.Runs, what}
					p.plan = at(last, kill, 1)
					if what == "continuation" {
						p.plan = at(last, kill, 2)
					}
				})
				runs := w.start(first, 1)
				w.until(last)

				// The older one works for an hour. It finishes what it knows, and harms nothing.
				older := w.add(nil)
				_, err := older.engine.Start(context.Background(), StartRequest{
					Run: "known", Agent: "a", Conversation: "of known", Text: "How many?",
				})
				require.NoError(t, err)
				time.Sleep(time.Hour)
				known, err := w.runs.Run(context.Background(), "known")
				require.NoError(t, err)
				require.Equal(t, store.RunDone, known.State, known.Reason)
				unknown, err := w.runs.Run(context.Background(), runs[0])
				require.NoError(t, err)
				wanted := store.RunRunning // as the process left it
				if what == "call" {
					wanted = store.RunWaiting
				}
				require.Equal(t, wanted, unknown.State, unknown.Reason)
				tasks, err := w.runs.Tasks(context.Background(), runs[0])
				require.NoError(t, err)
				for _, task := range tasks {
					require.Equal(t, what != "call", task.Done)
				}

				// The next newer one finishes the rest.
				w.add(func(p *process) { p.Runs = newer{p.Runs, what} })
				w.finish(append(runs, "known"))
				w.history.once()
			}))
		})
	}
}

func TestOlderProcessLeavesAConversationAloneThatItCannotRead(t *testing.T) {
	play(t, counter("count", has), nil, func(s *scene) {
		header := []byte(`{"format":"plait","version":2}`)
		_, err := s.runs.Begin(s.ctx, store.BeginRequest{Run: "newer", Agent: "a", Append: store.AppendRequest{
			Conversation: "newer", Head: store.Main, Header: header,
		}})
		require.NoError(t, err)
		_, err = open(s.ctx, s.runs, "newer", store.Main)
		require.ErrorIs(t, err, dag.ErrVersion)

		time.Sleep(time.Hour)
		r, err := s.runs.Run(s.ctx, "newer")
		require.NoError(t, err)
		require.Equal(t, store.RunReady, r.State, "it waits for a newer program")
		require.Zero(t, r.Claims)
	})
}
