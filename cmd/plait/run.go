package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/progress"
)

// runner is what run and resume have in common.
type runner struct {
	*streams
	provider, model string
	baseURL         string
	whole           bool
	body            string
	defers          bool
	unchecked       bool
	approve         bool
	turns           int
	user, userJSON  string
	results         string
	asJSON, quiet   bool
	before          [sha256.Size]byte // of FILE, as it was read
}

func runCommand(s *streams) *cobra.Command {
	r := &runner{streams: s}
	cmd := &cobra.Command{
		Use:   "run FILE --provider P --model M",
		Short: "Continue the conversation to its next stop or pause, and save it",
		Long: `Asks the model, and goes on until it calls nothing more. FILE is replaced by the
conversation with all that was said, also where the run failed or was
interrupted. Where FILE was changed meanwhile, it is left as it is, and what was
said goes to a file beside it. The answer is printed, and standard error shows
how far the run is.

The command carries out no tools. With --defer-tools, a run whose model calls
one pauses: the calls that wait are printed as JSON, the exit code is 3, and
"plait resume" brings their results. With --approve each call has to be
approved before.

The provider's key is in the environment: ANTHROPIC_API_KEY, OPENAI_API_KEY,
GEMINI_API_KEY. openai is openai-responses; openai-chat is for compatible
servers, too.`,
		Example: `  plait run talk.json --provider openai --model gpt-5 --user "Go on."
  plait run talk.json --provider openai-chat --model qwen3 \
    --base-url http://127.0.0.1:8080/v1 --defer-tools`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error { return r.run(cmd.Context(), args[0]) },
	}
	r.flags(cmd)
	return cmd
}

func resumeCommand(s *streams) *cobra.Command {
	r := &runner{streams: s}
	cmd := &cobra.Command{
		Use:   "resume FILE --results R.json",
		Short: "Give a paused run its tool results, or approvals, and go on",
		Long: `R.json is an object of the ids of calls, as they were printed, and replies:

  {"call_1": {"result": "22 °C"},
   "call_2": {"result": [{"type": "text", "text": "…"}], "is_error": true},
   "call_3": {"approve": true},
   "call_4": {"approve": true, "arguments": {"city": "Paris"}},
   "call_5": {"approve": false, "reason": "too risky"}}

Where results of some calls are missing, the run pauses again. The provider and
the model are those of the run, unless others are named.`,
		Example: `  plait resume talk.json --results results.json
  echo '{"call_1": {"result": "22 °C"}}' | plait resume talk.json --results -`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error { return r.resume(cmd.Context(), args[0]) },
	}
	r.flags(cmd)
	cmd.Flags().StringVar(&r.results, "results", "", "the `FILE` with the replies; - is standard input")
	_ = cmd.MarkFlagRequired("results")
	return cmd
}

func (r *runner) flags(cmd *cobra.Command) {
	r.endpointFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&r.user, "user", "", "say this `TEXT` before the model is asked")
	f.StringVar(&r.userJSON, "user-json", "", "a `FILE` with a list of blocks to say, such as\n[{\"type\": \"text\", \"text\": \"…\"}]; - is standard input")
	f.BoolVar(&r.defers, "defer-tools", false, "pause where the model calls a tool")
	f.BoolVar(&r.unchecked, "unchecked", false, "with --defer-tools, pause for calls of unknown tools\nand for wrong arguments, too; else the model is told")
	f.BoolVar(&r.approve, "approve", false, "pause for approval of each call, before that")
	jsonFlag(cmd, &r.asJSON)
}

// endpointFlags say whom to ask, and how.
func (r *runner) endpointFlags(cmd *cobra.Command) {
	names := append([]string{"openai"}, endpointNames()...)
	f := cmd.Flags()
	f.StringVar(&r.provider, "provider", "", "whom to ask, a `PROVIDER`: anthropic, openai,\nopenai-responses, openai-chat, gemini")
	f.StringVar(&r.model, "model", "", "the `MODEL`")
	bodyFlag(cmd, &r.body)
	f.StringVar(&r.baseURL, "base-url", "", "the `URL` of the API, for a server of your own")
	f.BoolVar(&r.whole, "no-stream", false, "ask for whole answers")
	f.IntVar(&r.turns, "max-turns", 0, "ask the model `N` times at most (default 50)")
	f.BoolVarP(&r.quiet, "quiet", "q", false, "do not show on standard error how far the run is")
	_ = cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
}

// pauseKey is where a paused run is kept in the metadata of its file, and runKey whom it asks.
const (
	pauseKey = "plait.continuation"
	runKey   = "plait.run"
)

// asks is whom a run asks, kept for its resumption.
type asks struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	BaseURL  string `json:"base_url,omitempty"`
	Whole    bool   `json:"no_stream,omitempty"`
	Approve  bool   `json:"approve,omitempty"`
	// Unchecked leaves the check of calls to whoever carries them out.
	Unchecked bool `json:"unchecked,omitempty"`
}

func (r *runner) run(ctx context.Context, name string) error {
	d, err := r.open(name)
	if err != nil {
		return err
	}
	said, err := r.words(name)
	if err != nil {
		return err
	}
	if len(said) > 0 {
		d = d.User("", said...)
	}
	agent, d, err := r.agent(d)
	if err != nil {
		return err
	}
	after, err := r.watch(agent.Stream(ctx, d))
	return r.finish(name, after, err)
}

func (r *runner) resume(ctx context.Context, name string) error {
	if name == std && r.results == std {
		return errors.New("FILE and --results cannot both be standard input")
	}
	d, err := r.open(name)
	if err != nil {
		return err
	}
	kept := d.Metadata().Get(pauseKey)
	if kept == "" || kept == "null" {
		return fmt.Errorf("%s: the conversation holds no paused run", name)
	}
	paused, err := executor.ContinuationCodec{}.Decode([]byte(kept))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	replies, err := r.replies()
	if err != nil {
		return fmt.Errorf("%s: %w", r.results, err)
	}
	said, err := r.words(name)
	if err != nil {
		return err
	}
	r.defers = true
	agent, d, err := r.agent(d)
	if err != nil {
		return err
	}
	agent.Steering = executor.NewQueue()
	if len(said) > 0 {
		if err := agent.Steering.Add("", said...); err != nil {
			return err
		}
	}
	after, err := r.watch(agent.ResumeStream(ctx, d, paused, replies))
	var refused *executor.ResumeError
	if errors.As(err, &refused) {
		return err // nothing was done
	}
	if agent.Steering.Len() > 0 {
		r.say("what --user says is not said yet: say it with the results that are missing")
	}
	return r.finish(name, after, err)
}

// watch takes the events of a run to its end, and shows on standard error how far it is.
func (r *runner) watch(events iter.Seq2[executor.Event, error]) (dag.DAG, error) {
	if !r.quiet {
		_, width := terminalOf(r.err)
		events = progress.Watch(r.err, events, &progress.Options{Width: width})
	}
	var after dag.DAG
	var failure error
	for event, err := range events {
		if end, ok := event.(executor.End); ok {
			after, failure = end.DAG, err
		}
	}
	return after, failure
}

// words is what the user says.
func (r *runner) words(name string) ([]content.Block, error) {
	var said []content.Block
	if r.user != "" {
		said = append(said, content.Text{Text: r.user})
	}
	if r.userJSON == "" {
		return said, nil
	}
	if r.userJSON == std && (name == std || r.results == std) {
		return nil, errors.New("standard input can be read once: FILE, --results and --user-json cannot share it")
	}
	data, err := r.read(r.userJSON)
	if err != nil {
		return nil, err
	}
	var blocks content.Blocks
	if err := json.Unmarshal(data, &blocks); err != nil {
		return nil, fmt.Errorf("%s: %w", r.userJSON, err)
	}
	return append(said, blocks.Slice()...), nil
}

func (r *runner) replies() (map[string]executor.Reply, error) {
	data, err := r.read(r.results)
	if err != nil {
		return nil, err
	}
	var replies map[string]executor.Reply
	err = json.Unmarshal(data, &replies)
	if err == nil && replies == nil {
		err = errors.New("it is null, and not an object of replies")
	}
	return replies, err
}

// agent is who runs the conversation, which comes back with what is to be kept.
func (r *runner) agent(d dag.DAG) (executor.Agent, dag.DAG, error) {
	var before asks
	if kept := d.Metadata().Get(runKey); kept != "" && r.provider == "" {
		_ = kept.Decode(&before)
		r.provider, r.whole = before.Provider, r.whole || before.Whole
		r.approve, r.unchecked = r.approve || before.Approve, r.unchecked || before.Unchecked
		if r.model == "" {
			r.model = before.Model
		}
		if r.baseURL == "" {
			r.baseURL = before.BaseURL
		}
	}
	if r.provider == "" {
		return executor.Agent{}, d, errors.New("name whom to ask by --provider")
	}
	e, err := endpointOf(r.provider)
	if err != nil {
		return executor.Agent{}, d, fmt.Errorf("--provider %w", err)
	}
	how, err := manner(d, e, r.model)
	if err != nil {
		return executor.Agent{}, d, err
	}
	how.baseURL, how.whole = r.baseURL, r.whole
	if d, err = withBody(d, e, how.model, r.body); err != nil {
		return executor.Agent{}, d, err
	}
	d = d.WithMetadata(runKey, asks{e.name, how.model, r.baseURL, r.whole, r.approve, r.unchecked})
	a := executor.Agent{Provider: e.dial(how), Options: request(d, e).Options, Limits: executor.Limits{Turns: r.turns}}
	if r.approve {
		a.Hooks = append(a.Hooks, executor.Approve())
	}
	if r.defers {
		elsewhere(&a, d.ToolDefs(), r.unchecked)
	}
	return a, d, d.Err()
}

// elsewhere leaves all calls to whoever called the command. Arguments are checked before, but not where tools are declared by a type that
// the provider knows: programs carry out some of these, and only the provider knows which.
func elsewhere(a *executor.Agent, defs []content.Tool, unchecked bool) {
	for _, def := range defs {
		if def.Server() {
			unchecked = true
		} else {
			a.Tools = append(a.Tools, executor.Remote(def))
		}
	}
	if unchecked {
		a.Strategy = executor.Deferred()
		a.Handler = func(context.Context, executor.Call) (any, error) {
			return nil, errors.New("the tool is carried out elsewhere")
		}
	}
}

// open reads the conversation, and remembers what the file held.
func (r *runner) open(name string) (dag.DAG, error) {
	data, err := r.read(name)
	if err != nil {
		return dag.DAG{}, err
	}
	r.before = sha256.Sum256(data)
	d, err := dag.Read(bytes.NewReader(data))
	var broken *dag.LoadError
	if errors.As(err, &broken) && name != std {
		broken.File = name
	}
	return d, err
}

// keep saves the conversation in the place of the one that was read. What was said is paid for: where the file was changed meanwhile, or
// cannot be written, it goes to another.
func (r *runner) keep(name string, d dag.DAG) error {
	if name == std {
		return r.save(name, d)
	}
	var reason error
	beside := filepath.Dir(name)
	if now, err := os.ReadFile(name); err == nil && sha256.Sum256(now) != r.before {
		reason = fmt.Errorf("%s was changed while the run went on, and is left as it is", name)
	} else if reason = r.save(name, d); reason == nil {
		return nil
	} else {
		beside = "" // the place for temporary files
	}
	other, err := os.CreateTemp(beside, filepath.Base(name)+".run-*.json")
	if err != nil {
		return errors.Join(reason, err)
	}
	if err := errors.Join(other.Close(), r.save(other.Name(), d)); err != nil {
		return errors.Join(reason, err)
	}
	return fmt.Errorf("%w; what was said is in %s", reason, other.Name())
}

// finish saves the conversation and tells what came of the run.
func (r *runner) finish(name string, d dag.DAG, failure error) error {
	var paused *executor.PausedError
	if errors.As(failure, &paused) {
		kept, err := executor.ContinuationCodec{}.Encode(paused.Continuation)
		if err != nil {
			return err
		}
		d = d.WithMetadata(pauseKey, json.RawMessage(kept))
	} else if d.Metadata().Get(pauseKey) != "" {
		d = d.WithMetadata(pauseKey, nil)
	}
	if errors.Is(failure, executor.ErrUnbound) {
		return fmt.Errorf("%w; with --defer-tools the run pauses where the model calls one", failure)
	}
	if err := r.keep(name, d); err != nil {
		return errors.Join(err, failure)
	}
	told := r.out
	if name == std {
		told = r.err // the conversation itself goes to standard output
	}
	out := &streams{out: told, err: r.err}
	switch {
	case paused != nil:
		if err := out.printJSON(waiting(paused.Continuation)); err != nil {
			return err
		}
		return &exitError{code: exitPaused}
	case errors.Is(failure, context.Canceled):
		return errors.New("interrupted; what was said until then is saved")
	case failure != nil:
		return failure
	case r.asJSON:
		return out.printJSON(endOf(d))
	}
	_, err := fmt.Fprintln(told, printable(d.Text()))
	return err
}

// pause is what is printed of a run that waits.
type pause struct {
	Paused content.Stop  `json:"paused"`
	Run    string        `json:"run"`
	Calls  []pendingCall `json:"calls"`
}

type pendingCall struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Approval  bool            `json:"approval,omitempty"`
	Reason    string          `json:"reason,omitempty"`
}

func waiting(c executor.Continuation) pause {
	p := pause{Paused: c.Reason, Run: c.Run}
	for _, call := range c.Pending {
		p.Calls = append(p.Calls, pendingCall{call.ID, call.Call.Name, json.RawMessage(call.Call.Input), call.Approval, call.Reason})
	}
	return p
}

// ending is what is printed of a run that is over.
type ending struct {
	Stop      content.Stop  `json:"stop"`
	Answer    string        `json:"answer"`
	Turns     int           `json:"turns"`
	ToolCalls int           `json:"tool_calls"`
	Usage     content.Usage `json:"usage"`
}

func endOf(d dag.DAG) ending {
	e := ending{Answer: d.Text()}
	for _, n := range slices.Backward(d.Nodes()) {
		if stop, ok := n.Payload().(node.StopReason); ok {
			e.Stop, e.Turns, e.ToolCalls, e.Usage = stop.Reason, stop.Turns, stop.ToolCalls, stop.Usage
			break
		}
	}
	return e
}
