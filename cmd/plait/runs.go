package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/store"
)

// runStates are all states, in the order of a run's life.
var runStates = []store.RunState{
	store.RunReady, store.RunRunning, store.RunWaiting, store.RunParked,
	store.RunDone, store.RunFailed, store.RunCancelled,
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
		Short: "List the durable runs of a database; cancel or remove some",
		Long: `Lists the durable runs in an SQLite database that have not ended, sorted by ID:

  calls   calls of the latest pause: how many wait for a result, and how many
          are in doubt, because a process was lost while it executed them
  lease   who claimed the run or its calls last, and how long until others can;
          "given back" if the worker did so, for a later attempt
  next    when a lease or a deadline ends, the soonest one
  reason  why the run was parked or ended`,
		Example: `  plait runs sessions.db
  plait runs sessions.db --state parked,failed
  plait runs show sessions.db 'ticket 31'
  plait runs cancel sessions.db 'ticket 31'
  plait runs prune sessions.db --older-than 30d --dry-run`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error { return s.listRuns(args[0], f) },
	}

	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "also list runs that have ended")
	flags.StringSliceVar(&f.states, "state", nil, "only runs in these `STATES`: ready, running, waiting,\nparked, done, failed, cancelled")
	flags.StringVar(&f.conversation, "conversation", "", "only runs of the conversation `KEY`")
	flags.StringVar(&f.agent, "agent", "", "only runs of the agent `NAME`")
	flags.StringVar(&f.after, "after", "", "begin after the run `ID`, for the next page")
	flags.IntVar(&f.limit, "limit", 100, "list at most `N` runs")
	jsonFlag(cmd, &f.asJSON)

	cmd.AddCommand(showRunCommand(s), cancelRunCommand(s), requeueRunCommand(s), pruneRunsCommand(s))
	return cmd
}

func showRunCommand(s *streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show DATABASE ID",
		Short: "Print a run with its calls",
		Long: `Prints a durable run, and the calls of its latest pause with their claims and
results. Calls that the engine executes itself are in the conversation: see
plait log with the FILE that is printed.`,
		Example: `  plait runs show sessions.db 'ticket 31'`,
		Args:    oneRun,
		RunE:    func(_ *cobra.Command, args []string) error { return s.showRun(args[0], args[1], asJSON) },
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

func cancelRunCommand(s *streams) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel DATABASE ID",
		Short: "Cancel a run, in whatever process it is",
		Long: `Ends a durable run. Its open calls are closed, later results are refused, and
nothing more is added to its conversation. The process that executes the run
notices when it renews its lease. A run that was cancelled before is no error.`,
		Example: `  plait runs cancel sessions.db 'ticket 31' --reason 'asked twice'`,
		Args:    oneRun,
		RunE: func(_ *cobra.Command, args []string) error {
			db, err := s.existing(args[0])
			if err != nil {
				return err
			}
			return runError(args[0], args[1], db.Cancel(s.ctx, args[1], reason))
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "a `TEXT` that is stored with the run")
	return cmd
}

func requeueRunCommand(s *streams) *cobra.Command {
	return &cobra.Command{
		Use:   "requeue DATABASE ID",
		Short: "Try a parked run again",
		Long: `Makes a parked run ready. A process that has its agent continues it from its
last step.`,
		Example: `  plait runs requeue sessions.db 'ticket 31'`,
		Args:    oneRun,
		RunE: func(_ *cobra.Command, args []string) error {
			db, err := s.existing(args[0])
			if err != nil {
				return err
			}
			return runError(args[0], args[1], db.Requeue(s.ctx, args[1]))
		},
	}
}

var oneRun = takes("DATABASE and ID", 2, 2)

// runError returns an error of store.Runs in the command's words.
func runError(file, run string, err error) error {
	var refused *store.RunError
	if !errors.As(err, &refused) {
		return err
	}

	run = safetext.Quote(run, maxRunID)
	switch {
	case errors.Is(err, store.ErrNoRun):
		return fmt.Errorf("%s has no run %s (see plait runs %[1]s --all)", file, run)
	case errors.Is(err, store.ErrRunEnded):
		return fmt.Errorf("run %s has ended: %s", run, refused.Detail)
	case errors.Is(err, store.ErrBusy):
		return fmt.Errorf("run %s is not parked: it is %s", run, refused.Detail)
	}
	return err
}

// maxRunID is how many bytes of a run's ID an error text quotes.
const maxRunID = 100

// listedRun is a run in the output of runs --json. An unset time is nil.
type listedRun struct {
	ID           string         `json:"id"`
	Conversation string         `json:"conversation"`
	Head         string         `json:"head"`
	Agent        string         `json:"agent"`
	State        store.RunState `json:"state"`
	Reason       string         `json:"reason"`
	Continuation string         `json:"continuation"`
	Claims       int            `json:"claims"`
	Worker       string         `json:"worker"`
	// Released reports that the worker gave the run back. The run can be claimed from LeaseUntil on.
	Released   bool       `json:"released"`
	LeaseUntil *time.Time `json:"lease_until"`
	Began      time.Time  `json:"began"`
	Changed    time.Time  `json:"changed"`
	// Next is the soonest end of a lease, a pause before a repetition, or a deadline.
	Next  *time.Time   `json:"next"`
	Calls []listedCall `json:"calls"`
}

// listedCall is a call of a run's latest pause.
type listedCall struct {
	Call string `json:"call"`
	Tool string `json:"tool"`
	// External reports that the result comes from outside, such as an approval.
	External bool   `json:"external"`
	Claims   int    `json:"claims"`
	Attempts int    `json:"attempts"`
	Worker   string `json:"worker"`
	// Released reports that the worker gave the call back. The call can be claimed from LeaseUntil on.
	Released   bool          `json:"released"`
	LeaseUntil *time.Time    `json:"lease_until"`
	Deadline   *time.Time    `json:"deadline"`
	Done       bool          `json:"done"`
	Outcome    store.Outcome `json:"outcome"`
	Accepted   *time.Time    `json:"accepted"`
}

// maxRuns is the largest --limit.
const maxRuns = 10000

// listRuns prints the runs of a database.
func (s *streams) listRuns(file string, f runsFlags) error {
	q, err := f.query()
	if err != nil {
		return err
	}
	db, err := s.existing(file)
	if err != nil {
		return err
	}

	// Read one more run than is printed, to see whether there are more.
	q.Limit++
	runs, err := db.ListRuns(s.ctx, q)
	if err != nil {
		return err
	}
	more := ""
	if len(runs) > f.limit {
		runs = runs[:f.limit]
		more = runs[len(runs)-1].ID
	}

	list := []listedRun{}
	for _, run := range runs {
		tasks, err := db.Tasks(s.ctx, run.ID)
		if errors.Is(err, store.ErrNoRun) {
			continue // removed since it was listed
		}
		if err != nil {
			return err
		}
		list = append(list, listed(run, tasks))
	}

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
func (f runsFlags) query() (q store.ListRunsRequest, err error) {
	if f.limit < 1 || f.limit > maxRuns {
		return q, fmt.Errorf("--limit must be between 1 and %d", maxRuns)
	}
	q = store.ListRunsRequest{Conversation: f.conversation, Agent: f.agent, After: f.after, Limit: f.limit}

	for _, name := range f.states {
		state := store.RunState(strings.TrimSpace(name))
		if !slices.Contains(runStates, state) {
			return q, fmt.Errorf("--state %q is not one of ready, running, waiting, parked, done, failed, cancelled", name)
		}
		q.States = append(q.States, state)
	}
	if len(q.States) > 0 || f.all {
		return q, nil
	}

	// Without --state and --all, list only unfinished runs.
	for _, state := range runStates {
		if !state.Ended() {
			q.States = append(q.States, state)
		}
	}
	return q, nil
}

// listed returns a run for the output.
func listed(r store.Run, tasks []store.TaskState) listedRun {
	out := listedRun{
		ID: r.ID, Conversation: r.Conversation, Head: r.Head, Agent: r.Agent, State: r.State, Reason: r.Reason,
		Continuation: r.Continuation, Claims: r.Claims, Worker: r.Worker, LeaseUntil: utc(r.LeaseUntil),
		Released: r.State == store.RunReady && released(r.Worker, r.LeaseUntil),
		Began:    r.Began.UTC(), Changed: r.Changed.UTC(), Calls: []listedCall{},
	}

	// Next is the soonest of all ends.
	ends := []*time.Time{out.LeaseUntil}
	for _, t := range tasks {
		call := listedCall{
			Call: t.Task.Key.Call, Tool: t.Task.Tool, External: t.Task.External, Claims: t.Claims, Attempts: t.Task.Attempts,
			Worker: t.Worker, Released: !t.Done && released(t.Worker, t.LeaseUntil), LeaseUntil: utc(t.LeaseUntil),
			Deadline: utc(t.Deadline),
			Done:     t.Done, Outcome: t.Result.Outcome, Accepted: utc(t.Result.Accepted),
		}
		out.Calls = append(out.Calls, call)
		if !t.Done {
			ends = append(ends, call.LeaseUntil, call.Deadline)
		}
	}

	for _, end := range ends {
		if end != nil && (out.Next == nil || end.Before(*out.Next)) {
			out.Next = end
		}
	}
	return out
}

// released reports whether work was given back. See store.TaskState.
func released(worker string, leaseUntil time.Time) bool { return worker == "" && !leaseUntil.IsZero() }

// utc returns a pointer to the time, or nil for the zero time.
func utc(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// printRuns prints a line for each run.
func (s *streams) printRuns(list []listedRun, now time.Time) error {
	const maxReason = 60 // cells; show prints all of it

	w := tabwriter.NewWriter(s.out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "run\tstate\tage\tcalls\tlease\tnext\treason")
	for _, r := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", safetext.Row(r.ID), r.State, span(now.Sub(r.Began)),
			r.callsText(), r.leaseText(now), until(r.Next, now), safetext.Line(cmp.Or(r.Reason, "-"), maxReason))
	}
	return w.Flush()
}

// callsText returns how many calls wait and how many are in doubt.
func (r listedRun) callsText() string {
	waiting, doubt := 0, 0
	for _, c := range r.Calls {
		switch {
		case !c.Done:
			waiting++
		case c.Outcome == store.OutcomeInDoubt:
			doubt++
		}
	}

	var parts []string
	if waiting > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d waiting", waiting, len(r.Calls)))
	}
	if doubt > 0 {
		parts = append(parts, fmt.Sprintf("%d in doubt", doubt))
	}
	return cmp.Or(strings.Join(parts, ", "), "-")
}

// leaseText returns the latest owner of the run or its calls, and the time left. Of several claims, it is the one with
// the latest end. Without a claim, it returns whether work was given back.
func (r listedRun) leaseText(now time.Time) string {
	var holder string
	var end *time.Time
	count, back := 0, r.Released
	add := func(worker string, leased bool, leaseUntil *time.Time) {
		if !leased || leaseUntil == nil {
			return
		}
		count++
		if end == nil || leaseUntil.After(*end) {
			holder, end = worker, leaseUntil
		}
	}

	// The claim of the run, and then those of its calls.
	add(r.Worker, r.State == store.RunRunning, r.LeaseUntil)
	for _, c := range r.Calls {
		add(c.Worker, !c.Done && !c.Released, c.LeaseUntil)
		back = back || c.Released
	}
	switch {
	case count == 0 && back:
		return "given back"
	case count == 0:
		return "-"
	}

	text := holderText(holder, end, now)
	if count > 1 {
		text += fmt.Sprintf(" and %d more", count-1)
	}
	return text
}

// holderText returns the worker of the latest claim, with the time until another one can claim the work.
func holderText(holder string, end *time.Time, now time.Time) string {
	holder = safetext.Row(cmp.Or(holder, "-"))
	if end.After(now) {
		return holder + " for " + span(end.Sub(now))
	}
	return holder + ", ended"
}

// until returns the time from now, "now" if it has passed, or "-" for nil.
func until(t *time.Time, now time.Time) string {
	switch {
	case t == nil:
		return "-"
	case !t.After(now):
		return "now"
	}
	return "in " + span(t.Sub(now))
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

// showRun prints a run with its calls.
func (s *streams) showRun(file, id string, asJSON bool) error {
	db, err := s.existing(file)
	if err != nil {
		return err
	}
	run, err := db.Run(s.ctx, id)
	if err != nil {
		return runError(file, id, err)
	}
	tasks, err := db.Tasks(s.ctx, id)
	if err != nil {
		return runError(file, id, err)
	}

	r := listed(run, tasks)
	if asJSON {
		return s.printJSON(r)
	}
	return s.printRun(file, r, time.Now())
}

func (s *streams) printRun(file string, r listedRun, now time.Time) error {
	w := tabwriter.NewWriter(s.out, 0, 8, 2, ' ', 0)
	// A row without a value is left out.
	line := func(name, value string) {
		if value != "" && value != "-" {
			fmt.Fprintf(w, "%s\t%s\n", name, value)
		}
	}

	line("run", safetext.Row(r.ID))
	line("state", fmt.Sprintf("%s for %s", r.State, span(now.Sub(r.Changed))))
	line("reason", safetext.Line(r.Reason, 4000))
	line("file", safetext.Row(file+mark+r.Conversation+mark+r.Head))
	line("agent", safetext.Row(r.Agent))
	line("began", r.Began.Format(time.DateTime)+" UTC")
	if r.Claims > 0 {
		line("claims", fmt.Sprint(r.Claims))
	}

	switch {
	case r.Released:
		line("lease", "given back, free "+until(r.LeaseUntil, now))
	case r.State == store.RunRunning && r.LeaseUntil != nil:
		line("lease", holderText(r.Worker, r.LeaseUntil, now))
	}

	line("next", until(r.Next, now))
	if err := w.Flush(); err != nil || len(r.Calls) == 0 {
		return err
	}

	// The calls are a table of their own.
	fmt.Fprintln(s.out)
	fmt.Fprintln(w, "call\ttool\tclaims\tdeadline\tresult")
	for _, c := range r.Calls {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", safetext.Row(c.Call), safetext.Row(c.Tool), c.claimsText(),
			c.deadlineText(now), c.resultText(now))
	}
	return w.Flush()
}

// claimsText returns the number of claims, and how many there may be.
func (c listedCall) claimsText() string {
	switch {
	case c.External:
		return "-"
	case c.Attempts == 0:
		return fmt.Sprint(c.Claims)
	}
	return fmt.Sprintf("%d of %d", c.Claims, c.Attempts)
}

// deadlineText returns the time until the deadline. A call with a result has none any more.
func (c listedCall) deadlineText(now time.Time) string {
	if c.Done {
		return "-"
	}
	return until(c.Deadline, now)
}

// resultText returns the outcome of a call, or the reason for its waiting.
func (c listedCall) resultText(now time.Time) string {
	switch {
	case c.Done:
		return string(c.Outcome)
	case c.External:
		return "waits for a reply"
	case c.Released:
		return "given back, free " + until(c.LeaseUntil, now)
	case c.LeaseUntil != nil:
		return "last claimed by " + safetext.Row(cmp.Or(c.Worker, "-")) + ", free " + until(c.LeaseUntil, now)
	}
	return "waits for a worker"
}
