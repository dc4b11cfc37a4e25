package node

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
)

// Payload is the content of a node. It is sealed: the variants are
//
//   - [System]: a system prompt.
//   - [Tools]: definitions of tools, and names of withdrawn tools.
//   - [Message]: one message of the user or the assistant.
//   - [ToolExecution]: the execution of one tool call; drawn, and never sent.
//   - [SubGraph]: a child conversation; never sent.
//   - [Compaction]: a summary that replaces older nodes when the conversation is sent.
//   - [RunStart]: the beginning of a run; never sent.
//   - [StopReason]: the end of a run; never sent.
//   - [Custom]: a record of the program; never sent.
//   - [Unknown]: a kind of a newer version of Plait; kept byte for byte, never sent.
//
// Variants are used as values. [New] accepts a pointer and copies the value it points to.
type Payload interface {
	kind() string // as in a saved file
}

// List is an immutable list. The zero value is empty.
type List[T any] struct {
	items *[]T // never written after ListOf
}

// ListOf returns the list of items.
func ListOf[T any](items ...T) List[T] {
	if len(items) == 0 {
		return List[T]{}
	}
	own := slices.Clone(items) // the address of items itself would put it on the heap even for an empty list
	return List[T]{&own}
}

// Len returns the number of items.
func (l List[T]) Len() int {
	if l.items == nil {
		return 0
	}
	return len(*l.items)
}

// At returns item i. It panics if i is out of range.
func (l List[T]) At(i int) T { return (*l.items)[i] }

// Slice returns the items as a new slice.
func (l List[T]) Slice() []T {
	return slices.Clone(l.shared())
}

// shared returns the items. The slice must not be changed.
func (l List[T]) shared() []T {
	if l.items == nil {
		return nil
	}
	return *l.items
}

// System is a system prompt. A conversation may have several. All of them are sent, in order, except replaced ones.
type System struct {
	// Name makes the prompt replaceable: of several prompts with one name, only the last is sent, in the position of
	// the first. If its Text is empty, none is sent. A prompt without a name replaces nothing and is never replaced.
	// Defaults to none.
	Name string
	// Text is sent to the model.
	Text string
}

// Tools declares and withdraws tools. If several nodes name the same tool, the last one counts.
type Tools struct {
	// Defs lists the definitions of declared tools.
	Defs List[content.Tool]
	// Withdrawn lists the names of tools that are withdrawn until a later node declares them again. A name is not in
	// both lists.
	Withdrawn List[string]
}

// Message is one message.
type Message struct {
	Role   content.Role
	Blocks content.Blocks
	// Answer describes the model's response that became this message of the assistant. It is outside the digest.
	Answer Answer
}

// Seen identifies the nodes that a model has seen: see dag.DAG.Seen.
type Seen [sha256.Size]byte

// Answer describes the model's response that became a message of the assistant. Each field may be zero.
type Answer struct {
	// API names the provider's API, such as "anthropic".
	API string
	// Model is the model's name as the provider gave it.
	Model string
	// ResponseID is the provider's ID of the response.
	ResponseID string
	// Stop is the stop reason of the response.
	Stop content.Stop
	// Usage counts the tokens of the request and the response.
	Usage content.Usage
	// Latency is the time from the request to the end of the response, without failed attempts.
	Latency time.Duration
	// Retries is the number of attempts that failed before this one.
	Retries int
	// Seen identifies the transcript sent to the model, by dag.DAG.Seen; zero if unknown. Thinking in the message is
	// valid only after that transcript.
	Seen Seen
	// Details has further data of the provider, as it was received: a fingerprint, the server's own timings, log
	// probabilities. It is any valid JSON value, or empty.
	Details content.JSON
}

// ToolExecution is the execution of one tool call. It lies between the message with the call and the results message of
// the tool phase. It is drawn, and never sent.
type ToolExecution struct {
	// CallID and Index identify the call in the assistant's message: the provider's ID, and the index of the call's
	// block among the blocks of the message. The message and the index are its [CallKey].
	CallID string
	Index  int
	// Tool is the name of the tool, and Input the arguments of the call.
	Tool  string
	Input content.JSON
	// State reports whether the execution has a result, and whether its outcome is known. Defaults to
	// ExecutionFinished.
	State ExecutionState
	// Result is the content of the tool result. IsError reports whether the model sees it as an error.
	Result  content.Blocks
	IsError bool
	// Started and Ended are the times of the execution. They are outside the digest.
	Started, Ended time.Time
	// Child holds the heads of the conversation of a sub-agent that ran for this call; empty if there was none.
	Child List[*Node]
	// Ran is the call to execute, or the executed one, if a hook or a person changed it. It is outside the digest of a
	// finished execution.
	Ran Ran
	// Note is the reason why an unfinished execution waits, as a hook gave it. It may be empty.
	Note string
	// Deferred reports of a call that waits for approval that it is executed elsewhere once it is approved.
	Deferred bool
	// Decided is who decided about the call. It is evidence, and never authority: nothing is executed because of
	// it. It is outside the digest.
	Decided Decided
	// Spent is what the run had used when it paused, as far as no other node has it. It is in one of the executions of
	// a pause, and outside the digest.
	Spent Spent
	// Usage counts the tokens used by the tool itself, such as those of a sub-agent. It is outside the digest.
	Usage content.Usage
	// Details is the program's own record of the execution: any valid JSON value, or empty. It is outside the digest.
	Details content.JSON
	// Full is the full output if Result is a cut form of it, and otherwise empty. It is outside the digest.
	Full content.Blocks
}

// ExecutionState is the state of a [ToolExecution].
type ExecutionState string

const (
	// ExecutionFinished is the state of an execution with a result.
	ExecutionFinished ExecutionState = ""
	// ExecutionStarted is the state of a call just before its tool is called. It has no result and is never sent. It is
	// a head until the execution with the result replaces it. If the program ends before that, nobody knows whether the
	// tool has done its work: the call is in doubt.
	ExecutionStarted ExecutionState = "started"
	// ExecutionInDoubt is the state of a started execution with an unknown outcome. Its result is an error with the
	// text content.OutcomeUnknown.
	ExecutionInDoubt ExecutionState = "in_doubt"
	// ExecutionDenied is the state of a call that a person or a hook declined. The tool was not called. Its result is an
	// error with the reason, for the model to see; the execution does not count as failed.
	ExecutionDenied ExecutionState = "denied"
	// ExecutionAwaitingApproval is the state of a call that a person has to approve: Ran is what was shown, and Note
	// why. With a Child, the call's sub-agent is paused until calls inside are approved; Child is the conversation of
	// the sub-agent, as far as it got. The execution has no result, is never sent, and is a head until the run
	// continues. With Started, the call was started before, and nobody knows its outcome.
	ExecutionAwaitingApproval = ExecutionState(content.StopApproval)
	// ExecutionAwaitingResults is the state of a call whose result comes from outside. With Started, somebody has begun
	// to execute it there; without a result, it is then in doubt. With a Child, the call's sub-agent is paused until
	// calls inside have their results. It is otherwise like ExecutionAwaitingApproval.
	ExecutionAwaitingResults = ExecutionState(content.StopResults)
)

// Unfinished reports whether an execution in this state has no result yet. Its call is open.
func (s ExecutionState) Unfinished() bool { return s == ExecutionStarted || s.Paused() }

// Paused reports whether the call waits for approval, for its result from outside, or for its paused sub-agent.
func (s ExecutionState) Paused() bool {
	return s == ExecutionAwaitingApproval || s == ExecutionAwaitingResults
}

// Ran is the call that was executed in place of the model's. A field is empty if it is the same as in the model's call.
type Ran struct {
	// Tool is the name of the tool.
	Tool string
	// Input holds the arguments.
	Input content.JSON
}

// Decided is who decided about a call in place of the model. The zero value is nobody.
type Decided struct {
	// By names the person, as the program gave it. At is the time of the decision.
	By string
	At time.Time
	// Rule names the rule of the program that decided in place of a person.
	Rule string
}

// Spent is what a run has used until a pause, over all of its pauses.
type Spent struct {
	// Run is the ID of the run; "" for a zero Spent.
	Run string
	// Turns and Calls count requests and finished calls; InnerTurns and InnerCalls those of runs inside tools.
	Turns, Calls           int
	InnerTurns, InnerCalls int
	// Usage and ToolUsage count tokens, and Elapsed the time without the pauses.
	Usage, ToolUsage content.Usage
	Elapsed          time.Duration
	// Cost and CostKnown are as in [StopReason].
	Cost      float64
	CostKnown bool
}

// SubGraph adds a child conversation to this one.
type SubGraph struct {
	// Title describes it: the name of a sub-agent or a tool.
	Title string
	// CallID is the provider's ID of its tool call, if there was one.
	CallID string
	// Heads are the heads of the child conversation.
	Heads List[*Node]
	// Summary is the outcome as text.
	Summary string
}

// Compaction replaces older nodes when the conversation is sent. Summary is sent as a message of the user in place of
// the first node in Replaced, and the other nodes are left out. They stay in the graph. Only messages are replaced:
// system prompts and declared tools among the nodes stay in effect. If the replaced message has results, Summary may
// have others for the same calls: so a long result becomes a short one.
type Compaction struct {
	Summary  content.Blocks
	Replaced List[ID]
}

// RunStart begins a run. It comes before the first request of the run, after the nodes that the run was given.
type RunStart struct {
	// Agent is the name of the agent that runs; "" if it has none. No other field is part of the digest: two runs with
	// the same content have the same digests.
	Agent string
	// Run is the ID of the run.
	Run string
	// Version is the version of the agent, such as that of the program; "" if it is unknown.
	Version string
	// Limits are the limits that count for the run.
	Limits RunLimits
}

// RunLimits are the limits of a run. A field is zero without such a limit, and never negative.
type RunLimits struct {
	// Turns, Calls and Tokens limit the requests, the tool calls and the tokens.
	Turns  int
	Calls  int
	Tokens int64
	// Cost limits the cost, in the currency of the program's price table. It is finite.
	Cost float64
	// Time limits the time of the run without its pauses.
	Time time.Duration
}

// StopReason ends a run.
type StopReason struct {
	// Reason is the stop reason: that of the last response, or one of the run's own.
	Reason content.Stop
	// Detail gives details, such as the text of an error, or a note about a limit of a run around this one. It may be
	// empty.
	Detail string
	// Turns, ToolCalls, Usage and Elapsed are the totals of the run: requests, tool calls, tokens, and wall time. They
	// are outside the digest. A paused run has no StopReason, and a run that is never resumed gets none: the tokens of
	// a whole conversation are the sum over the [Answer] of its messages, as "plait report" prints it.
	Turns     int
	ToolCalls int
	Usage     content.Usage
	Elapsed   time.Duration
	// ToolUsage counts tokens used inside tools. It is outside the digest.
	ToolUsage content.Usage
	// Cost is the known cost of the run, in the currency of the program's price table: finite and not negative. It is
	// outside the digest.
	Cost float64
	// CostKnown reports that Cost is the full cost, and not an estimate. It is false without a price table, if the
	// table lacks the price of a model or of a kind of token, and if Usage is incomplete. It is outside the digest.
	CostKnown bool
}

// Custom is a record of the program.
type Custom struct {
	// Name is the name of the record. It must not be empty. Use a prefix, such as "acme.note", to avoid conflicts.
	Name string
	// JSON is the record: any valid JSON value.
	JSON content.JSON
}

// Unknown is a payload of a kind unknown to this version. Only [Parse] makes it.
type Unknown struct {
	name string // of the kind
	body content.JSON
}

func (System) kind() string        { return "system" }
func (Tools) kind() string         { return "tools" }
func (Message) kind() string       { return "message" }
func (ToolExecution) kind() string { return "tool_execution" }
func (SubGraph) kind() string      { return "sub_graph" }
func (Compaction) kind() string    { return "compaction" }
func (RunStart) kind() string      { return "run_start" }
func (StopReason) kind() string    { return "stop_reason" }
func (Custom) kind() string        { return "custom" }
func (u Unknown) kind() string     { return u.name }

// checked returns p in the form for a node, as a value and with clean text, or an error if p is invalid.
func checked(p Payload) (Payload, error) {
	p, err := checkedBody(p)
	return p, errors.Join(err, checkInfo(p))
}

// checkedBody is like checked, but does not check the fields of the info.
func checkedBody(p Payload) (Payload, error) {
	given := value(p)
	switch p := given.(type) {
	case nil:
		return nil, errors.New("the payload is nil")
	case System:
		return kept(given, System{Name: safetext.UTF8(p.Name), Text: safetext.UTF8(p.Text)}), nil
	case Tools:
		clean, err := p.checked()
		return kept(given, clean), err
	case Message:
		clean, err := p.checked()
		return kept(given, clean), err
	case ToolExecution:
		p.CallID, p.Tool, p.Input = safetext.UTF8(p.CallID), safetext.UTF8(p.Tool), cleanJSON(p.Input)
		p.State = ExecutionState(safetext.UTF8(string(p.State)))
		p.Ran = Ran{Tool: safetext.UTF8(p.Ran.Tool), Input: cleanJSON(p.Ran.Input)}
		p.Note, p.Spent.Run = safetext.UTF8(p.Note), safetext.UTF8(p.Spent.Run)
		p.Decided.By, p.Decided.Rule = safetext.UTF8(p.Decided.By), safetext.UTF8(p.Decided.Rule)

		// A file keeps the times in UTC and without a monotonic reading.
		p.Started, p.Ended = p.Started.UTC().Round(0), p.Ended.UTC().Round(0)
		p.Decided.At = p.Decided.At.UTC().Round(0)
		return kept(given, p), errors.Join(checkResult(p.Result), checkHeads(p.Child))

	case SubGraph:
		p.Title, p.CallID, p.Summary = safetext.UTF8(p.Title), safetext.UTF8(p.CallID), safetext.UTF8(p.Summary)
		return kept(given, p), checkHeads(p.Heads)
	case Compaction:
		return kept(given, p), checkSummary(p.Summary)

	case RunStart:
		p.Agent, p.Run, p.Version = safetext.UTF8(p.Agent), safetext.UTF8(p.Run), safetext.UTF8(p.Version)
		return kept(given, p), nil
	case StopReason:
		p.Reason, p.Detail = content.Stop(safetext.UTF8(string(p.Reason))), safetext.UTF8(p.Detail)

		// An empty reason would mean that nothing has stopped yet.
		if p.Reason == "" {
			p.Reason = content.StopUnknown
		}
		return kept(given, p), nil

	case Custom:
		p.Name = safetext.UTF8(p.Name)
		if p.Name == "" {
			return nil, &FieldError{Field: "name", Err: errors.New("it is empty")}
		}
		if !p.JSON.Valid() {
			return nil, fmt.Errorf("custom %q: %w", p.Name, content.ErrJSON)
		}
		return kept(given, p), nil
	case Unknown:
		return nil, errors.New("an unknown payload can only come from a file")
	}
	panic("node: a variant of Payload that checked does not know")
}

// kept returns the clean form of a payload. If it equals the given one, as usual, kept returns that: boxing a struct
// again would allocate up to 256 bytes.
func kept[P interface {
	Payload
	comparable
}](given Payload, clean P) Payload {
	if old, ok := given.(P); ok && old == clean {
		return given
	}
	return clean
}

// checkInfo returns an error for invalid values in the fields of the info.
func checkInfo(p Payload) error {
	switch p := p.(type) {
	case Message:
		return inField("details", checkDetails(p.Answer.Details))
	case ToolExecution:
		return errors.Join(inField("started", checkTime(p.Started)), inField("ended", checkTime(p.Ended)),
			inField("details", checkDetails(p.Details)), inField("full", checkResult(p.Full)),
			inField("decided/at", checkTime(p.Decided.At)), inField("spent", p.Spent.check()))
	case RunStart:
		return inField("limits", p.Limits.check())
	case StopReason:
		return inField("cost", checkCost(p.Cost))
	}
	return nil
}

// check returns an error for a limit that is negative or not finite.
func (l RunLimits) check() error {
	if l.Turns < 0 || l.Calls < 0 || l.Tokens < 0 || l.Time < 0 {
		return errors.New("a limit is negative")
	}
	return inField("cost", checkCost(l.Cost))
}

func checkCost(cost float64) error {
	if cost < 0 || math.IsNaN(cost) || math.IsInf(cost, 0) {
		return fmt.Errorf("%v is not a cost: it is negative or not finite", cost)
	}
	return nil
}

func (s Spent) check() error {
	if min(s.Turns, s.Calls, s.InnerTurns, s.InnerCalls) < 0 {
		return errors.New("a count is negative")
	}
	return checkCost(s.Cost)
}

func inField(field string, err error) error {
	if err == nil {
		return nil
	}
	return &FieldError{Field: field, Err: err}
}

func checkDetails(j content.JSON) error {
	if j != "" && !j.Valid() {
		return content.ErrJSON
	}
	return nil
}

// cleanJSON is safetext.UTF8 for arguments from a model, which may not be valid JSON.
func cleanJSON(j content.JSON) content.JSON { return content.JSON(safetext.UTF8(string(j))) }

func (m Message) checked() (Message, error) {
	if !m.Role.Valid() {
		return m, &FieldError{Field: "role", Err: fmt.Errorf("%q is neither user nor assistant", m.Role)}
	}
	a := &m.Answer
	a.API, a.Model, a.ResponseID = safetext.UTF8(a.API), safetext.UTF8(a.Model), safetext.UTF8(a.ResponseID)
	a.Stop = content.Stop(safetext.UTF8(string(a.Stop)))
	m.Blocks = fresh(m.Blocks)
	return m, nil
}

// fresh returns blocks with no thinking marked as stale: the mark belongs to one transcript.
func fresh(blocks content.Blocks) content.Blocks {
	var list []content.Block
	for i, b := range blocks.All() {
		if t, ok := b.(content.Thinking); ok && t.Stale {
			// Most messages have no such mark, and keep their list.
			if list == nil {
				list = blocks.Slice()
			}
			t.Stale = false
			list[i] = t
		}
	}
	if list == nil {
		return blocks
	}

	blocks, _ = content.Of(list...) // no error: these blocks come from a list
	return blocks
}

func (t Tools) checked() (Tools, error) {
	defs := t.Defs.Slice()
	seen := make(map[string]bool, len(defs))
	for i := range defs {
		def := &defs[i]
		def.Description, def.Extra.API = safetext.UTF8(def.Description), safetext.UTF8(def.Extra.API)
		if err := def.Check(); err != nil {
			return t, err
		}
		if seen[def.Name] {
			return t, fmt.Errorf("%w: %s is declared twice", content.ErrTool, def.Name)
		}
		seen[def.Name] = true
	}

	for _, name := range t.Withdrawn.shared() {
		named := content.Tool{Name: name, Schema: redactedSchema} // Check checks the name
		if err := named.Check(); err != nil {
			return t, err
		}
		if seen[name] {
			return t, fmt.Errorf("%w: %s is named twice", content.ErrTool, name)
		}
		seen[name] = true
	}

	// Return the same list if nothing was changed: kept compares lists by identity.
	if slices.Equal(t.Defs.shared(), defs) {
		return t, nil
	}
	return Tools{Defs: ListOf(defs...), Withdrawn: t.Withdrawn}, nil
}

// checkTime returns an error for a year outside RFC 3339, the saved form of a time.
func checkTime(t time.Time) error {
	if y := t.UTC().Year(); y < 0 || y > 9999 {
		return fmt.Errorf("the year %d is outside 0 to 9999", y)
	}
	return nil
}

// checkResult returns an error for blocks that are allowed only in a message.
func checkResult(blocks content.Blocks) error {
	for i := range blocks.Len() {
		switch blocks.At(i).(type) {
		case content.ToolUse, content.CutToolUse, content.ToolResult, content.Thinking:
			_, err := content.Of(content.ToolResult{Content: blocks})
			return err
		}
	}
	return nil
}

// checkSummary returns an error for a summary that holds what a message of the user cannot: calls and thinking.
func checkSummary(blocks content.Blocks) error {
	for i, b := range blocks.All() {
		switch b.(type) {
		case content.ToolUse, content.CutToolUse, content.Thinking:
			return fmt.Errorf("block %d is a call or thinking, which only a message can have", i)
		}
	}
	return nil
}

func checkHeads(heads List[*Node]) error {
	if slices.Contains(heads.shared(), nil) {
		return errors.New("a head of the child conversation is nil")
	}
	return nil
}

// value replaces a pointer to a variant by a copy of the variant, and a nil pointer by nil. It returns any other p
// unchanged.
func value(p Payload) Payload {
	switch p := p.(type) {
	case *System:
		return deref(p)
	case *Tools:
		return deref(p)
	case *Message:
		return deref(p)
	case *ToolExecution:
		return deref(p)
	case *SubGraph:
		return deref(p)
	case *Compaction:
		return deref(p)
	case *RunStart:
		return deref(p)
	case *StopReason:
		return deref(p)
	case *Custom:
		return deref(p)
	case *Unknown:
		return deref(p)
	}
	return p
}

func deref[T Payload](p *T) Payload {
	if p == nil {
		return nil
	}
	return *p
}
