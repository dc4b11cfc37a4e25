package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/durable"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
)

// runStates are all states, in the order of a run's life.
var runStates = []durable.State{
	durable.Active, durable.Waiting, durable.Parked, durable.Done, durable.Failed, durable.Cancelled,
}

// runsFlags are the flags of plait runs.
type runsFlags struct {
	all, asJSON                bool
	states                     []string
	conversation, agent, after string
	limit                      int
}

func runsCommand(s *streams) *cobra.Command {
	var f runsFlags
	cmd := &cobra.Command{
		Use:   "runs DATABASE",
		Short: "List the durable runs of a database; reply to, cancel or remove some",
		Long: `Lists the durable runs in an SQLite database that have not ended, the newest
first:

  calls   the pending calls of a waiting run without a reply: how many wait
          for approval, for a result, and how many are begun
  reason  why the run waits, was parked or ended`,
		Example: `  plait runs sessions.db
  plait runs sessions.db --state parked,failed
  plait runs show sessions.db 'ticket 31'
  plait runs reply sessions.db 'ticket 31' --approve
  plait runs cancel sessions.db 'ticket 31'
  plait runs prune sessions.db --older-than 30d --dry-run`,
		Args: takes("DATABASE", 1, 1),
		RunE: func(_ *cobra.Command, args []string) error { return s.listRuns(args[0], f) },
	}

	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "also list runs that have ended")
	flags.StringSliceVar(&f.states, "state", nil, "only runs in these `STATES`: active, waiting, parked,\ndone, failed, cancelled")
	flags.StringVar(&f.conversation, "conversation", "", "only runs of the conversation `KEY`")
	flags.StringVar(&f.agent, "agent", "", "only runs of the agent `NAME`")
	flags.StringVar(&f.after, "after", "", "begin after the run `ID`, for the next page")
	flags.IntVar(&f.limit, "limit", 100, "list at most `N` runs")
	jsonFlag(cmd, &f.asJSON)

	cmd.AddCommand(showRunCommand(s), replyRunCommand(s), cancelRunCommand(s), requeueRunCommand(s), pruneRunsCommand(s))
	return cmd
}

func showRunCommand(s *streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show DATABASE ID",
		Short: "Print a run with its pending calls and their arguments",
		Long: `Prints a durable run, and its pending calls that have no reply, with their
arguments. All other calls are in the conversation: see plait log with the
FILE that is printed.`,
		Example: `  plait runs show sessions.db 'ticket 31'`,
		Args:    oneRun,
		RunE:    func(_ *cobra.Command, args []string) error { return s.showRun(args[0], args[1], asJSON) },
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// replyFlags are the flags of plait runs reply.
type replyFlags struct {
	approve                              bool
	arguments, decline, result, fail, by string
}

func replyRunCommand(s *streams) *cobra.Command {
	var f replyFlags
	cmd := &cobra.Command{
		Use:   "reply DATABASE ID [CALL]",
		Short: "Approve or decline a pending call, or give its result",
		Long: `Replies to a pending call of a durable run. CALL is its key, as plait runs show
prints it; it may be left out if one call is pending. When all calls of a
message have their reply, any process with the agent continues the run.`,
		Example: `  plait runs reply sessions.db 'ticket 31' --approve
  plait runs reply sessions.db 'ticket 31' CALL --decline 'too expensive'
  plait runs reply sessions.db 'ticket 31' CALL --result 'paid by hand'`,
		Args: takes("DATABASE, ID and possibly CALL", 2, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.replyToRun(args[0], args[1], strings.Join(args[2:], ""), f, cmd.Flags().Changed)
		},
	}

	flags := cmd.Flags()
	flags.BoolVar(&f.approve, "approve", false, "approve the call as it is shown")
	flags.StringVar(&f.arguments, "arguments", "", "approve it with other arguments, a `JSON` object")
	flags.StringVar(&f.decline, "decline", "", "decline it; the model reads the `REASON`")
	flags.StringVar(&f.result, "result", "", "its result is this `TEXT`")
	flags.StringVar(&f.fail, "fail", "", "it failed, with this `TEXT`")
	flags.StringVar(&f.by, "by", "", "`NAME` of who decided, kept as evidence")
	cmd.MarkFlagsMutuallyExclusive("approve", "arguments", "decline", "result", "fail")
	cmd.MarkFlagsOneRequired("approve", "arguments", "decline", "result", "fail")
	return cmd
}

func cancelRunCommand(s *streams) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel DATABASE ID",
		Short: "Cancel a run, in whatever process it is",
		Long: `Ends a durable run. Later results are refused, and nothing more is added to its
conversation. The process that executes the run notices within about a second.
A run that was cancelled before is no error.`,
		Example: `  plait runs cancel sessions.db 'ticket 31' --reason 'asked twice'`,
		Args:    oneRun,
		RunE: func(_ *cobra.Command, args []string) error {
			return s.withEngine(args[0], func(e *durable.Engine) error {
				err := runError(args[0], args[1], e.Cancel(s.ctx, args[1], reason))
				if err == nil {
					s.say("cancelled")
				}
				return err
			})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "a `TEXT` that is stored with the run")
	return cmd
}

func requeueRunCommand(s *streams) *cobra.Command {
	return &cobra.Command{
		Use:   "requeue DATABASE ID",
		Short: "Try a parked run again",
		Long: `Makes a parked run active. A process that has its agent continues it from its
last step.`,
		Example: `  plait runs requeue sessions.db 'ticket 31'`,
		Args:    oneRun,
		RunE: func(_ *cobra.Command, args []string) error {
			return s.withEngine(args[0], func(e *durable.Engine) error {
				err := runError(args[0], args[1], e.Requeue(s.ctx, args[1]))
				if err == nil {
					s.say("the run is active")
				}
				return err
			})
		},
	}
}

var oneRun = takes("DATABASE and ID", 2, 2)

// withEngine calls f with an engine on a database. It executes no runs.
func (s *streams) withEngine(file string, f func(e *durable.Engine) error) error {
	db, err := s.existing(file)
	if err != nil {
		return err
	}
	e, err := durable.Open(s.ctx, db, nil)
	if err != nil {
		return err
	}
	return errors.Join(f(e), e.Close())
}

// runError returns an error of an engine in the command's words.
func runError(file, run string, err error) error {
	var refused *durable.RunError
	if !errors.As(err, &refused) {
		return err
	}

	file, run = withoutPassword(file), safetext.Quote(run, maxRunID)
	switch {
	case errors.Is(err, durable.ErrNoRun):
		return fmt.Errorf("%s has no run %s (see plait runs %[1]s --all)", file, run)
	case errors.Is(err, durable.ErrRunEnded):
		return fmt.Errorf("run %s has ended: %s", run, refused.Detail)
	case errors.Is(err, durable.ErrBusy):
		return fmt.Errorf("run %s is not parked: it is %s", run, refused.Detail)
	}
	return err
}

// maxRunID is how many bytes of a run's ID an error text quotes.
const maxRunID = 100

// listedRun is a run in the output of runs --json.
type listedRun struct {
	ID           string        `json:"id"`
	Conversation string        `json:"conversation"`
	Head         string        `json:"head"`
	Agent        string        `json:"agent"`
	State        durable.State `json:"state"`
	Reason       string        `json:"reason"`
	Began        time.Time     `json:"began"`
	Changed      time.Time     `json:"changed"`
	Calls        []listedCall  `json:"calls"`
}

// listedCall is a pending call of a run.
type listedCall struct {
	Call  string       `json:"call"`
	Tool  string       `json:"tool"`
	Input content.JSON `json:"input"`
	Note  string       `json:"note"`
	// Asks is "approval" or "result".
	Asks string `json:"asks"`
	// Begun is the time at which a worker began the call; nil if none has.
	Begun *time.Time `json:"begun"`
}

// maxRuns is the largest --limit.
const maxRuns = 10000

// listRuns prints the runs of a database.
func (s *streams) listRuns(file string, f runsFlags) error {
	q, err := f.query()
	if err != nil {
		return err
	}
	return s.withEngine(file, func(e *durable.Engine) error {
		// Read one more run than is printed, to see whether there are more.
		q.Limit++
		runs, err := e.Runs(s.ctx, q)
		if err != nil {
			return runError(file, q.After, err)
		}
		more := ""
		if len(runs) > f.limit {
			runs = runs[:f.limit]
			more = runs[len(runs)-1].ID
		}

		list := []listedRun{}
		for _, run := range runs {
			pending, err := e.Pending(s.ctx, run.ID)
			if err != nil {
				return err
			}
			list = append(list, listed(run, pending))
		}
		return s.showRuns(list, more, f)
	})
}

// showRuns prints a page of runs.
func (s *streams) showRuns(list []listedRun, more string, f runsFlags) error {
	if f.asJSON {
		return s.printJSON(map[string]any{"runs": list, "more": more})
	}
	if err := s.printRuns(list, time.Now()); err != nil {
		return err
	}
	switch {
	case more != "":
		s.say("there are more: --after %s", safetext.Quote(more, maxRunID))
	case len(list) == 0 && !f.all && len(f.states) == 0:
		s.say("no run matches that has not ended (--all lists those that have)")
	}
	return nil
}

// query returns the query for the flags.
func (f runsFlags) query() (q durable.RunsRequest, err error) {
	if f.limit < 1 || f.limit > maxRuns {
		return q, fmt.Errorf("--limit must be between 1 and %d", maxRuns)
	}
	q = durable.RunsRequest{Conversation: f.conversation, Agent: f.agent, After: f.after, Limit: f.limit}

	for _, name := range f.states {
		state := durable.State(strings.TrimSpace(name))
		if !slices.Contains(runStates, state) {
			return q, fmt.Errorf("--state %q is not one of active, waiting, parked, done, failed, cancelled", name)
		}
		q.States = append(q.States, state)
	}
	if len(q.States) == 0 && !f.all {
		q.States = openStates()
	}
	return q, nil
}

// openStates are the states of unfinished runs.
func openStates() []durable.State {
	return slices.DeleteFunc(slices.Clone(runStates), durable.State.Ended)
}

// listed returns a run for the output.
func listed(r durable.Run, pending []dag.Pending) listedRun {
	out := listedRun{
		ID: r.ID, Conversation: r.Conversation, Head: r.Head, Agent: r.Agent, State: r.State, Reason: r.Reason,
		Began: r.Began.UTC(), Changed: r.Changed.UTC(), Calls: []listedCall{},
	}
	for _, p := range pending {
		call := listedCall{Call: p.Key.String(), Tool: p.Call.Name, Input: p.Call.Input, Note: p.Note, Asks: "result"}
		if p.Approval {
			call.Asks = "approval"
		}
		if !p.Started.IsZero() {
			begun := p.Started.UTC()
			call.Begun = &begun
		}
		out.Calls = append(out.Calls, call)
	}
	return out
}

// printRuns prints a line for each run.
func (s *streams) printRuns(list []listedRun, now time.Time) error {
	const maxReason = 60 // cells; show prints all of it

	w := tabwriter.NewWriter(s.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "run\tstate\tage\tcalls\treason")
	for _, r := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", safetext.Row(r.ID), r.State, span(now.Sub(r.Began)),
			cmp.Or(r.callsText(), "-"), safetext.Line(cmp.Or(r.Reason, "-"), maxReason))
	}
	return w.Flush()
}

// callsText returns how many calls wait for what; "" if none does.
func (r listedRun) callsText() string {
	approvals, results, begun := 0, 0, 0
	for _, c := range r.Calls {
		switch {
		case c.Asks == "approval":
			approvals++
		case c.Begun != nil:
			begun++
		default:
			results++
		}
	}

	var parts []string
	for _, part := range []struct {
		n    int
		text string
	}{{approvals, "for approval"}, {results, "for a result"}, {begun, "begun"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.text))
		}
	}
	return strings.Join(parts, ", ")
}

// span returns a duration in its largest unit, such as 5m or 3d. Less than a second, and less than nothing, is 0s.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < day:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dd", d/day)
}

// findRun returns a run with its pending calls.
func (s *streams) findRun(e *durable.Engine, file, id string) (durable.Run, []dag.Pending, error) {
	run, err := e.Run(s.ctx, id)
	if err != nil {
		return run, nil, runError(file, id, err)
	}
	pending, err := e.Pending(s.ctx, id)
	return run, pending, err
}

// showRun prints a run with its calls.
func (s *streams) showRun(file, id string, asJSON bool) error {
	return s.withEngine(file, func(e *durable.Engine) error {
		run, pending, err := s.findRun(e, file, id)
		if err != nil {
			return err
		}
		r := listed(run, pending)
		if asJSON {
			return s.printJSON(r)
		}
		return s.printRun(file, r, time.Now())
	})
}

func (s *streams) printRun(file string, r listedRun, now time.Time) error {
	w := tabwriter.NewWriter(s.out, 0, 8, 2, ' ', 0)
	// A row without a value is left out.
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, value)
		}
	}

	line("run", safetext.Row(r.ID))
	line("state", fmt.Sprintf("%s for %s", r.State, span(now.Sub(r.Changed))))
	line("reason", safetext.Line(r.Reason, 4000))
	line("file", safetext.Row(withoutPassword(file)+mark+r.Conversation+mark+r.Head))
	line("agent", safetext.Row(r.Agent))
	line("began", r.Began.Format(time.DateTime)+" UTC")

	for _, c := range r.Calls {
		line("", " ")
		line("call", c.Call)
		line("tool", safetext.Row(c.Tool))
		line("arguments", long(string(c.Input)))
		line("note", long(c.Note))
		line("waits", c.waitsText(now))
	}
	return w.Flush()
}

// long returns a text for a row. A person who approves a call must know that it was cut.
func long(text string) string {
	const cells = 4000
	line := safetext.Line(text, cells)
	if strings.HasSuffix(line, "…") && !strings.HasSuffix(text, "…") {
		line += fmt.Sprintf(" (cut: %d bytes, and --json prints them)", len(text))
	}
	return line
}

// waitsText returns what a call waits for.
func (c listedCall) waitsText(now time.Time) string {
	switch {
	case c.Asks == "approval":
		return "for approval"
	case c.Begun != nil:
		return "for its result: begun " + span(now.Sub(*c.Begun)) + " ago"
	}
	return "for its result: not begun"
}

// replyToRun replies to a pending call of a run. given reports whether a flag was given.
func (s *streams) replyToRun(file, id, call string, f replyFlags, given func(flag string) bool) error {
	return s.withEngine(file, func(e *durable.Engine) error {
		run, pending, err := s.findRun(e, file, id)
		if err != nil {
			return err
		}
		if call != "" {
			pending = slices.DeleteFunc(pending, func(p dag.Pending) bool { return p.Key.String() != call })
		}
		switch {
		case len(pending) == 0 && call != "":
			return fmt.Errorf("run %s has no pending call %s", safetext.Quote(id, maxRunID), safetext.Quote(call, maxRunID))
		case len(pending) == 0:
			return fmt.Errorf("run %s has no pending calls: it is %s", safetext.Quote(id, maxRunID), run.State)
		case len(pending) > 1:
			return fmt.Errorf("run %s has %d pending calls: name one (see plait runs show)", safetext.Quote(id, maxRunID), len(pending))
		}

		if given("arguments") && !isObject(f.arguments) {
			return errors.New("--arguments must be a JSON object")
		}
		reply := f.reply(pending[0], given)
		reply.By, reply.At = f.by, time.Now()
		if err := e.Reply(s.ctx, run.Conversation, run.Head, reply); err != nil {
			return runError(file, id, err)
		}

		left, err := e.Pending(s.ctx, id)
		switch {
		case err != nil:
			return err
		case len(left) > 0:
			s.say("replied; the run waits for %s", describe.Count(len(left), "more call"))
		default:
			s.say("replied; the run continues")
		}
		return nil
	})
}

// isObject reports whether a text is a JSON object.
func isObject(text string) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &object) == nil && object != nil
}

// reply returns the reply of the flags.
func (f replyFlags) reply(p dag.Pending, given func(flag string) bool) executor.Reply {
	switch {
	case given("arguments"):
		return executor.ApprovedWith(p, content.JSON(f.arguments))
	case given("decline"):
		return executor.Declined(p, f.decline)
	case given("result"):
		return executor.Returned(p, executor.Result{Content: content.Words(f.result)})
	case given("fail"):
		return executor.Failed(p, f.fail)
	}
	return executor.Approved(p)
}
