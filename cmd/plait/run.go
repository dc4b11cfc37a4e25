package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/tape"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/mcp"
	"github.com/plait-dev/plait/executor/progress"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/secret"
	"github.com/plait-dev/plait/internal/wire"
	"github.com/plait-dev/plait/node"
)

// runner holds the flags and the state of run and resume.
type runner struct {
	*streams
	provider, model string
	baseURL         string
	byFile          bool // FILE names the provider and its server
	whole           bool
	body            string
	settings        settings
	defers          bool
	unchecked       bool
	approve         bool
	leavesOut       bool // tools that nothing executes are left out of the requests
	turns           int
	idle            time.Duration
	user, userJSON  string
	results         string
	asJSON, quiet   bool
	record, replay  string
	tape            *tape.Tape        // records or plays the HTTP traffic; nil for neither
	mcp             []string          // the values of --mcp
	servers         []*mcp.Server     // their servers
	opened          *openCalls        // of the last agent
	before          [sha256.Size]byte // the hash of FILE when it was read
	repairs         repairLog
}

// repairLog lists the repairs of the requests of a run, each once, in order.
type repairLog struct {
	list []string
	seen map[string]bool
}

// add appends a repair, and reports whether it is new.
func (l *repairLog) add(text string) bool {
	if l.seen[text] {
		return false
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[text] = true
	l.list = append(l.list, text)
	return true
}

// all returns the list. It is never nil: JSON has an empty list, not null.
func (l *repairLog) all() []string { return append([]string{}, l.list...) }

func runCommand(s *streams) *cobra.Command {
	r := &runner{streams: s}
	cmd := &cobra.Command{
		Use:   "run FILE --provider P --model M",
		Short: "Run the model until it stops or pauses, and save the conversation",
		Long: `Runs the model until it stops calling tools. FILE is updated in place, even if
the run fails or is interrupted. If FILE was changed meanwhile, it is not
touched, and the conversation is written to a file beside it. The answer is
printed; progress, and every repair of a request, go to standard error. With a
message, FILE may be new.

The command executes the tools of the MCP servers of --mcp, and no others. With
--defer-tools, a run pauses when the model calls another one: the pending calls
are printed as JSON, the exit code is 3, and "plait resume" supplies their
results. With --approve each call has to be approved first.

Calls that are open in FILE are asked about one by one, even without --approve:
FILE may come from somebody else. If standard input or standard error is no
terminal, the exit code is 4, and nothing is executed, sent or saved. Scripts
use --approve and "plait resume".

The provider's key is in the environment: ANTHROPIC_API_KEY, OPENAI_API_KEY,
GEMINI_API_KEY. openai is openai-responses. llama.cpp, vllm, ollama and lmstudio
are servers on this machine, at their usual ports unless --base-url names
another place; openrouter, deepseek, groq and mistral have keys of their own, as
in DEEPSEEK_API_KEY. openai-chat is for any other compatible server.

A server of the last run is used again without --base-url if it is on this
machine, but without your key. Any other one has to be named each time: FILE may
come from somebody else, and the server gets your key.`,
		Example: `  plait run talk.json --provider openai --model gpt-5 --user "Go on."
  plait run talk.json --provider ollama --model qwen3 --user "Go on."
  plait run talk.json --provider openai-chat --model qwen3 \
    --base-url http://127.0.0.1:8080/v1 --defer-tools
  plait run talk.json --user "What is in notes.txt?" --model gpt-5 \
    --mcp 'npx -y @modelcontextprotocol/server-filesystem .'`,
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
		Short: "Continue a paused run with tool results or approvals",
		Long: `R.json is an object of replies, by the IDs of the calls as they were printed:

  {"call_1": {"result": "22 °C"},
   "call_2": {"result": [{"type": "text", "text": "…"}], "is_error": true},
   "call_3": {"approve": true},
   "call_4": {"approve": true, "arguments": {"city": "Paris"}},
   "call_5": {"approve": false, "reason": "too risky"}}

If results are missing, the run pauses again. The provider and the model are
those of the run, unless --provider and --model name others; MCP servers are
given again with --mcp. The exit codes are those of run.

Each call in FILE that would be executed needs a reply. With --mcp, the calls
that the model makes afterwards wait for approval, too, unless --approve=false
is given. FILE has no say in it.`,
		Example: `  plait resume talk.json --results results.json
  echo '{"call_1": {"result": "22 °C"}}' | plait resume talk.json --results -`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			// The run may have begun with --approve. FILE does not say so: it may come from somebody else.
			if !cmd.Flags().Changed("approve") {
				r.approve = len(r.mcp) > 0
			}
			return r.resume(cmd.Context(), args[0])
		},
	}
	r.flags(cmd)
	cmd.Flags().Lookup("approve").Usage = "pause for approval of each call first; the default\nwith --mcp: --approve=false executes calls"
	cmd.Flags().StringVar(&r.results, "results", "", "the `FILE` with the replies; - is standard input")
	_ = cmd.MarkFlagRequired("results")
	return cmd
}

// flags registers the flags of run and resume.
func (r *runner) flags(cmd *cobra.Command) {
	r.endpointFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&r.user, "user", "", "append this `TEXT` as a user message first")
	f.StringVar(&r.userJSON, "user-json", "", "a `FILE` with a list of blocks to append, such as\n[{\"type\": \"text\", \"text\": \"…\"}]; - is standard input")
	r.toolFlags(cmd)
	f.BoolVar(&r.unchecked, "unchecked", false, "with --defer-tools, pause for calls of unknown tools\nand with wrong arguments, too; otherwise their\nresult is an error")
	jsonFlag(cmd, &r.asJSON)
}

// toolFlags registers the flags for tool calls.
func (r *runner) toolFlags(cmd *cobra.Command) {
	r.mcpFlag(cmd)
	f := cmd.Flags()
	f.BoolVar(&r.approve, "approve", false, "pause for approval of each call first")
	f.BoolVar(&r.defers, "defer-tools", false, "pause when the model calls a tool, unless it is one\nof an MCP server")
}

// endpointFlags registers the flags for the provider and its requests.
func (r *runner) endpointFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&r.provider, "provider", "", "the `PROVIDER`: anthropic, openai,\nopenai-responses, openai-chat, gemini, or a server:\n"+
		"llama.cpp, vllm, ollama, lmstudio, openrouter,\ndeepseek, groq, mistral (default: that of the last\nrun, or as the model's name suggests)")
	f.StringVar(&r.model, "model", "", "the `MODEL`")
	r.settings.flags(cmd)
	bodyFlag(cmd, &r.body)
	f.StringVar(&r.baseURL, "base-url", "", "the `URL` of the API, for a server of your own")
	f.BoolVar(&r.whole, "no-stream", false, "request whole responses")
	f.IntVar(&r.turns, "max-turns", 0, "send at most `N` requests (default 50)")
	f.StringVar(&r.record, "record", "", "record the HTTP traffic with the provider in this\n`FILE`, without keys")
	f.StringVar(&r.replay, "replay", "", "use the responses that were recorded in this `FILE`,\nwithout network or key")
	f.DurationVar(&r.idle, "idle-timeout", 0, "give up on a request after the provider sent nothing\nfor this `TIME`, such as 90s, and try it again\n(default 5m; 10m with --no-stream)")
	f.BoolVarP(&r.quiet, "quiet", "q", false, "print no progress; repairs are still printed")
}

// runKey is the key in the metadata of a file for the runSettings of the last run.
const runKey = "plait.run"

// runSettings are the flags of a run to repeat on resume. They are saved in the file.
type runSettings struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	BaseURL  string `json:"base_url,omitempty"` // without its password and key
	Whole    bool   `json:"no_stream,omitempty"`
	// Unchecked is set if calls are not checked before they are deferred.
	Unchecked bool `json:"unchecked,omitempty"`
	// The settings for responses; zero for the default.
	MaxTokens   int      `json:"max_tokens,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	Effort      string   `json:"effort,omitempty"`
}

func (r *runner) run(ctx context.Context, name string) (err error) {
	if err := r.begin(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.end()) }()

	message, err := r.userBlocks(name)
	if err != nil {
		return err
	}
	d, err := r.openOrNew(name, len(message) > 0)
	if err != nil {
		return err
	}
	if len(message) > 0 {
		d = d.User("", message...)
	}

	agent, d, err := r.agent(d)
	if err != nil {
		return err
	}

	// Until somebody has approved the calls of FILE, nothing is saved: FILE stays as it is if the run is refused.
	held := len(r.servers) > 0 && (len(d.OpenCalls()) > 0 || len(d.Heads()) > 1)
	if save := r.saveOf(name); save != nil {
		agent.Save = func(ctx context.Context, d dag.DAG) error {
			if held && !r.opened.asked.Load() {
				return nil
			}
			return save(ctx, d)
		}
	}

	after, err := r.watch(agent.Stream(ctx, d))
	var paused *executor.PausedError
	if errors.As(err, &paused) && !r.approve && r.opened.undecided(after) {
		replies, refusal := r.askOpenCalls(ctx, name, after)
		if refusal != nil {
			return refusal
		}

		held = false
		after, err = r.watch(agent.ResumeStream(ctx, after, replies...))
		if refused := (*executor.ResumeError)(nil); errors.As(err, &refused) {
			return err // nothing was executed
		}
	}

	// finish comes after a failure, too: it saves the conversation so far.
	return r.finish(name, after, err)
}

func (r *runner) resume(ctx context.Context, name string) (err error) {
	if name == std && r.results == std {
		return errors.New("FILE and --results cannot both be standard input")
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.end()) }()

	d, err := r.open(name)
	if err != nil {
		return err
	}

	if len(d.Pending()) == 0 {
		return fmt.Errorf("%s: the conversation holds no paused run", name)
	}

	replies, err := r.replies(d)
	if err != nil {
		return fmt.Errorf("%s: %w", r.results, err)
	}

	message, err := r.userBlocks(name)
	if err != nil {
		return err
	}

	// The results of these tools are in the replies, so they have no function here: their calls stay deferred.
	r.defers = true

	agent, d, err := r.agent(d)
	if err != nil {
		return err
	}

	agent.Save = r.saveOf(name)
	// A conversation with open calls takes no message. The run appends it once the calls have their results.
	agent.Steering = executor.NewQueue()
	if len(message) > 0 {
		if err := agent.Steering.Add("", message...); err != nil {
			return err
		}
	}

	after, err := r.watch(agent.ResumeStream(ctx, d, replies...))
	var refused *executor.ResumeError
	if errors.As(err, &refused) {
		return r.named(refused, d) // nothing was executed
	}
	if agent.Steering.Len() > 0 {
		r.say("the --user message is not appended yet: pass it again with the missing results")
	}
	return r.finish(name, after, err)
}

// named returns a refusal with the name that --results has for the call.
func (r *runner) named(refused *executor.ResumeError, d dag.DAG) error {
	for _, p := range pendingIn(d) {
		if p.Key == refused.Call && refused.Err == nil {
			return fmt.Errorf("%w: %q", refused.Kind, p.name)
		}
	}
	return refused
}

// watch reads the events of a run to the end, and writes the progress to standard error.
func (r *runner) watch(events iter.Seq2[executor.Event, error]) (dag.DAG, error) {
	if !r.quiet {
		_, width := terminalOf(r.err)
		events = progress.Watch(r.err, events, &progress.Options{Width: width})
	}

	var after dag.DAG
	var failure error
	for event, err := range events {
		switch e := event.(type) {
		case executor.Repaired:
			r.showRepairs(e.Repairs)
		case executor.End:
			// A failed run ends with its conversation, too.
			after, failure = e.DAG, err
		}
	}

	return after, failure
}

// showRepairs prints the repairs of a request, also with --quiet. Every request of a run repeats the repairs of those
// before it, so each is printed once.
func (r *runner) showRepairs(repairs []api.RepairNote) {
	for _, note := range repairs {
		r.showRepair(note.String())
	}
}

// showRepair prints a repair, unless it was printed before.
func (r *runner) showRepair(text string) {
	if !r.repairs.add(text) {
		return
	}

	// The progress line is redrawn in place, without a line break: clear it, in the same write.
	clear := ""
	if terminal, _ := terminalOf(r.err); terminal && !r.quiet {
		clear = "\r\x1b[K"
	}
	fmt.Fprintln(r.err, clear+safetext.Block("repaired: "+text))
}

// showArguments prints the pending calls with repaired arguments: the model did not write a JSON object.
func (r *runner) showArguments(d dag.DAG) {
	for _, p := range pendingIn(d) {
		if len(p.Path) == 0 && p.Input != "" && p.Input != p.Call.Input {
			r.showRepair(fmt.Sprintf("call %s: arguments: the JSON object inside what the model wrote is used", p.name))
		}
	}
}

// userBlocks returns the blocks of --user and --user-json.
func (r *runner) userBlocks(name string) ([]content.Block, error) {
	var list []content.Block
	if r.user != "" {
		list = append(list, content.Text{Text: r.user})
	}

	if r.userJSON == "" {
		return list, nil
	}
	if r.userJSON == std && (name == std || r.results == std) {
		return nil, errors.New("only one input can be standard input: FILE, --results and --user-json cannot share it")
	}
	data, err := r.read(r.userJSON)
	if err != nil {
		return nil, err
	}

	var blocks content.Blocks
	if err := json.Unmarshal(data, &blocks); err != nil {
		return nil, fmt.Errorf("%s: %w", r.userJSON, err)
	}
	return append(list, blocks.Slice()...), nil
}

// replies reads the file of --results.
func (r *runner) replies(d dag.DAG) ([]executor.Reply, error) {
	data, err := r.read(r.results)
	if err != nil {
		return nil, err
	}

	var saved map[string]json.RawMessage
	err = json.Unmarshal(data, &saved)
	if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
		return nil, err
	}
	if err != nil || saved == nil {
		return nil, errors.New(`it is not an object of replies, such as {"call_1": {"result": "22 °C"}}`)
	}

	replies, wrong, err := repliesTo(d, saved)
	if err != nil {
		return nil, fmt.Errorf("the reply to %q: %w", wrong, replyError(err))
	}
	return replies, nil
}

// replyError returns the error about a reply with the name of the wrong member, but without the prefix of the library.
func replyError(err error) error {
	var wrong *executor.CodecError
	switch {
	case !errors.As(err, &wrong):
		return err
	case wrong.Field == "":
		return wrong.Err
	}
	return fmt.Errorf("%s: %w", wrong.Field, wrong.Err)
}

// begin opens the file of --record or --replay, and connects to the servers of --mcp. After success, the caller calls
// end.
func (r *runner) begin(ctx context.Context) error {
	err := r.openTape()
	if err == nil {
		err = r.connect(ctx)
	}
	// Some servers may run already: end ends them.
	if err != nil {
		return errors.Join(err, r.end())
	}
	return nil
}

// end writes the file of --record, and ends the servers of --mcp.
func (r *runner) end() error {
	r.disconnect()
	return r.closeTape()
}

// openTape opens the file of --record or --replay.
func (r *runner) openTape() error {
	name, mode := r.record, tape.Record
	if r.replay != "" {
		name, mode = r.replay, tape.Play
	}
	switch {
	case name == "":
		return nil
	case r.record != "" && r.replay != "":
		return errors.New("--record and --replay exclude each other")
	}

	var err error
	r.tape, err = tape.Open(name, &tape.Options{Mode: mode})
	if errors.Is(err, fs.ErrNotExist) && r.replay != "" {
		return fmt.Errorf("--replay %s: the file does not exist; --record writes it", name)
	}
	return err
}

// closeTape writes the file of --record. After --replay it returns no error: a run need not use all recorded requests,
// and a request without a recording has failed already.
func (r *runner) closeTape() error {
	if r.tape == nil {
		return nil
	}
	err := r.tape.Close()
	if r.replay != "" {
		return nil
	}
	return err
}

// choose sets the provider. Missing flags get the values of the last run, unless the model is of another provider. It
// returns an error for a server that is only in the file and not trusted (see trusted).
func (r *runner) choose(d dag.DAG) error {
	if r.provider != "" {
		return nil
	}

	before := settingsOf(d)

	// The settings of the last run do not hold for a model of another provider, unless a base URL names its server.
	named := providerOf(r.model)
	moved := named != "" && !strings.HasPrefix(before.Provider, named) && before.BaseURL == "" && r.baseURL == ""

	if before.Provider != "" && !moved {
		switch {
		case r.baseURL != "" || r.replay != "":
		case strings.Contains(before.BaseURL, secret.Redacted):
			return fmt.Errorf("the server %q is saved without its password or key: name it again with --base-url", before.BaseURL)
		case !before.trusted():
			return fmt.Errorf("the conversation names the server %q, which would get your key and your messages: "+
				"if you trust it, name it with --base-url; else name a provider with --provider", secret.URL(before.BaseURL))
		}
		r.byFile = r.baseURL == ""
		r.provider, r.whole = before.Provider, r.whole || before.Whole
		r.model, r.baseURL = cmp.Or(r.model, before.Model), cmp.Or(r.baseURL, before.BaseURL)
	}
	r.unchecked = r.unchecked || before.Unchecked
	r.settings.maxTokens = cmp.Or(r.settings.maxTokens, before.MaxTokens)
	r.settings.temperature.value = cmp.Or(r.settings.temperature.value, before.Temperature)
	r.settings.effort = cmp.Or(r.settings.effort, before.Effort)

	switch {
	case r.provider != "":
	case r.baseURL != "" && (named == "" || named == "openai"):
		r.provider = "openai-chat" // the API of most compatible servers
	default:
		r.provider = named
	}
	return nil
}

// settingsOf returns the settings of the last run of a conversation.
func settingsOf(d dag.DAG) (s runSettings) {
	if kept := d.Metadata().Get(runKey); kept != "" {
		_ = kept.Decode(&s) // a value of another program is ignored
	}
	return s
}

// trusted reports whether requests may go to the server of the settings. Only the conversation names this server, and
// the file may come from somebody else. A server on this machine is trusted, without a key, and the known server of the
// provider.
func (s runSettings) trusted() bool {
	if s.BaseURL == "" {
		return true
	}
	if e, err := endpointOf(s.Provider); err == nil && e.server != nil && e.server.BaseURL == s.BaseURL {
		return true
	}
	return onThisMachine(s.BaseURL)
}

// onThisMachine reports whether a base URL is that of a server on this machine.
func onThisMachine(baseURL string) bool {
	u, err := url.Parse(baseURL)
	return err == nil && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}

// agent returns the agent for a run, and the conversation with the settings of the run in its metadata.
func (r *runner) agent(d dag.DAG) (executor.Agent, dag.DAG, error) {
	if err := r.choose(d); err != nil {
		return executor.Agent{}, d, err
	}
	if r.provider == "" {
		return executor.Agent{}, d, errors.New("name the provider with --provider")
	}

	e, err := endpointOf(r.provider)
	if err != nil {
		return executor.Agent{}, d, fmt.Errorf("--provider %w", err)
	}
	if r.idle < 0 {
		return executor.Agent{}, d, fmt.Errorf("--idle-timeout %v is negative", r.idle)
	}

	how, err := r.howTo(d, e)
	if err != nil {
		return executor.Agent{}, d, err
	}
	if d, err = withBody(d, e, how.model, r.body); err != nil {
		return executor.Agent{}, d, err
	}

	// Saved for resume, and for the next run.
	d = d.WithMetadata(runKey, runSettings{
		e.name, how.model, secret.URL(r.baseURL), r.whole, r.unchecked,
		r.settings.maxTokens, r.settings.temperature.value, r.settings.effort,
	})

	options, err := r.settings.over(e.api, request(d, e).Options)
	if err != nil {
		return executor.Agent{}, d, err
	}
	options.Idle = r.idle
	a := executor.Agent{Provider: e.dial(how), Options: options, Limits: executor.Limits{Turns: r.turns}}

	if r.approve {
		a.Hooks = append(a.Hooks, executor.RequireApproval())
	}
	r.opened = &openCalls{}

	if err := r.bindTools(&a, d.ToolDefs()); err != nil {
		return a, d, err
	}
	return a, d, d.Err()
}

// howTo returns how to reach the endpoint, and sets the base URL of a known server.
func (r *runner) howTo(d dag.DAG, e endpoint) (endpointOptions, error) {
	how, err := optionsFor(d, e, r.model)
	if err != nil {
		return how, err
	}
	if e.server != nil {
		r.baseURL = cmp.Or(r.baseURL, e.server.BaseURL)
	}
	if r.baseURL != "" {
		if err := wire.CheckAddress(r.baseURL); err != nil {
			return how, fmt.Errorf("--base-url: %w", err)
		}
	}

	how.baseURL, how.whole = r.baseURL, r.whole
	if r.tape != nil {
		how.client, how.keyless = r.tape.Client(), r.replay != ""
	}
	if how.unnamed = r.byFile && onThisMachine(r.baseURL); how.unnamed {
		how.client = withoutKeys(how.client)
	}
	return how, nil
}

// bindTools gives the agent the tools of the servers. With --defer-tools it defers the calls of all other tools.
func (r *runner) bindTools(a *executor.Agent, defs []content.Tool) error {
	r.bind(a)
	a.Hooks = append(a.Hooks, r.opened.hook(toolNames(a.Tools)))
	names := withoutFunction(defs, a.Tools)
	switch {
	case r.defers && len(r.servers) > 0 && defersUnchecked(defs, r.unchecked):
		return errors.New("with --mcp, calls can be deferred only if their arguments are checked (no --unchecked, no tools that the provider knows by type)")
	case r.defers:
		deferAll(a, defs, r.unchecked)
	case len(names) > 0 && !r.leavesOut:
		// A run would leave these tools out of the requests. Most likely that is not intended.
		return fmt.Errorf("%w; with --defer-tools the run pauses when the model calls one", &executor.UnboundError{Names: names})
	}
	return nil
}

// withoutFunction returns the names of the tools that a program must execute, without those in bound.
func withoutFunction(defs []content.Tool, bound []dag.Tool) []string {
	known := toolNames(bound)
	var names []string
	for _, def := range defs {
		if !def.Server() && !known[def.Name] {
			names = append(names, def.Name)
		}
	}
	return names
}

// defersUnchecked reports whether calls are deferred without a check of their arguments. This is so with --unchecked,
// and if a tool is declared by a type of the provider. Programs execute some of these tools, and only the provider
// knows which.
func defersUnchecked(defs []content.Tool, unchecked bool) bool {
	return unchecked || slices.ContainsFunc(defs, content.Tool.Server)
}

// deferAll defers all calls to the caller of the command, except calls of the agent's own tools. Their arguments are
// checked first, unless defersUnchecked.
func deferAll(a *executor.Agent, defs []content.Tool, unchecked bool) {
	known := toolNames(a.Tools)
	for _, def := range defs {
		if !def.Server() && !known[def.Name] {
			a.Tools = append(a.Tools, executor.DeferredTool(def))
		}
	}
	if defersUnchecked(defs, unchecked) {
		a.Strategy = executor.DeferAll()
		a.Handler = func(context.Context, executor.Call) (any, error) {
			return nil, errors.New("the tool is deferred: its calls are executed outside the run")
		}
	}
}

// saveOf returns the function for saving each step of a run in a database before the next step begins. For a file it
// returns nil: a file is written at the end.
func (r *runner) saveOf(name string) func(context.Context, dag.DAG) error {
	if !stored(name) {
		return nil
	}
	return func(_ context.Context, d dag.DAG) error { return r.append(name, d) }
}

// open reads the conversation, and remembers the hash of the file.
func (r *runner) open(name string) (dag.DAG, error) {
	if stored(name) {
		return r.load(name)
	}

	return within(r.streams, func() (dag.DAG, error) {
		in, err := r.input(name)
		if err != nil {
			return dag.DAG{}, err
		}
		defer in.Close()

		// A broken file is not read to its end.
		sum := sha256.New()
		d, err := dag.Read(io.TeeReader(in, sum))
		if err == nil {
			_, err = io.Copy(sum, in)
		}
		sum.Sum(r.before[:0])
		return d, inFile(err, name)
	})
}

// openOrNew is like open. With create, a FILE that does not exist is a new conversation.
func (r *runner) openOrNew(name string, create bool) (dag.DAG, error) {
	if create && stored(name) {
		c, err := r.conversation(name, true)
		if err != nil {
			return dag.DAG{}, err
		}
		return c.DAG(), nil
	}

	d, err := r.open(name)
	if create && name != std && errors.Is(err, fs.ErrNotExist) {
		return dag.New(), nil
	}
	return d, err
}

// keep saves the conversation in place of the original. If the file was changed meanwhile or cannot be written, keep
// saves it in another file, because the tokens were paid for. It returns the name of the FILE it wrote.
func (r *runner) keep(name string, d dag.DAG) (saved string, err error) {
	if name == std {
		return name, r.save(name, d)
	}

	var reason error             // why the file was not replaced
	beside := filepath.Dir(name) // the directory to save in instead; "" is the directory for temporary files
	if stored(name) {
		// After a conflict the database keeps the new nodes under another head: no file is needed.
		var moved *conflictError
		reason = r.save(name, d)
		if reason == nil || errors.As(reason, &moved) {
			if moved != nil {
				name = moved.kept
			}
			return name, reason
		}
		beside = ""
	} else {
		reason = alone(name, func() error {
			now, err := readRegular(name)
			if err == nil && sha256.Sum256(now) != r.before {
				return fmt.Errorf("%s was changed during the run and is not overwritten", name)
			}
			beside = "" // where FILE cannot be written, a file beside it most likely cannot either
			return r.save(name, d)
		})
		if reason == nil {
			return name, nil
		}
	}

	other, err := rescue(name, beside, "", d, reason)
	return cmp.Or(other, name), err
}

// rescue saves the conversation of FILE in another file, because the tokens were paid for. It makes the file in dir, or
// in the directory for temporary files if dir is "". If an earlier call has made it, other is its name. The error has
// the reason why FILE was not written. If the other file cannot be written either, saved is "".
func rescue(name, dir, other string, d dag.DAG, reason error) (saved string, err error) {
	made := other == ""
	if made {
		f, err := os.CreateTemp(dir, fileName(name)+".run-*.json")
		if err != nil {
			return "", errors.Join(reason, err)
		}
		other = f.Name()
		_ = f.Close() // nothing was written to it
	}

	if err := d.Save(other); err != nil {
		// A file of an earlier call has what was saved then.
		if made {
			_ = os.Remove(other)
		}
		return "", errors.Join(reason, err)
	}
	return other, fmt.Errorf("%w; the conversation is in %s", reason, other)
}

// finish saves the conversation and prints the result of the run.
func (r *runner) finish(name string, d dag.DAG, failure error) error {
	_, err := r.keep(name, d)
	if err != nil {
		return errors.Join(err, failure)
	}

	// Save the conversation first: an output error then loses nothing.
	target := r.out
	if name == std {
		target = r.err // the conversation itself goes to standard output
	}
	out := &streams{out: target, err: r.err}

	switch {
	case errors.Is(failure, executor.ErrPaused):
		r.showArguments(d)
		if err := out.printJSON(pauseOf(d, r.repairs.all())); err != nil {
			return err
		}
		return &exitError{code: exitPaused}
	case errors.Is(failure, context.Canceled):
		return errors.New("interrupted; the conversation so far is saved")
	case failure != nil:
		return failure
	case r.asJSON:
		return out.printJSON(endingOf(d, r.repairs.all()))
	}

	_, err = fmt.Fprintln(target, safetext.Block(d.Text()))
	return err
}

// pause is the JSON output for a paused run.
type pause struct {
	Paused content.Stop  `json:"paused"`
	Run    string        `json:"run"`
	Calls  []pendingCall `json:"calls"`
	// Repairs lists the changes to requests and to the arguments of calls.
	Repairs []string `json:"repairs"`
}

// pendingCall is a call waiting for a result or an approval.
type pendingCall struct {
	ID        string          `json:"id"`
	Call      node.CallKey    `json:"call"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Approval  bool            `json:"approval,omitempty"`
	Reason    string          `json:"reason,omitempty"`
}

// pauseOf returns the JSON for a paused run.
func pauseOf(d dag.DAG, repairs []string) pause {
	c := executor.ContinuationOf(d)
	p := pause{Paused: c.Reason, Run: c.Run, Repairs: repairs}
	for _, call := range pendingIn(d) {
		p.Calls = append(p.Calls, pendingCall{
			call.name, call.Key, call.Call.Name, json.RawMessage(call.Call.Input), call.Approval, call.Note,
		})
	}
	return p
}

// ending is the JSON output for a finished run.
type ending struct {
	Stop      content.Stop  `json:"stop"`
	Answer    string        `json:"answer"`
	Turns     int           `json:"turns"`
	ToolCalls int           `json:"tool_calls"`
	Usage     content.Usage `json:"usage"`
	// Repairs lists the changes to requests.
	Repairs []string `json:"repairs"`
}

// endingOf returns the JSON for a finished run, from its stop reason.
func endingOf(d dag.DAG, repairs []string) ending {
	e := ending{Answer: d.Text(), Repairs: repairs}
	for _, n := range slices.Backward(d.Nodes()) {
		if stop, ok := n.Payload().(node.StopReason); ok {
			e.Stop, e.Turns, e.ToolCalls, e.Usage = stop.Reason, stop.Turns, stop.ToolCalls, stop.Usage
			break
		}
	}
	return e
}
