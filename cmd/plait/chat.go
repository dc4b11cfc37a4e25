package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/report"
)

// chat holds the flags and the state of chat.
type chat struct {
	runner
	system     string
	allow      []string // the values of --allow
	pricesFile string
	prices     api.PriceList

	file    string       // path to save the conversation at; "" for nowhere
	journal *dag.Journal // set if file is a journal
	d       dag.DAG      // the conversation so far

	console    *console
	screen     *screen
	interrupts chan os.Signal // Ctrl-C: it ends a response, not the chat
	failed     bool           // the last response failed

	decided map[string]bool // by tool: true runs without a question, false never runs

	context int64        // the tokens of the last request and its response
	spent   report.Costs // of the responses of this chat
}

func chatCommand(s *streams) *cobra.Command {
	c := &chat{runner: runner{streams: s}, decided: map[string]bool{}}
	cmd := &cobra.Command{
		Use:   "chat [FILE] --model M",
		Short: "Talk with a model in the terminal",
		Long: `Sends each line to the model and prints the response as it arrives. The
conversation is saved in FILE after each step, and continued if FILE exists.
Without FILE it is not saved. A new FILE that ends in .jsonl is a journal.

The model may call the tools of the MCP servers of --mcp. Before a call you are
asked: yes, always (for this tool), no, never, or what the model should do
instead. Calls that are open in FILE are always asked about, also with --allow;
if there is no terminal, the exit code is 4, and nothing is done.

Ctrl-C stops a response: what arrived of it is kept. Ctrl-D ends the chat. A
line that ends in \ continues in the next one. Lines that begin with / are
commands: /help lists them. A message that begins with / is written with two.

If standard input is no terminal, each line of it is a message or a command.
Responses go to standard output, everything else to standard error, and the exit
code is 2 if the last response failed.

The provider's key is in the environment: ANTHROPIC_API_KEY, OPENAI_API_KEY,
GEMINI_API_KEY.`,
		Example: `  plait chat 'sessions.db#ideas' --model claude-sonnet-4-5
  plait chat --provider ollama --model qwen3
  plait chat --model qwen3 --base-url http://127.0.0.1:8080/v1
  plait chat talk.json --mcp 'npx -y @modelcontextprotocol/server-filesystem .'
  plait chat talk.json --model gpt-5 --record tape.json
  plait chat --model gpt-5 --replay tape.json < messages.txt`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.run(cmd.Context(), strings.Join(args, ""))
		},
	}
	c.endpointFlags(cmd)
	c.mcpFlag(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&c.allow, "allow", nil, "a `TOOL` that is executed without asking;\nmay be given several times; * is every tool")
	f.StringVar(&c.system, "system", "", "the system prompt, a `TEXT`")
	f.StringVar(&c.pricesFile, "prices", "", "a `FILE` with the prices of models, for /cost (see\nplait report)")
	_ = cmd.MarkFlagFilename("prices", "json")
	return cmd
}

// run holds the conversation until the user ends it.
func (c *chat) run(ctx context.Context, name string) (err error) {
	if err := c.begin(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.end()) }()

	// Each call of a tool is asked about, unless the user has decided about all calls of the tool.
	c.approve, c.leavesOut = len(c.servers) > 0, true
	for _, tool := range c.allow {
		c.decided[tool] = true
	}

	if c.pricesFile != "" {
		if c.prices, err = c.runner.prices(c.pricesFile); err != nil {
			return err
		}
	}

	if err := c.open(name); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.closeJournal()) }()

	// A wrong flag is an error now, not after the first message.
	if _, _, err := c.agent(c.d); err != nil {
		return err
	}

	// From here on Ctrl-C does not end the program. SIGTERM still does: ctx ends.
	c.interrupts = make(chan os.Signal, 1)
	signal.Reset(os.Interrupt)
	signal.Notify(c.interrupts, os.Interrupt)
	defer signal.Stop(c.interrupts)

	c.console = newConsole(c.streams, c.interrupts)
	defer c.console.close(c.streams)
	c.screen = newScreen(c.streams)
	c.screen.used = c.showUsed
	return c.loop(ctx)
}

// loop reads and handles one message or command after the other.
func (c *chat) loop(ctx context.Context) error {
	c.greet()

	// A run waiting for approval comes before the first message.
	err := c.resumePause(ctx)
	for err == nil {
		var text string
		text, err = c.console.message(ctx)
		// SIGTERM ends the chat: every later read would return at once, too.
		if errors.Is(err, errInterrupted) && ctx.Err() == nil && c.console.editing() {
			c.screen.note("Ctrl-D or /quit ends the chat")
			err = nil
			continue
		}
		if err == nil {
			err = c.handle(ctx, text)
		}
	}

	// The end of the input, and /quit, are no errors.
	switch {
	case errors.Is(err, errPaused) && c.file == "":
		return &exitError{exitPaused, errPaused.Error() + "; without FILE the run is not saved"}
	case errors.Is(err, errPaused):
		return &exitError{exitPaused, fmt.Sprintf("the run is paused: plait chat %s continues it in a terminal, and plait resume", c.file)}
	case errors.Is(err, errInterrupted) && c.file == "":
		return errors.New("interrupted; without FILE the conversation is not saved")
	case !errors.Is(err, io.EOF) && !errors.Is(err, errQuit):
		return err
	case c.failed && !c.console.editing():
		return &exitError{code: exitBad} // the error was printed when it happened
	}
	return nil
}

// Reasons for the end of a chat.
var (
	errQuit        = errors.New("the chat was ended")
	errPaused      = errors.New("the input ended while a call waits for approval")
	errNotHere     = errors.New("the run waits for results of tools that are executed elsewhere: plait resume continues it")
	errInterrupted = errors.New("interrupted; the conversation so far is saved")
)

// greet prints the state of a continued conversation, on a terminal.
func (c *chat) greet() {
	// Only a person at a terminal needs it.
	if !c.console.editing() {
		return
	}

	parts := []string{c.model}
	switch {
	case c.file == "":
		parts = append(parts, "not saved")
	case c.d.Len() > 0:
		parts = append(parts, fmt.Sprintf("continues %s (%s)", c.file, describe.Count(len(c.d.Messages()), "message")))
	default:
		parts = append(parts, "saved in "+c.file)
	}

	tools := 0
	for _, server := range c.servers {
		tools += len(server.Tools())
	}
	if tools > 0 {
		parts = append(parts, describe.Count(tools, "tool"))
	}

	c.screen.note("%s · /help", strings.Join(parts, " · "))
	c.console.remember(c.d)
	c.showContext()
}

// showContext begins the line about the model with the last response of the conversation.
func (c *chat) showContext() {
	c.context = 0
	for n := c.d.Head(); n != nil; {
		if m, ok := n.Message(); ok && m.Role == content.Assistant {
			c.context = contextOf(m.Answer.Usage)
			break
		}
		parents := n.Parents()
		if len(parents) == 0 {
			break
		}
		n = parents[0]
	}
	c.showStatus()
}

// contextOf returns how many tokens the next request has at least.
func contextOf(u content.Usage) int64 { return u.Input + u.CacheRead + u.CacheWrite + u.Output }

// showUsed adds a response to the line about the model.
func (c *chat) showUsed(m *node.Message) {
	c.spent.Prices = c.prices.Prices
	c.spent.Add(m.Answer.Model, m.Answer.Usage)
	if n := contextOf(m.Answer.Usage); n > 0 {
		c.context = n
	}
	c.showStatus()
}

// showStatus shows the model, the size of the context, and what this chat has used.
func (c *chat) showStatus() {
	if !c.console.editing() {
		return
	}
	parts := []string{c.model}
	if c.context > 0 {
		parts = append(parts, "context "+describe.Count(c.context, "token"))
	}
	_, total := c.spent.List()
	if total.Responses > 0 {
		u := total.Usage
		parts = append(parts, fmt.Sprintf("this chat %d in, %d out", u.Input+u.CacheRead+u.CacheWrite, u.Output))
		if c.prices.Prices != nil {
			parts = append(parts, strings.TrimSpace(money(total)+" "+c.prices.Currency))
		}
	}
	status := strings.Join(parts, " · ")
	c.console.ui.do(func() { c.console.ui.view.status = status })
}

// open loads the conversation in FILE, or begins a new one.
func (c *chat) open(name string) error {
	c.file = name
	if name == "" {
		return nil
	}
	if name == std {
		return errors.New("chat needs a file, not standard input: that has the messages")
	}

	if stored(name) {
		conversation, err := c.conversation(name, true)
		if err != nil {
			return err
		}
		c.d = conversation.DAG()
		return nil
	}

	// An existing journal, or a new file with the name of one.
	info, err := os.Stat(name)
	missing := errors.Is(err, fs.ErrNotExist)
	if missing && filepath.Ext(name) == ".jsonl" || begins(name, journalMagic) {
		if !missing {
			if err := checkFile(name, info); err != nil {
				return err
			}
		}
		open := func() (*dag.Journal, error) { return dag.OpenJournal(name, nil) }
		if c.journal, err = within(c.streams, open); err == nil {
			c.d = c.journal.DAG()
		}
		return err
	}
	if missing {
		return nil
	}
	c.d, err = c.runner.open(name)
	return err
}

func (c *chat) closeJournal() error {
	if c.journal == nil {
		return nil
	}
	return c.journal.Close()
}

// keep saves the conversation. If another program has changed FILE, the chat continues in the file that keeps it now.
func (c *chat) keep(d dag.DAG) error {
	switch {
	case c.file == "":
		return nil
	case c.journal != nil:
		return c.journal.Append(d)
	}

	saved, err := c.runner.keep(c.file, d)
	// The conversation was saved nowhere.
	if err != nil && saved == c.file {
		return err
	}
	if err != nil {
		c.screen.problem(err)
		c.file = saved
	}
	if stored(c.file) {
		return nil
	}

	// Remember the new content of the file. Otherwise the next save takes it for a change by another program. It is not
	// read back: another program may have changed it already.
	sum := sha256.New()
	err = d.Write(sum)
	sum.Sum(c.before[:0])
	return err
}

// handle sends a message, or executes a command.
func (c *chat) handle(ctx context.Context, text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return nil
	case strings.HasPrefix(text, "//"):
		text = text[1:]
	case strings.HasPrefix(text, "/"):
		return c.command(ctx, text)
	}
	return c.respond(ctx, c.d.User(text))
}

// respond runs the model on the conversation. It prints an error of the run. It returns an error only to end the chat.
func (c *chat) respond(ctx context.Context, d dag.DAG) error {
	agent, d, err := c.agentOf(d)
	if err != nil {
		c.failed = true
		c.screen.problem(err)
		return nil
	}

	d, failure := c.watch(ctx, func(ctx context.Context) iter.Seq2[executor.Event, error] { return agent.Stream(ctx, d) })
	return c.settle(ctx, agent, d, failure)
}

// resumePause continues the paused run in the conversation, if there is one.
func (c *chat) resumePause(ctx context.Context) error {
	pending := c.d.Pending()
	if len(pending) == 0 {
		return nil
	}
	agent, d, err := c.agentOf(c.d)
	if err != nil {
		return err
	}

	// A call that only another program can execute stays as it is.
	executed := toolNames(agent.Tools)
	elsewhere := func(p dag.Pending) bool { return !p.Approval || !executed[p.Call.Name] }
	if slices.ContainsFunc(pending, elsewhere) {
		return c.settle(ctx, agent, d, executor.ErrPaused)
	}

	// FILE may leave calls undecided. Decide about all of them before the first question, so that each is asked about
	// once. Until then FILE stays as it is, as in run.
	held := true
	agent.Save = func(_ context.Context, d dag.DAG) error {
		if held && !c.opened.asked.Load() {
			return nil
		}
		return c.keep(d)
	}
	d, failure := c.watch(ctx, func(ctx context.Context) iter.Seq2[executor.Event, error] { return agent.Stream(ctx, d) })
	held = false
	return c.settle(ctx, agent, d, failure)
}

// agentOf returns the agent of the chat.
func (c *chat) agentOf(d dag.DAG) (executor.Agent, dag.DAG, error) {
	agent, d, err := c.agent(d)
	agent.System = c.system
	agent.Save = func(_ context.Context, d dag.DAG) error { return c.keep(d) }
	agent.Log = slog.New(slog.DiscardHandler) // the screen shows the same problems
	return agent, d, err
}

// settle asks for the approvals of a paused run, until the run ends, and saves the conversation.
func (c *chat) settle(ctx context.Context, agent executor.Agent, d dag.DAG, failure error) error {
	for errors.Is(failure, executor.ErrPaused) {
		// A line of a script is a message, not a decision about a call of FILE.
		open := c.opened.undecided(d)
		if open && !c.console.editing() {
			return unapproved(c.file, d)
		}

		// Save the pause before the first question: a chat ended by the user during a question can be continued.
		c.d = d
		if err := c.keep(d); err != nil {
			return err
		}

		replies, err := c.askApprovals(ctx, d, open)
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return errPaused
		}
		if errors.Is(err, errNotHere) {
			return err
		}

		// Ctrl-C at a question: the calls are closed, and none of them is executed.
		if err != nil {
			d, failure = d.CloseTools(), errInterrupted
			break
		}

		before := d
		d, failure = c.watch(ctx, func(ctx context.Context) iter.Seq2[executor.Event, error] {
			return agent.ResumeStream(ctx, before, replies...)
		})
	}

	err := c.keep(d)
	c.d, c.failed = d, failure != nil || err != nil

	switch {
	case err != nil:
		c.screen.problem(err)
	case ctx.Err() != nil:
		return errInterrupted
	case errors.Is(failure, errInterrupted):
		c.screen.note("stopped; what arrived is kept")
	case failure != nil:
		c.screen.problem(failure)
		c.screen.note("/retry sends the message again")
	}
	return nil
}

// watch shows the events of a run. Ctrl-C stops the run.
func (c *chat) watch(ctx context.Context, begin func(context.Context) iter.Seq2[executor.Event, error]) (dag.DAG, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	// The goroutine ends with this call: a later Ctrl-C is for the console.
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-c.interrupts:
			cancel(errInterrupted)
		case <-done:
		}
	}()

	d, err := c.screen.show(begin(ctx))

	// Only the cause distinguishes Ctrl-C, which ends the response, from SIGTERM, which ends the chat.
	if err != nil && errors.Is(context.Cause(ctx), errInterrupted) {
		err = errInterrupted
	}
	return d, err
}

// askApprovals asks about each call that needs approval. open is set if they were open in FILE.
func (c *chat) askApprovals(ctx context.Context, d dag.DAG, open bool) (replies []executor.Reply, err error) {
	for _, p := range d.Pending() {
		// A deferred call waits for a result, which a person at the chat cannot give.
		if !p.Approval {
			continue
		}
		ask := c.askApproval
		if open {
			ask = func(ctx context.Context, p dag.Pending) (executor.Reply, error) {
				return c.screen.askOpenCall(ctx, c.console, p)
			}
		}
		reply, err := ask(ctx, p)
		if err != nil {
			return nil, err
		}
		replies = append(replies, reply)
	}

	if len(replies) == 0 {
		return nil, errNotHere
	}
	return replies, nil
}

// askApproval asks about a call, unless the user has decided about all calls of its tool.
func (c *chat) askApproval(ctx context.Context, p dag.Pending) (executor.Reply, error) {
	// A decision about one tool overrides the decision about all.
	decided, ok := c.decided[p.Call.Name]
	if !ok && c.decided["*"] {
		decided, ok = true, true
	}
	if !ok {
		c.screen.call(p.Call)
		answer, err := c.console.ask(ctx, "[y]es, [a]lways, [n]o, ne[v]er, or what to do instead: ")
		if err != nil {
			return executor.Reply{}, err
		}

		// Any other answer declines. The model gets it as an instruction.
		switch strings.ToLower(answer) {
		case "y", "yes":
			decided = true
		case "a", "always":
			decided = true
			c.decided[p.Call.Name] = true
		case "n", "no", "":
		case "v", "never":
			c.decided[p.Call.Name] = false
		default:
			return declined(p, answer), nil
		}
	}

	if decided {
		return executor.Approved(p), nil
	}
	return declined(p, ""), nil
}
