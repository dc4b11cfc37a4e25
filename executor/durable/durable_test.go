package durable

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/testkit/pgtest"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
	"github.com/plait-dev/plait/store/sqlite"
)

// withCount gives an engine agent "a", which calls a counting tool twice.
func withCount(c *counting) func(o *Options) {
	return func(o *Options) {
		o.Agents = map[string]executor.Agent{"a": {Provider: calls("count", 2), Tools: []dag.Tool{c.tool("count")}}}
	}
}

// says gives an engine agent "a" with a model.
func says(turns ...apitest.Turn) func(o *Options) {
	return func(o *Options) {
		o.Agents = map[string]executor.Agent{"a": {Provider: apitest.NewScript(turns...)}}
	}
}

func TestRunEndsWithItsConversation(t *testing.T) {
	onEach(t, func(w *world) {
		var c counting
		e := w.engine(withCount(&c))
		w.serve(e)
		r := w.wait(e, w.start(e, StartRequest{Text: "Count."}))
		require.Equal(w, Done, r.State, r.Reason)
		require.Equal(w, "end_turn", r.Reason)
		require.Equal(w, "many bolts 0. many bolts 1. ", w.text("c"))
		require.EqualValues(w, 2, c.total.Load())
	})
}

func TestStartAgainWithTheSameTextDoesNothing(t *testing.T) {
	onEach(t, func(w *world) {
		e := w.engine(says(apitest.Say("Hello.").Always()))
		s := StartRequest{Run: "r", Text: "Hi."}
		w.start(e, s)
		w.start(e, s)
		w.serve(e)
		w.wait(e, "r")
		w.start(e, s)
		require.Len(w, w.load("c").Messages(), 2)

		// An answer of nil to another text would lose the text.
		for _, other := range []StartRequest{
			{Run: "r", Text: "Bye."}, {Run: "r"}, {Run: "r", Text: "Hi.", Conversation: "d"},
			{Run: "r", Text: "Hi.", Agent: "b"},
		} {
			if other.Agent == "" {
				other.Agent = "a"
			}
			if other.Conversation == "" {
				other.Conversation = "c"
			}
			_, err := e.Start(w.Context(), other)
			require.ErrorIs(w, err, ErrRunExists)
		}
	})
}

func TestHeadHasOneRun(t *testing.T) {
	onEach(t, func(w *world) {
		e := w.engine(says(apitest.Say("Hello.").Always()))
		const starts = 8
		errs := make(chan error, starts)
		for i := range starts {
			go func() {
				_, err := e.Start(w.Context(), StartRequest{Agent: "a", Conversation: "c", Text: fmt.Sprint(i)})
				errs <- err
			}()
		}
		busy := 0
		for range starts {
			if err := <-errs; err != nil {
				require.ErrorIs(w, err, ErrBusy)
				busy++
			}
		}
		require.Equal(w, starts-1, busy)
		require.Len(w, w.load("c").Messages(), 1)
	})
}

func TestRunsAreListed(t *testing.T) {
	onEach(t, func(w *world) {
		e := w.engine(nil)
		for i := range 5 {
			w.start(e, StartRequest{Run: fmt.Sprint("r", i), Conversation: fmt.Sprint("c", i)})
		}
		require.NoError(w, e.Cancel(w.Context(), "r2", "no more"))

		ids := func(q RunsRequest) (ids []string) {
			runs, err := e.Runs(w.Context(), q)
			require.NoError(w, err)
			for _, r := range runs {
				ids = append(ids, r.ID)
			}
			return ids
		}
		require.Equal(w, []string{"r4", "r3", "r2", "r1", "r0"}, ids(RunsRequest{}))
		require.Equal(w, []string{"r4", "r3"}, ids(RunsRequest{States: []State{Active}, Limit: 2}))
		require.Equal(w, []string{"r1", "r0"}, ids(RunsRequest{States: []State{Active, Done}, After: "r3", Agent: "a"}))
		require.Equal(w, []string{"r2"}, ids(RunsRequest{States: []State{Cancelled}}))
		require.Equal(w, []string{"r3"}, ids(RunsRequest{Conversation: "c3"}))
		_, err := e.Run(w.Context(), "r9")
		require.ErrorIs(w, err, ErrNoRun)

		n, err := e.Prune(w.Context(), time.Now().Add(time.Hour), 10, false)
		require.NoError(w, err)
		require.Equal(w, 1, n)
		require.Len(w, ids(RunsRequest{}), 4)
	})
}

func TestCancelledRunGetsNothingMore(t *testing.T) {
	onEach(t, func(w *world) {
		begun, over := make(chan struct{}), make(chan error, 1)
		e := w.engine(func(o *Options) {
			o.Agents = map[string]executor.Agent{"a": {Provider: calls("wait", 1), ToolTimeout: -1, Tools: []dag.Tool{
				tool("wait", func(ctx context.Context, _ string) (string, error) {
					close(begun)
					<-ctx.Done()
					over <- context.Cause(ctx)
					return "", ctx.Err()
				}),
			}}}
		})
		stop := w.serve(e)
		run := w.start(e, StartRequest{Text: "Wait."})
		<-begun

		// From another process: the tool's context ends at the next beat.
		other := w.engine(nil)
		require.NoError(w, other.Cancel(w.Context(), run, "enough"))
		cancelled := time.Now()
		<-over
		require.Less(w, time.Since(cancelled), 10*time.Second) // 300 ms, but on a busy machine
		require.NoError(w, other.Cancel(w.Context(), run, "again"))
		r := w.wait(e, run)
		require.Equal(w, Cancelled, r.State)
		require.Equal(w, "enough", r.Reason)
		stop()

		// The call was under way: it stays started, and without a result.
		require.Len(w, w.load("c").OpenCalls(), 1)
		require.Zero(w, w.jobs(e)["running"]+w.jobs(e)["available"])
	})
}

func TestCallUnderWayAtACancelIsInDoubt(t *testing.T) {
	onOne(t, func(w *world) {
		begun, times := make(chan struct{}, 9), 0
		e := w.engine(func(o *Options) {
			o.Agents = map[string]executor.Agent{"a": {Provider: calls("pay", 1), ToolTimeout: -1, Tools: []dag.Tool{
				tool("pay", func(ctx context.Context, _ string) (string, error) {
					times++
					begun <- struct{}{}
					<-ctx.Done()
					return "", ctx.Err()
				}),
			}}}
		})
		w.serve(e)
		run := w.start(e, StartRequest{Text: "Pay."})
		<-begun
		require.NoError(w, e.Cancel(w.Context(), run, "enough"))
		next := w.wait(e, w.start(e, StartRequest{}))
		require.Equal(w, Done, next.State, next.Reason)
		require.Equal(w, 1, times)
		require.Contains(w, w.text("c"), "unknown")
	})
}

func TestDeletedConversationEndsItsRun(t *testing.T) {
	onOne(t, func(w *world) {
		asked := make(chan struct{}, 9)
		e := w.engine(says(apitest.Func(func(api.Request) apitest.Turn {
			asked <- struct{}{}
			return apitest.Say("Hello.")
		}).Always()))
		run := w.start(e, StartRequest{Text: "Hi."})
		require.NoError(w, w.db.Delete(w.Context(), "c"))
		w.serve(e)
		r := w.wait(e, run)
		require.Equal(w, Cancelled, r.State)
		require.Equal(w, "the conversation was deleted", r.Reason)

		// The job of the run is over before that of another one.
		w.wait(e, w.start(e, StartRequest{Conversation: "d", Text: "Hi."}))
		require.Len(w, asked, 1)
		_, err := w.db.Head(w.Context(), "c", store.Main)
		require.ErrorIs(w, err, store.ErrNotStored)
	})
}

func TestDeleteDuringARequestEndsTheRun(t *testing.T) {
	onOne(t, func(w *world) {
		e := w.engine(says(apitest.Func(func(api.Request) apitest.Turn {
			require.NoError(w, w.db.Delete(w.Context(), "c"))
			return apitest.Say("Hello.")
		}).Always()))
		w.serve(e)
		require.Equal(w, Cancelled, w.wait(e, w.start(e, StartRequest{Text: "Hi."})).State)
		_, err := w.db.Head(w.Context(), "c", store.Main)
		require.ErrorIs(w, err, store.ErrNotStored)
	})
}

func TestPanicOfAProviderParksTheRun(t *testing.T) {
	onOne(t, func(w *world) {
		panics := true
		e := w.engine(says(apitest.Func(func(api.Request) apitest.Turn {
			if panics {
				panic("no such model")
			}
			return apitest.Say("Hello.")
		}).Always()))
		w.serve(e)
		run := w.start(e, StartRequest{Text: "Hi."})
		r := w.wait(e, run)
		require.Equal(w, Parked, r.State)
		require.Contains(w, r.Reason, "no such model")

		panics = false
		require.NoError(w, e.Requeue(w.Context(), run))
		require.Equal(w, Done, w.wait(e, run).State)
		require.ErrorIs(w, e.Requeue(w.Context(), run), ErrRunEnded)
	})
}

// once is a model whose requests are not repeated by the client.
func once(turns ...apitest.Turn) api.Provider {
	return api.NewClient(apitest.NewScript(turns...), &api.ClientOptions{Attempts: 1})
}

func TestFailureOfTheProviderIsTriedAgain(t *testing.T) {
	onOne(t, func(w *world) {
		down := &api.Error{Kind: api.ErrOverloaded}
		w.impatient = true
		e := w.engine(func(o *Options) {
			o.Agents = map[string]executor.Agent{"a": {Provider: once(apitest.Fail(down), apitest.Say("Hello."))}}
		})
		w.serve(e)
		r := w.wait(e, w.start(e, StartRequest{Text: "Hi."}))
		require.Equal(w, Done, r.State, r.Reason)
		require.Equal(w, "Hello.", w.text("c"))
	})
}

func TestFailureThatLastsParksTheRun(t *testing.T) {
	onOne(t, func(w *world) {
		down := &api.Error{Kind: api.ErrOverloaded}
		e := w.engine(func(o *Options) {
			o.Attempts = 1
			o.Agents = map[string]executor.Agent{"a": {Provider: once(apitest.Fail(down).Always())}}
		})
		w.serve(e)
		r := w.wait(e, w.start(e, StartRequest{Text: "Hi."}))
		require.Equal(w, Parked, r.State, r.Reason)
	})
}

func TestRefusedRequestFailsTheRun(t *testing.T) {
	onOne(t, func(w *world) {
		e := w.engine(says(apitest.Fail(&api.Error{Kind: api.ErrAuth})))
		w.serve(e)
		r := w.wait(e, w.start(e, StartRequest{Text: "Hi."}))
		require.Equal(w, Failed, r.State)
		require.NotEmpty(w, r.Reason)
	})
}

func TestInterruptedRunContinuesElsewhere(t *testing.T) {
	onOne(t, func(w *world) {
		begun := make(chan struct{}, 9)
		first := w.engine(func(o *Options) {
			o.ShutdownTimeout = -1
			o.Agents = map[string]executor.Agent{"a": {Provider: calls("count", 1), ToolTimeout: -1, Tools: []dag.Tool{
				executor.WithEffect(tool("count", func(ctx context.Context, _ string) (string, error) {
					begun <- struct{}{}
					<-ctx.Done()
					return "", ctx.Err()
				}), executor.EffectReadOnly),
			}}}
		})
		stop := w.serve(first)
		run := w.start(first, StartRequest{Text: "Count."})
		<-begun
		stop()

		var c counting
		second := w.engine(func(o *Options) {
			o.Agents = map[string]executor.Agent{"a": {Provider: calls("count", 1), Tools: []dag.Tool{
				executor.WithEffect(c.tool("count"), executor.EffectReadOnly),
			}}}
		})
		w.serve(second)
		r := w.wait(second, run)
		require.Equal(w, Done, r.State, r.Reason)
		require.Equal(w, "many bolts 0. ", w.text("c"))
	})
}

func TestManyRunsInSeveralProcesses(t *testing.T) {
	onEach(t, func(w *world) {
		var c counting
		engines := make([]*Engine, 3)
		for i := range engines {
			engines[i] = w.engine(withCount(&c))
			w.serve(engines[i])
		}
		runs := seedtest.Rounds(30, 60)
		var all sync.WaitGroup
		for i := range runs {
			all.Go(func() {
				e := engines[i%len(engines)]
				r := w.wait(e, w.start(e, StartRequest{Conversation: fmt.Sprint("c", i), Text: "Count."}))
				require.Equal(w, Done, r.State, r.Reason)
			})
		}
		all.Wait()
		require.EqualValues(w, 2*runs, c.total.Load())
		for key, times := range c.times {
			require.Equal(w, 1, times, key)
		}
	})
}

func TestMessageToABusyRunIsGivenOnce(t *testing.T) {
	onEach(t, func(w *world) {
		asked := make(chan struct{}, 9)
		goOn := make(chan struct{})
		e := w.engine(func(o *Options) {
			o.Agents = map[string]executor.Agent{"a": {
				Provider: calls("wait", 1), ToolTimeout: -1,
				Tools: []dag.Tool{tool("wait", func(context.Context, string) (string, error) {
					asked <- struct{}{}
					<-goOn
					return "waited", nil
				})},
			}}
		})
		_, err := e.Send(w.Context(), "c", "", "too early")
		require.ErrorIs(w, err, ErrNotBusy)
		w.serve(e)
		run := w.start(e, StartRequest{Text: "Wait."})
		<-asked

		first, err := e.Send(w.Context(), "c", "", "one")
		require.NoError(w, err)
		second, err := e.Send(w.Context(), "c", "", "two")
		require.NoError(w, err)
		third, err := e.Send(w.Context(), "c", "", "three")
		require.NoError(w, err)
		require.NoError(w, e.Withdraw(w.Context(), second))
		require.NoError(w, e.Edit(w.Context(), third, "four"))
		list, err := e.Messages(w.Context(), "c", "")
		require.NoError(w, err)
		require.Len(w, list, 2)
		require.Equal(w, Message{first, "one", list[0].Arrived}, list[0])
		require.Equal(w, "four", list[1].Text)
		close(goOn)

		r := w.wait(e, run)
		require.Equal(w, Done, r.State, r.Reason)
		require.ErrorIs(w, e.Withdraw(w.Context(), first), ErrNoMessage)
		require.ErrorIs(w, e.Edit(w.Context(), first, "x"), ErrNoMessage)
		var texts []string
		for _, m := range w.load("c").Messages() {
			if text := m.Blocks.Text(); m.Role == "user" && text != "" {
				texts = append(texts, text)
			}
		}
		require.Equal(w, []string{"Wait.", "one", "four"}, texts)
		_, err = e.Send(w.Context(), "c", "", "too late")
		require.ErrorIs(w, err, ErrNotBusy)
	})
}

func TestMessageDuringTheLastAnswerContinuesTheRun(t *testing.T) {
	onEach(t, func(w *world) {
		var e *Engine
		times := 0
		e = w.engine(says(apitest.Func(func(api.Request) apitest.Turn {
			times++
			if times == 1 {
				_, err := e.Send(w.Context(), "c", "", "And you?")
				require.NoError(w, err)
			}
			return apitest.Say(fmt.Sprint("answer ", times))
		}).Always()))
		w.serve(e)
		r := w.wait(e, w.start(e, StartRequest{Text: "Hi."}))
		require.Equal(w, Done, r.State, r.Reason)
		require.Equal(w, "answer 2", w.text("c"))
		require.Len(w, w.load("c").Messages(), 4)
	})
}

// gap is a database in whose transactions something happens right after a query.
type gap struct {
	store.Transactor
	after func(query string)
}

// Update implements store.Transactor.
func (g gap) Update(ctx context.Context, f func(store.Tx) error) error {
	return g.Transactor.Update(ctx, func(tx store.Tx) error {
		err := f(gapTx{tx, g.after})
		g.after(commit)
		return err
	})
}

// commit is what a gap calls its function with before the end of a transaction.
const commit = "COMMIT"

type gapTx struct {
	store.Tx
	after func(query string)
}

// Exec implements store.Tx.
func (t gapTx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	n, err := t.Tx.Exec(ctx, query, args...)
	t.after(query)
	return n, err
}

// Query implements store.Tx.
func (t gapTx) Query(ctx context.Context, query string, args ...any) (store.Rows, error) {
	rows, err := t.Tx.Query(ctx, query, args...)
	t.after(query)
	return rows, err
}

// A message that comes while the last step is stored is given, or refused.
func TestMessageDuringTheLastTransactionIsNotLost(t *testing.T) {
	onEach(t, func(w *world) {
		sent := make(chan error, 1)
		program := w.engine(nil)
		var once sync.Once
		e := w.engine(func(o *Options) {
			says(apitest.Say("Hello.").Always())(o)
			o.wrap = func(db store.Transactor) store.Transactor {
				return gap{db, func(query string) {
					if !strings.Contains(query, `AND call = ''`) {
						return
					}
					once.Do(func() {
						go func() {
							_, err := program.Send(w.Context(), "c", "", "And you?")
							sent <- err
						}()
						select { // it is stored, or waits for the end of this transaction
						case err := <-sent:
							sent <- err
						case <-time.After(200 * time.Millisecond):
						}
					})
				}}
			}
		})
		w.serve(e)
		require.Equal(w, Done, w.wait(e, w.start(e, StartRequest{Text: "Hi."})).State)
		err := <-sent
		list, listErr := program.Messages(w.Context(), "c", "")
		require.NoError(w, listErr)
		require.Empty(w, list)
		if err != nil {
			require.ErrorIs(w, err, ErrNotBusy)
		} else {
			require.Contains(w, fmt.Sprint(w.load("c").Messages()), "And you?")
		}
	})
}

func TestJobThatComesTwiceOrLateDoesNothing(t *testing.T) {
	onOne(t, func(w *world) {
		var c counting
		e := w.engine(withCount(&c))
		run := w.start(e, StartRequest{Text: "Count."})
		require.NoError(w, w.db.Update(w.Context(), func(tx store.Tx) error {
			for range 3 {
				if _, err := e.insertRun(w.Context(), tx, runJob{Run: run, Conversation: "c", Head: store.Main, Agent: "a"}, 0); err != nil {
					return err
				}
			}
			return nil
		}))
		w.serve(e)
		w.wait(e, run)
		require.NoError(w, w.db.Update(w.Context(), func(tx store.Tx) error {
			_, err := e.insertRun(w.Context(), tx, runJob{Run: run, Conversation: "c", Head: store.Main, Agent: "a"}, 0)
			return err
		}))
		w.wait(e, w.start(e, StartRequest{Conversation: "d", Text: "Count."}))
		require.EqualValues(w, 4, c.total.Load())
		require.Len(w, w.load("c").Messages(), 4)
	})
}

func TestAnotherWriterAtTheHeadFailsTheRun(t *testing.T) {
	onOne(t, func(w *world) {
		e := w.engine(says(apitest.Func(func(api.Request) apitest.Turn {
			c, err := store.New(w.db).Conversation(w.Context(), "c")
			require.NoError(w, err)
			require.NoError(w, c.Append(w.Context(), c.DAG().User("Me too.")))
			return apitest.Say("Hello.")
		}).Always()))
		w.serve(e)
		r := w.wait(e, w.start(e, StartRequest{Text: "Hi."}))
		require.Equal(w, Failed, r.State)
		require.Contains(w, r.Reason, store.ErrMoved.Error())
		require.Contains(w, r.Reason, "main~") // where the answer is kept
	})
}

// The reply to an append is lost, and the conversation is redacted before it is tried again.
func TestRedactionAfterALostReplyDoesNotEndTheRun(t *testing.T) {
	onOne(t, func(w *world) {
		program := w.engine(nil)
		var once sync.Once
		e := w.engine(func(o *Options) {
			says(apitest.Say("Hello.").Always())(o)
			o.wrap = func(db store.Transactor) store.Transactor {
				return &lossy{db, func() (lose bool) {
					once.Do(func() {
						c, err := program.Store().Conversation(w.Context(), "c")
						require.NoError(w, err)
						require.NoError(w, c.Rewrite(w.Context(), c.DAG().Redact(c.DAG().Nodes()[0].ID())))
						lose = true
					})
					return lose
				}}
			}
		})
		w.serve(e)
		r := w.wait(e, w.start(e, StartRequest{Text: "My name is Ann."}))
		require.Equal(w, Done, r.State, r.Reason)
		require.Equal(w, "Hello.", w.text("c"))
	})
}

// lossy is a database that may lose the reply to an append.
type lossy struct {
	store.Transactor
	loses func() bool
}

// AppendIf implements store.Transactor.
func (l *lossy) AppendIf(ctx context.Context, a store.AppendRequest, query string, args ...any) (store.Head, bool, error) {
	h, held, err := l.Transactor.AppendIf(ctx, a, query, args...)
	if err == nil && l.loses() {
		return store.Head{}, false, errFault
	}
	return h, held, err
}

// A redaction changes what nodes hold, and not where the head is.
func TestRedactionDuringARunDoesNotEndIt(t *testing.T) {
	onOne(t, func(w *world) {
		begun, goOn := make(chan struct{}), make(chan struct{})
		e := w.engine(func(o *Options) {
			o.Agents = map[string]executor.Agent{"a": {Provider: calls("wait", 1), ToolTimeout: -1, Tools: []dag.Tool{
				tool("wait", func(context.Context, string) (string, error) {
					close(begun)
					<-goOn
					return "waited", nil
				}),
			}}}
		})
		w.serve(e)
		run := w.start(e, StartRequest{Text: "My name is Ann."})
		<-begun
		c, err := w.engine(nil).Store().Conversation(w.Context(), "c")
		require.NoError(w, err)
		d := c.DAG()
		require.NoError(w, c.Rewrite(w.Context(), d.Redact(d.Nodes()[0].ID())))
		close(goOn)

		r := w.wait(e, run)
		require.Equal(w, Done, r.State, r.Reason)
		require.Equal(w, "waited. ", w.text("c"))
		require.NotContains(w, fmt.Sprint(w.load("c").Messages()), "Ann")
		heads, err := w.db.Heads(w.Context(), "c", store.Page{})
		require.NoError(w, err)
		require.Len(w, heads, 1, "nothing was refused")
	})
}

func TestMigrateAtOnce(t *testing.T) {
	onEach(t, func(w *world) {
		if filepath.IsAbs(w.url) {
			w.url = filepath.Join(w.TempDir(), "empty.db")
		}
		errs := make(chan error, 3)
		for range cap(errs) {
			db := w.open()
			go func() {
				e, err := Open(context.Background(), db, nil)
				if err == nil {
					err = errors.Join(e.ready(context.Background()), e.Close())
				}
				errs <- err
			}()
		}
		for range cap(errs) {
			require.NoError(w, <-errs)
		}
	})
}

func TestOpenRefusesADatabaseWithoutAQueue(t *testing.T) {
	_, err := Open(t.Context(), struct{ store.Transactor }{}, nil)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestDamagedInboxIsNoticed(t *testing.T) {
	onOne(t, func(w *world) {
		e := w.engine(nil)
		run := w.start(e, StartRequest{Text: "Hi."})
		id, err := e.Send(w.Context(), "c", "", "pay 10")
		require.NoError(w, err)
		checked, ok := w.db.(checks)
		require.True(w, ok)
		require.NoError(w, checked.Check(w.Context()))

		// The sum of a row fits, and its payload is no message.
		require.NoError(w, w.db.Update(w.Context(), func(tx store.Tx) error {
			list, err := queryInbox(w.Context(), tx, "c", store.Main, "")
			require.NoError(w, err)
			list[0].Payload = []byte("pay 98")
			sum := list[0].Sum()
			_, err = tx.Exec(w.Context(), `UPDATE plait_inbox SET payload = $1, sum = $2`, list[0].Payload, sum[:])
			return err
		}))
		_, err = e.Messages(w.Context(), "c", "")
		require.ErrorIs(w, err, errDamaged)
		require.ErrorIs(w, e.Edit(w.Context(), id, "pay 11"), errDamaged)
		_, err = e.Front("a").Send(w.Context(), "c", func(d dag.DAG) dag.DAG {
			named, err := node.Meta{}.With("id", "1")
			require.NoError(w, err)
			return d.AppendMeta(node.Message{Role: content.User, Blocks: content.Words("pay 12")}, named)
		})
		require.ErrorIs(w, err, errDamaged)

		// The sum does not fit.
		require.NoError(w, w.db.Update(w.Context(), func(tx store.Tx) error {
			_, err := tx.Exec(w.Context(), `UPDATE plait_inbox SET payload = $1`, []byte("pay 99"))
			return err
		}))
		require.ErrorContains(w, checked.Check(w.Context()), "of the inbox")
		_, err = e.Messages(w.Context(), "c", "")
		require.ErrorIs(w, err, errDamaged)

		// The run is parked when it reads the message.
		w.serve(w.engine(says(apitest.Say("Hello.").Always())))
		r := w.wait(e, run)
		require.Equal(w, Parked, r.State)
		require.Contains(w, r.Reason, "damaged")
		require.NoError(w, e.Cancel(w.Context(), run, ""))
	})
}

// setVersion sets the version of the tables, as another program does.
func (w *world) setVersion(version int64) {
	w.Helper()
	require.NoError(w, w.db.Update(w.Context(), func(tx store.Tx) error {
		_, err := tx.Exec(w.Context(), `UPDATE plait_schema SET version = $1`, version)
		return err
	}))
}

func TestTablesBeforeTheFirstReleaseAreRefused(t *testing.T) {
	onOne(t, func(w *world) {
		w.setVersion(2)
		var old *sqlite.SchemaError
		_, _, err := openDatabase(w.Context(), w.url)
		require.ErrorAs(w, err, &old)
		require.ErrorContains(w, err, "append them to a new database")
	})
}

// TestRunsBehindAPooler uses the settings for PgBouncer in transaction mode: no prepared statements, no settings of a
// connection, and no notifications.
func TestRunsBehindAPooler(t *testing.T) {
	if pgtest.Missing() {
		t.Skip("SKIPPED: no PostgreSQL server is installed")
	}
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), pgtest.Database(t)+"&default_query_exec_mode=exec&pool_max_conns=8")
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	db, err := postgres.New(t.Context(), pool, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })

	w := &world{T: t, db: db, polls: true}
	var c counting
	e := w.engine(func(o *Options) {
		defers("count", 2)(o)
		works(c.tool("count"))(o)
	})
	w.serve(e)
	r := w.wait(e, w.start(e, StartRequest{Text: "Count."}))
	require.Equal(t, Done, r.State, r.Reason)
	require.Equal(t, "many bolts 0. many bolts 1. ", w.text("c"))
	require.NoError(t, db.Check(t.Context()))
}

// A process may die right after it has fetched a job, and after its other jobs were handed back.
func TestJobOfAProcessWithoutARowIsHandedBack(t *testing.T) {
	onEach(t, func(w *world) {
		e := w.engine(func(o *Options) {
			says(apitest.Say("Hello.").Always())(o)
			o.Heartbeat = 100 * time.Millisecond
		})
		run := w.start(e, StartRequest{Text: "Hi."})
		by := map[bool]string{true: `ARRAY['gone']`, false: `JSONB('["gone"]')`}[e.queue.dialect().writesInWith]
		require.NoError(w, w.db.Update(w.Context(), func(tx store.Tx) error {
			d := e.queue.dialect()
			_, err := tx.Exec(w.Context(), `UPDATE `+d.jobs+` SET state = 'running', attempt = 1, attempted_by = `+by+`,
				attempted_at = `+d.now)
			return err
		}))
		w.serve(e)
		require.Equal(w, Done, w.wait(e, run).State)
		require.Equal(w, "Hello.", w.text("c"))
	})
}
