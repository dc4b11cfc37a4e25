package durable

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/store"
)

// Engine starts durable runs, and executes the runs of its agents.
type Engine struct {
	// Store holds the runs. It is required.
	Store store.Runs
	// Agents are the agents by name. A run is stored with the name, and any process with an agent of that name can
	// continue it. Set executor.DeferAll as the strategy of an agent if workers execute all of its calls.
	Agents map[string]executor.Agent
	// CallOptions returns the limits of a deferred call. Defaults to the zero CallOptions for every call.
	CallOptions func(p dag.Pending) CallOptions
	// Attributes names the attributes (executor.WithAttributes) to store with a pause and to send with its calls. See
	// executor.ContinuationCodec. Defaults to none.
	Attributes []string
	// Attempts is how often a run may be claimed without a pause in between. After that the run is parked, because it
	// may be crashing its processes. A claim counts if its process was lost, or if the run is tried again after a
	// failure of the provider or the store. The wait between claims doubles from 2 to 256 times Poll: with the
	// defaults, a run is parked when the provider has been down for about 18 minutes. A claim interrupted by the end of
	// Serve does not count. Defaults to 10.
	Attempts int
	// Source provides IDs and times for nodes. Defaults to the source of dag.New.
	Source node.Source
	Settings

	capacity capacity
}

// CallOptions are the limits of a deferred call.
type CallOptions struct {
	// Attempts is how many processes may begin the call. With 1 it is never repeated: if its process is lost, the model
	// reads that the outcome is unknown. Negative is no limit. Defaults to 5 for tools of the agent that allow
	// repetition (executor.WithEffect), and to 1 for all others.
	Attempts int
	// ResultTimeout is the maximum time from the pause to the result. After that the call is given up, with an error
	// result for the model. Defaults to no limit.
	ResultTimeout time.Duration
}

// StartRequest describes a run to start.
type StartRequest struct {
	// Run is the run's ID. A second Start with the same ID does nothing, so a Start can be repeated if the reply was
	// lost. Defaults to a new ID.
	Run string
	// Agent is the name of the agent: a key of [Engine.Agents] in some process.
	Agent string
	// Conversation is the key of the conversation to continue, and Head its head. Head defaults to "main". At "main", a
	// missing conversation is created; any other head must exist.
	Conversation, Head string
	// Text is the message of the user; "" for none.
	Text string
	// Add appends nodes before the run begins, and before Text if both are set. Defaults to nothing.
	Add func(d dag.DAG) dag.DAG
}

// Errors in the setup of an engine or a worker.
var (
	errNoStore = errors.New("durable: it has no Store")
	errNoAgent = errors.New("durable: a run needs an agent")
)

// Start stores a run, and returns its ID. It does not wait for the run. A head has one run at a time: until that run
// has ended, the error holds store.ErrBusy.
func (e *Engine) Start(ctx context.Context, s StartRequest) (run string, err error) {
	switch {
	case e.Store == nil:
		return "", errNoStore
	case s.Agent == "":
		return "", errNoAgent
	}

	if s.Run == "" {
		s.Run = uuid.Must(uuid.NewV7()).String()
	}
	if s.Head == "" {
		s.Head = store.Main
	}

	c, err := open(ctx, e.Store, s.Conversation, s.Head)
	if err != nil {
		return "", err
	}
	d := c.DAG().WithSource(e.Source)
	if s.Add != nil {
		d = s.Add(d)
	}
	if s.Text != "" {
		d = d.User(s.Text)
	}

	// The nodes and the run are stored in one transaction.
	err = c.AppendWith(ctx, d, func(ctx context.Context, a store.AppendRequest) (store.Head, error) {
		// Begin returns the run. The head is the one that the append makes.
		_, err := e.Store.Begin(ctx, store.BeginRequest{Run: s.Run, Agent: s.Agent, Append: a})
		return store.Head{Name: a.Head, Version: a.Expect + 1, Nodes: a.Nodes, Header: a.Header}, err
	})
	if errors.Is(err, store.ErrRunExists) {
		err = nil // an earlier Start with this ID was stored
	}
	return s.Run, err
}

// open opens a conversation at a head. At "main" it creates a missing conversation.
func open(ctx context.Context, runs store.Runs, conversation, head string) (*store.Conversation, error) {
	if head == store.Main {
		return store.New(runs, nil).Conversation(ctx, conversation)
	}
	return store.New(runs, nil).Head(ctx, conversation, head)
}

// Reply replies to a call of a paused run. [store.Runs].Tasks lists the calls. A reply is one of these:
//
//   - executor.Approved or executor.Declined, for a call that needs approval;
//   - executor.Returned or executor.Failed, for a call that was executed outside a [Worker].
//
// The first reply to a call counts. The same reply again is no error. A different one is store.ErrResultConflict.
func (e *Engine) Reply(ctx context.Context, key store.Key, reply executor.Reply) error {
	payload, err := reply.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = e.Store.Accept(ctx, store.Result{Key: key, Outcome: store.OutcomeOK, Payload: payload})
	return err
}

// Cancel ends a run in any process. Its calls are cancelled, and later results are refused. Nothing more is added to
// its conversation.
func (e *Engine) Cancel(ctx context.Context, run, reason string) error {
	return e.Store.Cancel(ctx, run, reason)
}

// Wait waits until the run has ended or is parked, and returns it.
func (e *Engine) Wait(ctx context.Context, run string) (store.Run, error) {
	// Listen before the first look at the run, so that no end is missed in between.
	bell := make(chan struct{}, 1)
	defer e.Store.Listen(func(w store.Wake) {
		if w.Kind == store.WakeStopped && w.Key.Run == run {
			ring(bell)
		}
	})()

	// Wake-ups of other processes are not guaranteed, so poll too.
	for poll := e.Settings.withDefaults().Poll; ; {
		r, err := e.Store.Run(ctx, run)
		if err != nil || r.State.Ended() || r.State == store.RunParked {
			return r, err
		}

		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-bell:
		case <-time.After(jitter(poll)):
		}
	}
}

// Serve executes runs until ctx is done. It then begins no more runs, waits for those under way, and interrupts them
// after Settings.ShutdownTimeout. An interrupted run continues from its last step, here or elsewhere.
func (e *Engine) Serve(ctx context.Context) error {
	p, err := e.pool()
	if err != nil {
		return err
	}
	p.serve(ctx)
	return nil
}

// Handle executes the run of a wake-up, if it is ready, up to its next pause or its end. It is for programs with a
// queue of wake-ups; Serve needs none. It waits for a free slot; Handle and Serve share the slots. After an error there
// is nothing to repeat: Serve finds the run.
//
// If ctx is done, Handle begins nothing. A run under way is interrupted Settings.ShutdownTimeout after that.
func (e *Engine) Handle(ctx context.Context, wake store.Wake) error {
	p, err := e.pool()
	if err != nil || wake.Kind != store.WakeRun {
		return err
	}
	return p.handle(ctx, func(ctx context.Context) ([]func(context.Context), error) {
		return e.claim(ctx, p.Settings, wake.Key.Run, 1)
	})
}

func (e *Engine) pool() (*pool, error) {
	if e.Store == nil {
		return nil, errNoStore
	}
	s := e.Settings.withDefaults()
	return &pool{
		Settings: s, store: e.Store, capacity: e.capacity.of(s.Concurrency),
		claim: func(ctx context.Context, limit int) ([]func(context.Context), error) {
			return e.claim(ctx, s, "", limit)
		},
		wanted: func(w store.Wake) bool {
			_, has := e.Agents[w.Agent]
			return w.Kind == store.WakeRun && has
		},
	}, nil
}

// formats lists the formats of continuations for this version. See executor.ContinuationCodec.
var formats = []int{2}

// claim claims up to limit runs, or only the given run if it is not "". It returns a function for each claimed run,
// which executes it.
func (e *Engine) claim(ctx context.Context, s Settings, run string, limit int) ([]func(context.Context), error) {
	// Count the lease from before the claim, so that it never lasts longer here than in the store.
	began := s.now()
	runs, err := e.Store.ClaimRuns(ctx, store.ClaimRunsRequest{
		Worker: s.Name, Agents: slices.Sorted(maps.Keys(e.Agents)), Formats: formats, Run: run,
		Lease: s.Lease, Limit: limit,
	})

	var work []func(context.Context)
	for _, claimed := range runs {
		work = append(work, func(ctx context.Context) {
			r := &running{engine: e, Settings: s, ClaimedRun: claimed, began: began}
			r.do(ctx)
		})
	}
	return work, err
}

func (e *Engine) attempts() int {
	if e.Attempts > 0 {
		return e.Attempts
	}
	return 10
}

// callOptions returns the options of a call of an agent, with their defaults.
func (e *Engine) callOptions(agent string, p dag.Pending) (opts CallOptions) {
	if e.CallOptions != nil {
		opts = e.CallOptions(p)
	}
	switch {
	case opts.Attempts < 0:
		opts.Attempts = 0 // no limit, in the store
	case opts.Attempts == 0:
		opts.Attempts = attemptsOf(e.Agents[agent].Tools, p.Call.Name)
	}
	return opts
}

// attemptsOf returns how often a call of the tool may begin. The tool's effect decides. A tool without an effect, or
// one the agent does not have, is not repeated.
func attemptsOf(tools []dag.Tool, name string) int {
	for _, t := range tools {
		tool, ok := t.(executor.Tool)
		if !ok || tool.Definition().Name != name {
			continue
		}
		if own, ok := as[interface{ Effect() executor.Effect }](tool); ok && own.Effect() != executor.EffectUnknown {
			return repeatable
		}
	}
	return 1
}

// repeatable is the default of CallOptions.Attempts for a tool that allows repetition.
const repeatable = 5

// pauseOf returns the saved form of the pause of d, with a task for each awaited call.
func (e *Engine) pauseOf(run store.Run, c executor.Continuation, d dag.DAG) (*store.Pause, error) {
	// Use the ID of the durable run. The executor's changes if the run is begun again after a crash.
	c.Run = run.ID
	payload, err := executor.ContinuationCodec{Keys: e.Attributes}.Encode(c)
	if err != nil {
		return nil, err
	}
	p := &store.Pause{Continuation: c.ID, Format: formats[len(formats)-1], Payload: payload}

	for _, pending := range d.Pending() {
		if c.Reason == content.StopApproval && !pending.Approval {
			continue // deferred as well; the run pauses for it again, after the approvals
		}

		payload, err := executor.ToolTaskCodec{Keys: e.Attributes}.EncodeCall(c, pending)
		if err != nil {
			return nil, err
		}

		// No worker executes a call that needs approval: only Engine.Reply answers it, without limits of time or
		// attempts.
		task := store.Task{
			Key: store.Key{Call: pending.Key.String()}, Tool: pending.Call.Name, Payload: payload, External: pending.Approval,
		}
		if !pending.Approval {
			opts := e.callOptions(run.Agent, pending)
			task.Attempts, task.ResultTimeout = opts.Attempts, opts.ResultTimeout
		}
		p.Tasks = append(p.Tasks, task)
	}
	return p, nil
}
