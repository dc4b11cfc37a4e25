package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/schema"
	"github.com/plait-dev/plait/internal/unwrap"
	"github.com/plait-dev/plait/node"
)

// beginRepeated is the beginning of textRepeated.
const beginRepeated = "You have called "

// Texts for the model: results of calls that failed or were not executed, and textRepeated, a user message.
const (
	textCutOff = "Tool call %q was not executed: the response hit the output token limit, so its arguments may be truncated. " +
		"Re-issue the tool call with complete arguments."
	textSpent      = "Tool call %q was not executed: the run reached its %s."
	textPerTurn    = "Tool call %q was not executed: the limit of calls in one response is %d. Call it again if it is still needed."
	textLoop       = "Not executed: the run was stopped for repeating this call with identical arguments."
	textRepeated   = beginRepeated + "%q with identical arguments %d times in a row. Its result will not change: go on with what you have, or try something else."
	textNoTools    = "Tool call %q was not executed: no tool may be called now. Answer without one."
	textOneCall    = "Tool call %q was not executed: only one tool may be called at a time."
	textOtherTool  = "Tool call %q was not executed: only the tool %q may be called now."
	textSkipped    = "Skipped due to queued user message."
	textDenied     = "Tool call denied: %s"
	textTooLarge   = "Tool call arguments are too large. Retry with smaller arguments."
	textTimeout    = "Tool exceeded timeout of %s."
	textNotStarted = "Operation cancelled before the tool was started."
	textCancelled  = "Operation cancelled while the tool was running; it may have had effects."
	textPanicked   = "Tool %q panicked: %v"
	textVanished   = "Tool %q ended without a result."
	textFailed     = "Tool %q failed without saying why."
	textHidden     = "Tool %q failed."
)

// maxName is the maximum size of a tool's name in logs and errors, in bytes.
const maxName = 100

// maxArguments is the maximum size of arguments, in bytes. Larger ones are refused unread.
const maxArguments = 10 << 20

// gate is what decides about the open calls, beside the hooks, and what follows after them.
type gate struct {
	cutOff int          // the number of the open call that may be cut off, from 1; 0 for none
	stop   content.Stop // the run stops with this reason when the open calls have results; "" continues
	stalls stalls

	// These are set if the run is resumed.
	resumed bool            // until the phase that had paused is closed
	parent  []lineage.Phase // where the run had paused before
	replies *replies        // what somebody replied to pending calls; nil in a run that is not resumed
}

// decide decides about each open call, before any of them is executed. again is set for a phase that was decided before
// a pause, and has replies.
func (r *run) decide(open lineage.Phase, again bool) *toolPhase {
	var numbers []int
	if again && open.Waiting == open.Open { // of many, only those with a reply are looked at
		numbers = r.replies.numbers(open)
	} else {
		numbers = make([]int, 0, open.Open)
		for i := range open.List {
			if open.Done(i) == nil && !(again && r.replies.leave(open.Executions.At(i))) {
				numbers = append(numbers, i)
			}
		}
	}
	p := newPhase(r, open, numbers)
	if p.stays = open.Open - len(numbers); len(numbers) == 0 {
		return p
	}
	if !again {
		r.inspect(open.Caller)
	}

	refused := 0
	var unrecorded *node.ToolExecution
	if string(r.d.Metadata().Get(lineage.NoStarts)) == "true" {
		unrecorded = r.unrecorded(open.Caller)
	}
	for _, c := range p.calls {
		if e := r.elsewhere; e != nil {
			c.ran.Message, c.ran.Index = e.Key.Message, e.Key.Index
		}
		if !r.decideCall(c, open.Executions.At(c.number), unrecorded, again) {
			refused++
		}
		p.asks = p.asks || c.approval && !c.early
	}

	// What was refused before a pause was counted then.
	if !again && inARow(&r.stalls.refused, refused == len(p.calls)) >= maxRefused && r.stop == "" {
		r.stop = content.StopLoop
	}
	return p
}

// decideCall decides about a call. head is its unfinished execution, and start a start that no execution records; each
// may be nil. It returns false if the call is refused before the Before hooks see it.
func (r *run) decideCall(c *toolCall, head *node.Node, start *node.ToolExecution, again bool) bool {
	// Every call counts for the limit on calls once, also one that is denied or unknown.
	within := again || r.meter.claim(true, false)
	if head != nil && r.decideWaiting(c, head, within, again) {
		return true
	}
	// Only the given conversation has starts on other branches: this run's are at the heads of its branch.
	if !r.looked && (r.initial.Head() == nil || len(r.initial.Refs()) > 0) {
		r.unresolved = unresolved(r.initial)
	}
	r.looked = true
	if c.start = cmp.Or(r.unresolved[c.call.Key()], start); c.start != nil {
		r.decideAgain(c, within)
		return true
	}

	if refusal := r.refusal(c, within); refusal != "" {
		c.answer(failure("%s", refusal))
		return false
	}
	if err := r.prepare(c); err != nil {
		c.answer(failure("%v", err))
		return false
	}
	if len(r.hooks.before) > 0 {
		r.authorize(c)
	}
	return true
}

// decideWaiting decides about a call with an unfinished execution, the head. It returns false if the call is decided
// like one without.
func (r *run) decideWaiting(c *toolCall, head *node.Node, within, again bool) bool {
	c.head = head
	if head.Children().Len() > 0 {
		c.kept = head
	}

	var own *placedReply
	var inside *insideReplies
	if again {
		key := c.call.Key()
		own, inside = r.replies.own[key], r.replies.inside[key]
	}

	e := head.Payload().(node.ToolExecution)
	switch {
	case own != nil:
		r.reply(c, &e, own)
	case inside != nil:
		r.continueAgent(c, &e, inside)

	// An earlier run has started this call, or somebody elsewhere: it may have had its effects already.
	case e.State == node.ExecutionStarted || lineage.InDoubt(e):
		c.start = &e
		r.decideAgain(c, within)
	default:
		return false
	}
	return true
}

// refusal returns the error text for a call that may not run, or "". within reports that the call is within the limits
// on calls, of this run and of the runs around it.
func (r *run) refusal(c *toolCall, within bool) string {
	call, limits := c.call, &r.agent.Limits
	switch {
	case r.ctx.Err() != nil:
		return textNotStarted
	case c.number+1 == r.cutOff:
		return fmt.Sprintf(textCutOff, call.Name)
	case r.stop == content.StopLoop:
		return textLoop
	case r.stop == content.StopTokenLimit:
		return fmt.Sprintf(textSpent, call.Name, "token limit")
	case r.stop == content.StopCostLimit:
		return fmt.Sprintf(textSpent, call.Name, "cost limit")

	// Compatible servers do not always respect the options of the request.
	case r.requested.ToolChoice == api.ToolsNone:
		return fmt.Sprintf(textNoTools, call.Name)
	case r.requested.OneCall && c.number > 0:
		return fmt.Sprintf(textOneCall, call.Name)

	case limits.CallsPerTurn > 0 && c.number >= limits.CallsPerTurn:
		return fmt.Sprintf(textPerTurn, call.Name, limits.CallsPerTurn)
	case !within:
		r.stop, r.detail = content.StopCallLimit, r.meter.outerLimit(true)
		return fmt.Sprintf(textSpent, call.Name, "limit on tool calls")
	}
	return ""
}

// prepare repairs the arguments, runs the Prepare hooks, and finds the tool. Its error is for the model.
func (r *run) prepare(c *toolCall) (err error) {
	if len(c.ran.Input) > maxArguments {
		return refused(textTooLarge)
	}
	if c.isObject = c.ran.Input.IsObject(); !c.isObject {
		c.ran.Input, c.repair, c.isObject = repaired(c.ran.Input)
	}

	// Hooks may rename the call, so the tool is looked up after them.
	for _, prepare := range r.hooks.prepare {
		changed, err := guard(r.ctx, &r.crew, prepare, c.ran)
		if err != nil {
			c.ran = c.call
			return r.hidden(c.call.Name, err)
		}
		c.isObject = c.isObject && changed.Input == c.ran.Input
		c.ran.Name, c.ran.Input = changed.Name, orEmpty(changed.Input)
	}

	// Compatible servers do not always respect the tool choice.
	if only := r.requested.ToolChoice.Tool(); only != "" && c.ran.Name != only {
		return refused(fmt.Sprintf(textOtherTool, c.call.Name, only))
	}
	return r.find(c)
}

// find finds the task for the call as it is now, and checks the arguments. Its error is for the model.
func (r *run) find(c *toolCall) (err error) {
	// The methods of a program's own tool may panic.
	defer func() {
		if v := recover(); v != nil {
			err = r.hidden(c.ran.Name, fmt.Errorf(textPanicked, c.ran.Name, v))
		}
	}()

	// Tools get a JSON object in any case, even if they check nothing else.
	if !c.isObject && !c.ran.Input.IsObject() {
		return &argumentError{c.ran.Name, []string{"root: " + notObject(c.ran.Input)}, c.ran.Input}
	}
	c.task = noTask
	found := r.taskOf(c.ran.Name)
	if found == nil {
		r.agent.Log.WarnContext(r.ctx, "plait: a model called a tool that does not exist",
			"tool", safetext.Escape(c.ran.Name, maxName), "run", r.id)
		return r.notFound(c.ran.Name)
	}
	c.task, c.deferred = found, c.deferred || found.deferred && r.elsewhere == nil
	if found.prepare == nil {
		return nil
	}
	err = found.prepare(r.ctx, c.ran.Input)
	if err != nil && errors.Is(err, r.ctx.Err()) { // the check ended with the run
		return refused(textNotStarted)
	}
	return err
}

// taskOf returns the task of the tool with that name, or nil if there is no such tool.
func (r *run) taskOf(name string) *task {
	b := r.bound[name]
	if b != nil && b.task.fn != nil {
		return &b.task
	}

	// A Handler executes every call, even of a tool without a function. The tasks of unknown tools are not kept: a model
	// may invent any number of names.
	handle := r.agent.Handler
	switch {
	case b == nil && handle == nil:
		return nil
	case b == nil:
		return &task{fn: handle.call, timeout: r.agent.ToolTimeout}
	}

	t, tool := &b.task, b.tool
	t.timeout = r.agent.ToolTimeout
	if own, ok := unwrap.As[interface{ Effect() Effect }, Tool](tool); ok {
		t.effect = own.Effect()
	}
	if handle != nil {
		t.fn = handle.call
		return t
	}

	// A tool's own settings win over the agent's.
	if own, ok := unwrap.As[interface{ Timeout() time.Duration }, Tool](tool); ok {
		t.timeout = own.Timeout()
	}
	if own, ok := unwrap.As[interface{ Mode() Mode }, Tool](tool); ok {
		t.mode = own.Mode()
	}
	if own, ok := unwrap.As[interface{ Deferred() bool }, Tool](tool); ok {
		t.deferred = own.Deferred()
	}
	t.agent, _ = unwrap.As[*subAgent, Tool](tool)

	// Arguments of a tool of this package are checked before the Before hooks see them. Another tool checks them in
	// Call.
	t.fn = tool.Call
	if own, ok := tool.(inSteps); ok {
		if b := own.steps(); b != nil {
			t.fn, t.prepare, t.resumes = b.run, b.prepare, t.agent != nil
		}
	}
	return t
}

// authorize runs the Before hooks and applies their decisions.
func (r *run) authorize(c *toolCall) {
	for _, before := range r.hooks.before {
		d, err := guard(r.ctx, &r.crew, before, c.ran)
		if err == nil {
			err = d.check()
		}
		if err != nil {
			c.answer(failure("%v", r.hidden(c.ran.Name, err)))
			return
		}

		// Later hooks see the changed arguments. check has made sure that they are an object.
		if d.action == modify {
			c.ran.Input, c.isObject = d.input, true
		}
		if d.rule != "" {
			c.decided = node.Decided{Rule: d.rule, At: c.phase.clock.Time()}
		}

		// A decision about the call ends the chain. A request to wait does not: a later hook may still deny.
		switch d.action {
		case deny:
			c.deny(d.reason)
			return
		case useResult:
			c.answer(d.result)
			return
		case askApproval:
			c.approval, c.reason = true, d.reason
		case deferred:
			c.deferred, c.reason = true, d.reason
		}
	}
}

// check returns an error if the decision cannot be applied.
func (d Decision) check() error {
	switch {
	case d.action == modify && !d.input.IsObject():
		return fmt.Errorf("a hook's arguments are not a JSON object: %s", notObject(d.input))
	case d.action == useResult:
		return d.result.valid()
	case d.action == executeAgain:
		return errors.New("a hook's decision is for a call in doubt, which this one is not")
	}
	return nil
}

// hidden returns the error text for the model after an error of a hook or tool, by Agent.HideErrors.
func (r *run) hidden(tool string, err error) error {
	if r.ctx.Err() != nil {
		return refused(textNotStarted)
	}
	if r.agent.HideErrors {
		return refused(fmt.Sprintf(textHidden, tool))
	}
	if text := fmt.Sprint(err); text != "" {
		return refused(text)
	}
	return refused(fmt.Sprintf(textFailed, tool))
}

// repaired removes an unambiguous wrapping from arguments that are no JSON object, such as a code fence. It returns the
// arguments, a description of the repair or "", and whether the returned arguments are a JSON object.
func repaired(input content.JSON) (_ content.JSON, how string, isObject bool) {
	text := strings.TrimSpace(string(input))
	if inner, ok := unfenced(text); ok && content.JSON(inner).IsObject() {
		return content.JSON(inner), "the arguments were in a code fence", true
	}
	var once string
	if content.JSON(text).Decode(&once) == nil && content.JSON(once).IsObject() {
		return content.JSON(once), "the arguments were JSON in a JSON string", true
	}

	// Any other repair, such as a missing bracket, would be a guess.
	return input, "", false
}

// unfenced returns the content of the code fence that spans the whole text.
func unfenced(text string) (string, bool) {
	rest, ok := strings.CutPrefix(text, "```")
	if !ok {
		return "", false
	}
	head, rest, ok := strings.Cut(rest, "\n")
	if head = strings.TrimSpace(head); !ok || head != "" && !strings.EqualFold(head, "json") {
		return "", false
	}
	rest, ok = strings.CutSuffix(strings.TrimSpace(rest), "```")
	return strings.TrimSpace(rest), ok
}

// notObject returns the reason why input is no JSON object.
func notObject(input content.JSON) string {
	var value any
	if err := input.Decode(&value); err != nil {
		return err.Error()
	}
	return "must be object, is " + schema.TypeOf(value)
}

func (h Handler) call(ctx context.Context, call Call) (Result, error) {
	out, err := h(ctx, call)
	if err != nil {
		return Result{}, err
	}
	return ResultOf(out)
}

// notFound returns the error text for a call of an unknown tool. It lists the known tools, at most 30.
func (r *run) notFound(name string) error {
	const maxListed = 30
	var known []string
	for _, def := range r.shared.Tools {
		if r.bound[def.Name] != nil && len(known) < maxListed {
			known = append(known, def.Name)
		}
	}
	text := "There are no tools."
	if len(known) > 0 {
		text = "Available tools: " + strings.Join(known, ", ")
	}
	if more := len(r.bound) - len(known); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return refused(fmt.Sprintf("Tool %s not found. %s", safetext.Quote(name, maxName), text))
}

// refused is an error whose text is for the model.
type refused string

func (r refused) Error() string { return string(r) }

// orEmpty returns {} in place of no arguments or null, and other arguments as they are.
func orEmpty(input content.JSON) content.JSON {
	if text := strings.TrimSpace(string(input)); text == "" || text == "null" {
		return "{}"
	}
	return input
}

// safely calls fn. A panic becomes an error.
func safely[T any](fn func() (T, error)) (value T, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("a hook %w: %v", errPanicked, v)
		}
	}()
	return fn()
}

var errTwice = &api.Error{Kind: api.ErrProtocol, Message: "the events of one run were ranged over twice"}
