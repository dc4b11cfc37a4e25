package node

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/plait-dev/plait/content"
)

// Payload is what a node says. It is sealed: the variants are
//
//   - [System]: a system prompt.
//   - [Tools]: definitions of tools, declared from here on.
//   - [Message]: one message of the user's side or the assistant's.
//   - [ToolExecution]: one tool call being carried out; for the picture, never sent.
//   - [SubGraph]: another conversation, hung on this one; never sent.
//   - [Compaction]: a summary that stands for older nodes when the conversation is sent.
//   - [StopReason]: the end of a run; never sent.
//   - [Custom]: a program's own record; never sent.
//   - [Unknown]: a kind that a newer version of Plait wrote; kept byte for byte, never sent.
//
// Variants are used as values. A pointer is accepted by [New] and replaced by a copy of what it points to.
type Payload interface {
	// Kind is the payload's "kind" in a saved file.
	Kind() string
	sealed()
}

// List is an unchangeable list. The zero value is empty.
type List[T any] struct {
	items *[]T // never written after ListOf
}

// ListOf returns the list of items.
func ListOf[T any](items ...T) List[T] {
	if len(items) == 0 {
		return List[T]{}
	}
	items = slices.Clone(items)
	return List[T]{&items}
}

// Len is the number of items.
func (l List[T]) Len() int {
	if l.items == nil {
		return 0
	}
	return len(*l.items)
}

// At returns item i. It panics when i is out of range, as indexing does.
func (l List[T]) At(i int) T { return (*l.items)[i] }

// Slice returns the items as a new slice.
func (l List[T]) Slice() []T {
	if l.items == nil {
		return nil
	}
	return slices.Clone(*l.items)
}

// System is a system prompt. A conversation may have several; all of them are sent, in order, except those that a later one replaces.
type System struct {
	// Name names the prompt, so that it can be replaced: of the prompts with one name only the newest is sent, where the first of them
	// stood. An empty Text then removes the prompt. A prompt without a name replaces nothing and is never replaced. Defaults to none.
	Name string
	// Text is what the model is sent.
	Text string
}

// Tools declares tools, or withdraws them. Where several of these nodes name the same tool, the last one holds.
type Tools struct {
	// Defs is the definitions, declared from here on.
	Defs List[content.Tool]
	// Withdrawn is the names of tools that are not declared from here on, until a later node declares them again. A name is not in
	// both lists.
	Withdrawn List[string]
}

// Message is one message.
type Message struct {
	Role   content.Role
	Blocks content.Blocks
	// Answer tells where an assistant's message came from. It is no part of what was said: it is outside the digest.
	Answer Answer
}

// Answer is what is known of the model call that an assistant's message answered. Each field may be zero.
type Answer struct {
	// API names the provider's API, such as "anthropic".
	API string
	// Model is the model's name as the provider gave it.
	Model string
	// ResponseID is the provider's id of the response.
	ResponseID string
	// Stop is why the model stopped.
	Stop content.Stop
	// Usage counts the call's tokens.
	Usage content.Usage
	// Latency is the time from the request to the end of the answer.
	Latency time.Duration
	// Seen is the digest of what the model had seen, as dag.Transcript.Seen computes it; zero where that is not known. Thinking in
	// the message is bound to it.
	Seen Digest
}

// ToolExecution is one tool call being carried out. It stands between the assistant's message and the message that closes the
// tool phase with all results, and is drawn but never sent.
type ToolExecution struct {
	// CallID and Index say which call of the assistant's message this is: the provider's id, and the place among its calls.
	CallID string
	Index  int
	// Tool is the tool's name, and Input the arguments it was called with.
	Tool  string
	Input content.JSON
	// Result is what it returned, and IsError whether it failed.
	Result  content.Blocks
	IsError bool
	// Started and Ended are when. They are outside the digest.
	Started, Ended time.Time
	// Child is the conversation of a sub-agent that ran for this call, by its heads; empty when there was none.
	Child List[*Node]
	// Ran is what was carried out in fact, where a hook changed the call. It is outside the digest.
	Ran Ran
	// Usage counts tokens that the tool took itself, such as a sub-agent's. It is outside the digest.
	Usage content.Usage
	// Details is the program's own record of the execution: any valid JSON value, or empty. It is outside the digest.
	Details content.JSON
	// Full is the whole output, where Result is a cut form of it; else empty. It is outside the digest.
	Full content.Blocks
}

// Ran is what a tool execution carried out in fact. A field is empty where it is the call's own.
type Ran struct {
	// Tool is the tool's name.
	Tool string
	// Input is the arguments.
	Input content.JSON
}

// SubGraph hangs another conversation on this one.
type SubGraph struct {
	// Title says what it is: the name of a sub-agent or a tool.
	Title string
	// CallID is the provider's id of the call it ran for, if there was one.
	CallID string
	// Heads are its heads.
	Heads List[*Node]
	// Summary is its outcome in words.
	Summary string
}

// Compaction stands for older nodes when the conversation is sent: in place of the first of the Replaced nodes, Summary is said
// by the user's side, and the others are left out. They stay in the graph. Only what is said is replaced: system prompts and
// declared tools among the nodes hold on.
type Compaction struct {
	Summary  content.Blocks
	Replaced List[ID]
}

// StopReason ends a run.
type StopReason struct {
	// Reason is why the run ended: the model's reason, or one of the run's own.
	Reason content.Stop
	// Detail says more, such as the text of an error. It may be empty.
	Detail string
	// Turns, ToolCalls, Usage and Elapsed are the run's totals: model calls, tool calls, tokens, and wall time. They are outside
	// the digest. A run that is paused has no StopReason yet, and one that is never resumed gets none: the tokens of a whole
	// conversation are the sum over the [Answer] of its messages, as "plait cost" prints it.
	Turns     int
	ToolCalls int
	Usage     content.Usage
	Elapsed   time.Duration
	// ToolUsage counts tokens that tools took themselves. It is outside the digest.
	ToolUsage content.Usage
	// Cost is what the run cost as far as that is known, in the currency of the program's price table: finite and not negative. It is
	// outside the digest.
	Cost float64
	// CostKnown reports that Cost is all of the cost, and no estimate. It is false where there was no price table, where that lacks the
	// price of a model or of a kind of token, and where Usage is incomplete. It is outside the digest.
	CostKnown bool
}

// Custom is a program's own record.
type Custom struct {
	// Name tells what it is; a name with a prefix of the program's own, such as "acme.note", stays clear of others.
	Name string
	// JSON is the record: any valid JSON value.
	JSON content.JSON
}

// Unknown is a payload of a kind that this version does not know. Only [Parse] makes it.
type Unknown struct {
	kind string
	body content.JSON
}

// Kind returns "system".
func (System) Kind() string { return "system" }

// Kind returns "tools".
func (Tools) Kind() string { return "tools" }

// Kind returns "message".
func (Message) Kind() string { return "message" }

// Kind returns "tool_execution".
func (ToolExecution) Kind() string { return "tool_execution" }

// Kind returns "sub_graph".
func (SubGraph) Kind() string { return "sub_graph" }

// Kind returns "compaction".
func (Compaction) Kind() string { return "compaction" }

// Kind returns "stop_reason".
func (StopReason) Kind() string { return "stop_reason" }

// Kind returns "custom".
func (Custom) Kind() string { return "custom" }

// Kind returns the kind that the file named.
func (u Unknown) Kind() string { return u.kind }

func (System) sealed()        {}
func (Tools) sealed()         {}
func (Message) sealed()       {}
func (ToolExecution) sealed() {}
func (SubGraph) sealed()      {}
func (Compaction) sealed()    {}
func (StopReason) sealed()    {}
func (Custom) sealed()        {}
func (Unknown) sealed()       {}

// checked returns p as it is kept: a value, with clean text.
func checked(p Payload) (Payload, error) {
	p, err := checkedBody(p)
	return p, errors.Join(err, checkInfo(p))
}

// checkedBody is checked without what [Parse] reads from the info.
func checkedBody(p Payload) (Payload, error) {
	switch p := value(p).(type) {
	case nil:
		return nil, errors.New("the payload is nil")
	case System:
		return System{Name: content.Clean(p.Name), Text: content.Clean(p.Text)}, nil
	case Tools:
		return p.checked()
	case Message:
		return p.checked()
	case ToolExecution:
		p.CallID, p.Tool, p.Input = content.Clean(p.CallID), content.Clean(p.Tool), cleanJSON(p.Input)
		p.Ran = Ran{Tool: content.Clean(p.Ran.Tool), Input: cleanJSON(p.Ran.Input)}
		p.Started, p.Ended = p.Started.UTC().Round(0), p.Ended.UTC().Round(0)
		return p, errors.Join(checkResult(p.Result), checkHeads(p.Child))
	case SubGraph:
		p.Title, p.CallID, p.Summary = content.Clean(p.Title), content.Clean(p.CallID), content.Clean(p.Summary)
		return p, checkHeads(p.Heads)
	case Compaction:
		return p, checkResult(p.Summary)
	case StopReason:
		p.Reason, p.Detail = content.Stop(content.Clean(string(p.Reason))), content.Clean(p.Detail)
		if p.Reason == "" {
			p.Reason = content.StopUnknown
		}
		return p, nil
	case Custom:
		p.Name = content.Clean(p.Name)
		if !p.JSON.Valid() {
			return nil, fmt.Errorf("custom %q: %w", p.Name, content.ErrJSON)
		}
		return p, nil
	case Unknown:
		return nil, errors.New("an unknown payload is only read from files")
	}
	panic("node: a variant of Payload that checked does not know")
}

// checkInfo refuses what the info of a saved node cannot hold.
func checkInfo(p Payload) error {
	switch p := p.(type) {
	case ToolExecution:
		return errors.Join(inField("started", checkTime(p.Started)), inField("ended", checkTime(p.Ended)),
			inField("details", checkDetails(p.Details)), inField("full", checkResult(p.Full)))
	case StopReason:
		if p.Cost < 0 || math.IsNaN(p.Cost) || math.IsInf(p.Cost, 0) {
			return inField("cost", fmt.Errorf("%v is no cost: it is negative or not finite", p.Cost))
		}
	}
	return nil
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

// cleanJSON is content.Clean for arguments that a model wrote, which need not be JSON.
func cleanJSON(j content.JSON) content.JSON { return content.JSON(content.Clean(string(j))) }

func (m Message) checked() (Payload, error) {
	if !m.Role.Valid() {
		return nil, &FieldError{Field: "role", Err: fmt.Errorf("%q is neither user nor assistant", m.Role)}
	}
	a := &m.Answer
	a.API, a.Model, a.ResponseID = content.Clean(a.API), content.Clean(a.Model), content.Clean(a.ResponseID)
	a.Stop = content.Stop(content.Clean(string(a.Stop)))
	m.Blocks = fresh(m.Blocks)
	return m, nil
}

// fresh returns blocks without what a transcript said of their thinking, which is true there alone.
func fresh(blocks content.Blocks) content.Blocks {
	var list []content.Block
	for i, b := range blocks.All() {
		if t, ok := b.(content.Thinking); ok && t.Stale {
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
	blocks, _ = content.Of(list...) // each was part of a list before
	return blocks
}

func (t Tools) checked() (Payload, error) {
	defs := t.Defs.Slice()
	seen := make(map[string]bool, len(defs))
	for i := range defs {
		def := &defs[i]
		def.Description, def.Extra.API = content.Clean(def.Description), content.Clean(def.Extra.API)
		if err := def.Check(); err != nil {
			return nil, err
		}
		if seen[def.Name] {
			return nil, fmt.Errorf("%w: %s is declared twice", content.ErrTool, def.Name)
		}
		seen[def.Name] = true
	}

	for _, name := range t.Withdrawn.Slice() {
		named := content.Tool{Name: name, Schema: redactedSchema} // for the check of its name
		if err := named.Check(); err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, fmt.Errorf("%w: %s is named twice", content.ErrTool, name)
		}
		seen[name] = true
	}
	return Tools{Defs: ListOf(defs...), Withdrawn: t.Withdrawn}, nil
}

// checkTime refuses what the saved form of a time, RFC 3339, has no digits for.
func checkTime(t time.Time) error {
	if y := t.UTC().Year(); y < 0 || y > 9999 {
		return fmt.Errorf("the year %d is outside 0 to 9999", y)
	}
	return nil
}

// checkResult refuses what only a message can hold.
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

func checkHeads(heads List[*Node]) error {
	if slices.Contains(heads.Slice(), nil) {
		return errors.New("a head of the child conversation is nil")
	}
	return nil
}

// value turns a pointer to a variant into a copy of the variant; nil pointers into nil.
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
