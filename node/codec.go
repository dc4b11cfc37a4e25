package node

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"
	"github.com/google/uuid"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/blockcodec"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/safetext"
)

// ErrParse marks a saved node that cannot be read.
var ErrParse = errors.New("cannot read node")

// ErrParent marks a parent, or a head of a child conversation, that was not found before its node.
var ErrParent = errors.New("no such node before it")

// errMissing is the reason for a missing required field.
var errMissing = errors.New("it is missing")

// maxDepth is the maximum nesting of a saved node. Plait's own nodes stay below the limit, because a deeper value
// inside a block is saved as a string.
const maxDepth = 512

// FieldError is an error in a field of a node.
type FieldError struct {
	// ID is the node's ID as it was written; empty if it could not be read.
	ID string
	// Field is the path of the field, such as "body/role".
	Field string
	Err   error
}

// maxError is the maximum size of an error text, in bytes.
const maxError = 2000

// Error returns the node, the field and the reason. It is safe to print.
func (e *FieldError) Error() string {
	text := e.Field + ": " + e.Err.Error()
	if e.ID != "" {
		text = "node " + e.ID + ": " + text
	}
	return safetext.Escape(text, maxError)
}

// Unwrap returns the reason.
func (e *FieldError) Unwrap() error { return e.Err }

// The codec of single blocks. Package content does not export it.
var (
	appendBlock     = blockcodec.Append.(func([]byte, content.Block) []byte)
	parseBlock      = blockcodec.Parse.(func([]byte) (content.Block, error))
	appendCanonical = blockcodec.AppendCanonical.(func(content.Blocks, []byte, func(bool, string, int) string) []byte)
)

// form is the form of a body: saved, or canonical for comparing nodes.
type form struct {
	write.Form
	ref func(result bool, id string, earlier int) string // set in the canonical form
	ids bool                                             // the IDs of calls and nodes are in the canonical form too
}

func (f form) blocks(dst []byte, b content.Blocks) []byte {
	if f.Canonical {
		return appendCanonical(b, dst, f.ref)
	}
	return b.Append(dst)
}

func (f form) heads(dst []byte, name string, heads List[*Node]) []byte {
	if heads.Len() == 0 {
		return dst
	}
	dst = append(write.Name(dst, name), '[')
	for _, h := range heads.shared() {
		if dst = write.Comma(dst); f.Canonical && !f.ids {
			dst = appendHash(dst, h.Digest())
		} else {
			dst = write.UUID(dst, h.id)
		}
	}
	return append(dst, ']')
}

func appendIDs(dst []byte, ids []ID) []byte {
	dst = append(dst, '[')
	for _, id := range ids {
		dst = write.UUID(write.Comma(dst), id)
	}
	return append(dst, ']')
}

// Append appends the node's saved form to dst: one JSON object on one line, without a line break. The envelope (id,
// parents, kind) comes first. A node that was read is written back byte for byte.
func (n *Node) Append(dst []byte) []byte {
	n = n.whole()
	if line := n.line.get(); line != "" {
		return append(dst, line...)
	}

	// Without a buffer, encode into a pooled one first: growing a new one takes more than twice as long.
	if cap(dst) == 0 {
		scratch := scratches.Get().(*[]byte)
		defer scratches.Put(scratch)
		line := n.encode((*scratch)[:0])
		if cap(line) <= maxScratch {
			*scratch = line
		}
		n.line.encoded(line)
		return append(dst, line...)
	}

	begin := len(dst)
	dst = n.encode(dst)
	n.line.encoded(dst[begin:])
	return dst
}

// appendUnkept is Append without remembering the form.
func (n *Node) appendUnkept(dst []byte) []byte {
	n = n.whole()
	if line := n.line.get(); line != "" {
		return append(dst, line...)
	}
	return n.encode(dst)
}

// encode appends the saved form. It does not use a remembered form.
func (n *Node) encode(dst []byte) []byte {
	// The envelope comes first, and the checksum last.
	begin := len(dst)
	dst = write.UUID(write.Name(append(dst, '{'), "id"), n.id)
	dst = append(write.Name(dst, "parents"), '[')
	for _, p := range n.parents() {
		dst = write.UUID(write.Comma(dst), p.id)
	}
	dst = write.OptString(append(dst, ']'), "kind", n.Kind())
	dst = appendTime(dst, "time", n.Time())

	dst = n.appendBody(write.Name(dst, "body"), form{})
	dst = n.appendInfo(dst)
	if meta := n.Meta(); meta.Len() > 0 {
		dst = meta.Append(write.Name(dst, "meta"))
	}
	dst = write.OptTrue(dst, "redacted", n.Redacted())
	return appendSum(dst, begin, n.hash().sum)
}

func (n *Node) appendBody(dst []byte, f form) []byte {
	if u, ok := n.Payload().(Unknown); ok {
		return append(dst, u.body.Canonical()...)
	}

	// The canonical form leaves out the IDs of calls and nodes: they differ in each run.
	dst = append(dst, '{')
	switch p := n.Payload().(type) {
	case System:
		dst = write.OptString(write.OptString(dst, "name", p.Name), "text", p.Text)
	case Tools:
		dst = appendNames(appendDefs(dst, p.Defs, f), "withdrawn", p.Withdrawn)
	case Message:
		dst = write.Name(write.OptString(dst, "role", string(p.Role)), "blocks")

		// A shared result is left out only in the saved form: the digests of both nodes cover it.
		if f.Canonical {
			dst = f.blocks(dst, p.Blocks)
		} else {
			dst = n.appendShared(dst, p.Blocks)
		}
	case ToolExecution:
		if !f.Canonical || f.ids {
			dst = write.OptString(dst, "call_id", p.CallID)
		}
		dst = write.Int(dst, "index", p.Index)
		dst = f.JSON(write.OptString(dst, "tool", p.Tool), "input", string(p.Input))
		dst = write.OptString(dst, "state", string(p.State))
		if p.State.Unfinished() { // what waits is content: a reply is given to it
			dst = write.OptString(appendRan(dst, p.Ran, f.Form), "note", p.Note)
			dst = write.OptTrue(dst, "deferred", p.Deferred)
		}
		dst = write.OptTrue(f.blocks(write.Name(dst, "result"), p.Result), "is_error", p.IsError)
		dst = f.heads(dst, "child", p.Child)
	case SubGraph:
		dst = write.OptString(dst, "title", p.Title)
		if !f.Canonical || f.ids {
			dst = write.OptString(dst, "call_id", p.CallID)
		}
		dst = write.OptString(f.heads(dst, "heads", p.Heads), "summary", p.Summary)
	case Compaction:
		dst = f.blocks(write.Name(dst, "summary"), p.Summary)
		if (!f.Canonical || f.ids) && p.Replaced.Len() > 0 {
			dst = appendIDs(write.Name(dst, "replaced"), p.Replaced.shared())
		}
	case RunStart:
		dst = write.OptString(dst, "agent", p.Agent)
	case StopReason:
		dst = write.OptString(write.OptString(dst, "reason", string(p.Reason)), "detail", p.Detail)
	case Custom:
		dst = f.JSON(write.OptString(dst, "name", p.Name), "json", string(p.JSON))
	}
	return append(dst, '}')
}

func appendDefs(dst []byte, defs List[content.Tool], f form) []byte {
	dst = append(write.Name(dst, "tools"), '[')
	for _, def := range defs.shared() {
		dst = write.OptString(append(write.Comma(dst), '{'), "name", def.Name)
		dst = f.JSON(write.OptString(dst, "description", def.Description), "schema", string(def.Schema))
		dst = append(f.Extra(dst, def.Extra.API, string(def.Extra.JSON)), '}')
	}
	return append(dst, ']')
}

// appendNames appends a list of names, unless it is empty.
func appendNames(dst []byte, member string, names List[string]) []byte {
	if names.Len() == 0 {
		return dst
	}
	dst = append(write.Name(dst, member), '[')
	for _, name := range names.shared() {
		dst = write.Quote(write.Comma(dst), name)
	}
	return append(dst, ']')
}

// appendShared appends the blocks of a message. If a parent, a ToolExecution, has the same result, the result is saved
// only there. The message refers to it by the index of the parent.
func (n *Node) appendShared(dst []byte, blocks content.Blocks) []byte {
	dst = append(dst, '[')

	// In a message of dag.DAG.CloseTools, result i is that of parent i: both are in the order of the calls.
	parents, results := n.parents(), 0
	for _, b := range blocks.All() {
		dst = write.Comma(dst)
		r, ok := b.(content.ToolResult)
		if ok && results < len(parents) && parents[results].answers(r) {
			dst = append(dst, `{"type":"tool_result","result_of":`...)
			dst = append(strconv.AppendInt(dst, int64(results), 10), '}')
		} else {
			dst = appendBlock(dst, b)
		}

		if ok {
			results++
		}
	}
	return append(dst, ']')
}

// answers reports whether r is the result of the execution n.
func (n *Node) answers(r content.ToolResult) bool {
	e, ok := n.Payload().(ToolExecution)
	return ok && e.Answer() == r
}

// Answer returns the tool result of the execution.
func (e ToolExecution) Answer() content.ToolResult {
	return content.ToolResult{CallID: e.CallID, Content: e.Result, IsError: e.IsError}
}

// appendInfo appends the fields of the payload that the digest does not cover. It appends nothing if all are empty.
func (n *Node) appendInfo(dst []byte) []byte {
	// Begin the member first, and take it back if nothing follows.
	mark := len(dst)
	dst = append(write.Name(dst, "info"), '{')
	empty := len(dst)

	switch p := n.Payload().(type) {
	case Message:
		a := p.Answer
		dst = write.OptString(write.OptString(dst, "api", a.API), "model", a.Model)
		dst = write.OptString(write.OptString(dst, "response_id", a.ResponseID), "stop", string(a.Stop))
		dst = write.OptInt(write.OptValue(dst, "usage", a.Usage), "latency_ns", a.Latency)
		dst = write.OptInt(dst, "retries", a.Retries)
		if a.Seen != (Seen{}) {
			dst = appendHash(write.Name(dst, "seen"), a.Seen)
		}
		dst = write.JSON(dst, "details", a.Details)
	case ToolExecution:
		dst = appendTime(appendTime(dst, "started", p.Started), "ended", p.Ended)
		if !p.State.Unfinished() {
			dst = write.OptTrue(write.OptString(appendRan(dst, p.Ran, write.Form{}), "note", p.Note), "deferred", p.Deferred)
		}
		dst = appendSpent(appendDecided(dst, p.Decided), p.Spent)
		dst = write.JSON(write.OptValue(dst, "usage", p.Usage), "details", p.Details)
		if p.Full.Len() > 0 {
			dst = p.Full.Append(write.Name(dst, "full"))
		}
	case RunStart:
		dst = write.OptString(write.OptString(dst, "run", p.Run), "version", p.Version)
		dst = appendLimits(dst, p.Limits)
	case StopReason:
		dst = write.OptInt(write.OptInt(dst, "turns", p.Turns), "tool_calls", p.ToolCalls)
		dst = write.OptInt(write.OptValue(dst, "usage", p.Usage), "elapsed_ns", p.Elapsed)
		dst = appendCost(write.OptValue(dst, "tool_usage", p.ToolUsage), p.Cost, p.CostKnown)
	}

	if len(dst) == empty {
		return dst[:mark]
	}
	return append(dst, '}')
}

func appendTime(dst []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	return write.Time(write.Name(dst, name), t)
}

// appendCost appends the cost of a run. It appends nothing for an unknown cost, and 0 for a known cost of 0.
func appendCost(dst []byte, cost float64, known bool) []byte {
	if cost == 0 && !known {
		return dst
	}
	b, _ := json.Marshal(cost) // no error: checkInfo has checked that it is finite
	dst = append(write.Name(dst, "cost"), b...)
	return write.OptTrue(dst, "cost_partial", !known)
}

// appendLimits appends the limits of a run, without those that it does not have.
func appendLimits(dst []byte, l RunLimits) []byte {
	if l == (RunLimits{}) {
		return dst
	}
	dst = append(write.Name(dst, "limits"), '{')
	dst = write.OptInt(write.OptInt(write.OptInt(dst, "turns", l.Turns), "calls", l.Calls), "tokens", l.Tokens)
	return append(write.OptInt(write.OptValue(dst, "cost", l.Cost), "time_ns", l.Time), '}')
}

func appendRan(dst []byte, r Ran, f write.Form) []byte {
	if r == (Ran{}) {
		return dst
	}
	dst = write.OptString(append(write.Name(dst, "ran"), '{'), "tool", r.Tool)
	return append(f.JSON(dst, "input", string(r.Input)), '}')
}

func appendDecided(dst []byte, d Decided) []byte {
	if d == (Decided{}) {
		return dst
	}
	dst = write.OptString(append(write.Name(dst, "decided"), '{'), "by", d.By)
	return append(write.OptString(appendTime(dst, "at", d.At), "rule", d.Rule), '}')
}

func appendSpent(dst []byte, s Spent) []byte {
	if s == (Spent{}) {
		return dst
	}
	dst = write.OptString(append(write.Name(dst, "spent"), '{'), "run", s.Run)
	dst = write.OptInt(write.OptInt(dst, "turns", s.Turns), "calls", s.Calls)
	dst = write.OptInt(write.OptInt(dst, "inner_turns", s.InnerTurns), "inner_calls", s.InnerCalls)
	dst = write.OptValue(write.OptValue(dst, "usage", s.Usage), "tool_usage", s.ToolUsage)
	return append(appendCost(write.OptInt(dst, "elapsed_ns", s.Elapsed), s.Cost, s.CostKnown), '}')
}

// envelope is a saved node.
type envelope struct {
	ID       string    `json:"id"`
	Parents  []string  `json:"parents"`
	Kind     string    `json:"kind"`
	Time     time.Time `json:"time"`
	Body     *body     `json:"body"`
	Info     info      `json:"info"`
	Meta     Meta      `json:"meta"`
	Redacted bool      `json:"redacted"`
	Sum      string    `json:"sum"`

	unknown jsontext.Value // the body of an unknown kind
}

// decode reads a line in one pass. If that fails, or if the kind is unknown, it reads the line again like one of a
// newer version, with any value as its body and its info.
func decode(line []byte) (envelope, error) {
	var e envelope
	err := json.Unmarshal(line, &e)
	if err == nil && known(e.Kind) {
		return e, nil
	}

	// The second pass also finds the ID, for the error about a node of a known kind.
	var other struct {
		ID      string         `json:"id"`
		Parents []string       `json:"parents"`
		Kind    string         `json:"kind"`
		Time    time.Time      `json:"time"`
		Body    jsontext.Value `json:"body"`
		Meta    Meta           `json:"meta"`
		Sum     string         `json:"sum"`
	}
	again := json.Unmarshal(line, &other)

	// Only an unknown kind may have any value as its body.
	if again == nil && known(other.Kind) {
		again = err
	}

	return envelope{ID: other.ID, Parents: other.Parents, Kind: other.Kind, Time: other.Time, Meta: other.Meta,
		Sum: other.Sum, unknown: other.Body}, again
}

type info struct {
	API         string         `json:"api"`
	Model       string         `json:"model"`
	ResponseID  string         `json:"response_id"`
	Stop        string         `json:"stop"`
	Usage       content.Usage  `json:"usage"`
	LatencyNS   int64          `json:"latency_ns"`
	Retries     int            `json:"retries"`
	Seen        string         `json:"seen"`
	Started     time.Time      `json:"started"`
	Ended       time.Time      `json:"ended"`
	Ran         ran            `json:"ran"`
	Note        string         `json:"note"`
	Deferred    bool           `json:"deferred"`
	Decided     decided        `json:"decided"`
	Spent       spent          `json:"spent"`
	Details     jsontext.Value `json:"details"`
	DetailsText string         `json:"details_text"`
	Full        []part         `json:"full"`
	Turns       int            `json:"turns"`
	ToolCalls   int            `json:"tool_calls"`
	ElapsedNS   int64          `json:"elapsed_ns"`
	ToolUsage   content.Usage  `json:"tool_usage"`
	Cost        *float64       `json:"cost"`
	CostPartial bool           `json:"cost_partial"`
	Run         string         `json:"run"`
	Version     string         `json:"version"`
	Limits      limits         `json:"limits"`
}

type limits struct {
	Turns  int     `json:"turns"`
	Calls  int     `json:"calls"`
	Tokens int64   `json:"tokens"`
	Cost   float64 `json:"cost"`
	TimeNS int64   `json:"time_ns"`
}

type ran struct {
	Tool      string         `json:"tool"`
	Input     jsontext.Value `json:"input"`
	InputText string         `json:"input_text"`
}

func (r ran) value() Ran {
	return Ran{Tool: r.Tool, Input: write.Either[content.JSON](r.Input, r.InputText)}
}

type decided struct {
	By   string    `json:"by"`
	At   time.Time `json:"at"`
	Rule string    `json:"rule"`
}

type spent struct {
	Run         string        `json:"run"`
	Turns       int           `json:"turns"`
	Calls       int           `json:"calls"`
	InnerTurns  int           `json:"inner_turns"`
	InnerCalls  int           `json:"inner_calls"`
	Usage       content.Usage `json:"usage"`
	ToolUsage   content.Usage `json:"tool_usage"`
	ElapsedNS   int64         `json:"elapsed_ns"`
	Cost        *float64      `json:"cost"`
	CostPartial bool          `json:"cost_partial"`
}

func (s spent) value() Spent {
	v := Spent{
		Run: s.Run, Turns: s.Turns, Calls: s.Calls, InnerTurns: s.InnerTurns, InnerCalls: s.InnerCalls,
		Usage: s.Usage, ToolUsage: s.ToolUsage, Elapsed: time.Duration(s.ElapsedNS),
	}
	if s.Cost != nil {
		v.Cost, v.CostKnown = *s.Cost, !s.CostPartial
	}
	return v
}

type body struct {
	Text      string         `json:"text"`
	Tools     []tool         `json:"tools"`
	Withdrawn []string       `json:"withdrawn"`
	Role      string         `json:"role"`
	Blocks    []part         `json:"blocks"`
	CallID    string         `json:"call_id"`
	Index     int            `json:"index"`
	Tool      string         `json:"tool"`
	Input     jsontext.Value `json:"input"`
	InputText string         `json:"input_text"`
	State     string         `json:"state"`
	Ran       ran            `json:"ran"`
	Note      string         `json:"note"`
	Deferred  bool           `json:"deferred"`
	Result    []part         `json:"result"`
	IsError   bool           `json:"is_error"`
	Child     []string       `json:"child"`
	Title     string         `json:"title"`
	Heads     []string       `json:"heads"`
	Summary   jsontext.Value `json:"summary"`
	Replaced  []string       `json:"replaced"`
	Agent     string         `json:"agent"`
	Reason    string         `json:"reason"`
	Detail    string         `json:"detail"`
	Name      string         `json:"name"`
	JSON      jsontext.Value `json:"json"`
	JSONText  string         `json:"json_text"`
}

type tool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Schema      jsontext.Value `json:"schema"`
	SchemaText  string         `json:"schema_text"`
	Extra       struct {
		API      string         `json:"api"`
		JSON     jsontext.Value `json:"json"`
		JSONText string         `json:"json_text"`
	} `json:"extra"`
}

// Parse reads the saved form written by [Node.Append]. resolve returns the node with an ID, or nil if no such node was
// read before. The node is written back unchanged, byte for byte. Parse does not retain line, and takes memory in
// proportion to it.
//
// Every error has ErrParse in its chain. An error in a field is a *FieldError. A missing parent has ErrParent in its
// chain too.
func Parse(line []byte, resolve func(ID) *Node) (*Node, error) {
	n, err := parse(line, resolve)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrParse, err)
	}
	return n, nil
}

func parse(line []byte, resolve func(ID) *Node) (*Node, error) {
	line = bytes.TrimSpace(line)
	if n := parsePlain(line, resolve); n != nil {
		return n, nil
	}
	return parseAny(line, resolve)
}

// parseAny reads a line in any form. The node keeps a copy of it.
func parseAny(line []byte, resolve func(ID) *Node) (*Node, error) {
	saved := string(line)
	if err := checkLine(saved); err != nil {
		return nil, err
	}
	e, err := decode(line)
	if err != nil {
		return nil, fieldError(e.ID, "", err)
	}

	// Keep the line to write the node back byte for byte.
	n := newNode()
	n.line.set(saved)
	_ = n.setTime(e.Time) // a time that was read can be written
	if n.id, err = parseID(e.ID); err != nil {
		return nil, fieldError(e.ID, "id", err)
	}

	if e.Parents == nil { // an empty array is a root
		return nil, fieldError(e.ID, "parents", errMissing)
	}
	if e.Kind == "" {
		return nil, fieldError(e.ID, "kind", errMissing)
	}

	parents, err := lookup(e.Parents, resolve)
	if err != nil {
		return nil, fieldError(e.ID, "parents", err)
	}
	if err := n.adopt(parents); err != nil {
		return nil, fieldError(e.ID, "parents", err)
	}

	if n.payload, err = e.payload(n, resolve); err != nil {
		return nil, fieldError(e.ID, "body", err)
	}

	// A file may hold an invalid payload: check it like a new one.
	if n.payload, err = restored(n.payload); err != nil {
		return nil, fieldError(e.ID, "body", err)
	}
	if n.payload, err = e.informed(n); err != nil {
		return nil, fieldError(e.ID, "info", err)
	}

	n.setMeta(e.Meta)

	// Anybody can write the mark into a file. It counts only for a node without content.
	if e.Redacted {
		n.add().claimed = true
		n.add().erased = n.isBlank()
	}
	if err := n.hold(e); err != nil {
		return nil, err
	}
	return n, nil
}

// checkLine checks a line before it is decoded: the decoder recurses, and the saved form is one line.
func checkLine(line string) error {
	if d := jsonx.Depth(content.JSON(line)); d > maxDepth {
		return fmt.Errorf("%w: it nests %d deep; the limit is %d", content.ErrJSON, d, maxDepth)
	}
	if strings.ContainsAny(line, "\n\r") {
		return errors.New("it spans several lines")
	}
	return nil
}

// hold keeps the checksum of a line. A node without one is read, and cannot be checked.
func (n *Node) hold(e envelope) error {
	if e.Sum == "" {
		return nil
	}
	held, err := parseHash(e.Sum)
	if err != nil {
		return fieldError(e.ID, "sum", err)
	}
	n.hashes.Store(&hashes{sum: &held})
	return nil
}

// restored checks a payload from a file. It does not check an unknown payload.
func restored(p Payload) (Payload, error) {
	if _, unknown := p.(Unknown); unknown {
		return p, nil
	}
	return checked(p)
}

// informed returns n's payload with the fields of the info.
func (e envelope) informed(n *Node) (Payload, error) {
	i, read := e.Info, n.payload
	switch p := n.Payload().(type) {
	case Message:
		p.Answer = Answer{API: i.API, Model: i.Model, ResponseID: i.ResponseID, Stop: content.Stop(i.Stop), Usage: i.Usage,
			Latency: time.Duration(i.LatencyNS), Retries: i.Retries, Details: write.Either[content.JSON](i.Details, i.DetailsText)}
		if i.Seen != "" {
			seen, err := parseHash(i.Seen)
			if err != nil {
				return nil, inField("seen", err)
			}
			p.Answer.Seen = seen
		}
		read = p

	case ToolExecution:
		full, err := n.parts("full", i.Full)
		if err != nil {
			return nil, err
		}

		// A file may give a time in another zone.
		p.Started, p.Ended, p.Usage, p.Full = i.Started.UTC(), i.Ended.UTC(), i.Usage, full
		if !p.State.Unfinished() { // the body has them otherwise
			p.Ran, p.Note, p.Deferred = i.Ran.value(), i.Note, i.Deferred
		}
		p.Decided, p.Spent = Decided{By: i.Decided.By, At: i.Decided.At.UTC(), Rule: i.Decided.Rule}, i.Spent.value()
		p.Details = write.Either[content.JSON](i.Details, i.DetailsText)
		read = p

	case RunStart:
		l := i.Limits
		p.Run, p.Version = i.Run, i.Version
		p.Limits = RunLimits{Turns: l.Turns, Calls: l.Calls, Tokens: l.Tokens, Cost: l.Cost, Time: time.Duration(l.TimeNS)}
		read = p
	case StopReason:
		p.Turns, p.ToolCalls, p.Usage, p.Elapsed = i.Turns, i.ToolCalls, i.Usage, time.Duration(i.ElapsedNS)
		p.ToolUsage = i.ToolUsage

		// Without the member the cost is unknown; 0 is a known cost.
		if i.Cost != nil {
			p.Cost, p.CostKnown = *i.Cost, !i.CostPartial
		}
		read = p
	}

	// A file may hold values that New refuses.
	return read, checkInfo(read)
}

// fieldError returns err as an error in a field of the node. Text from the file is cut if it is too long.
func fieldError(id, field string, err error) error {
	id = safetext.Cut(id, 80)

	// The field of an inner error is relative to this one.
	var inner *FieldError
	if errors.As(err, &inner) {
		return &FieldError{ID: id, Field: field + "/" + inner.Field, Err: inner.Err}
	}

	// The decoder gives the position in the JSON as a pointer.
	var semantic *json.SemanticError
	if errors.As(err, &semantic) && semantic.JSONPointer != "" {
		field += string(semantic.JSONPointer)
	}
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) && syntactic.JSONPointer != "" {
		field += string(syntactic.JSONPointer)
	}

	if field = strings.TrimPrefix(field, "/"); field == "" {
		field = "line"
	}
	return &FieldError{ID: id, Field: safetext.Cut(field, 200), Err: err}
}

// parseID parses an ID. It accepts only Plait's own form of IDs.
func parseID(text string) (ID, error) {
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text {
		return ID{}, fmt.Errorf("%s is not a UUID in lower-case hexadecimal with hyphens", safetext.Quote(text, 80))
	}
	return id, nil
}

// lookup returns the nodes with these IDs.
func lookup(ids []string, resolve func(ID) *Node) ([]*Node, error) {
	nodes := make([]*Node, len(ids))
	for i, text := range ids {
		id, err := parseID(text)
		if err != nil {
			return nil, err
		}
		if nodes[i] = resolve(id); nodes[i] == nil {
			return nil, fmt.Errorf("%w: %s", ErrParent, text)
		}
	}
	return nodes, nil
}

// payload returns the payload from the body. The parents of n must be set.
func (e envelope) payload(n *Node, resolve func(ID) *Node) (Payload, error) {
	if !known(e.Kind) {
		return Unknown{name: e.Kind, body: content.JSON(e.unknown)}, nil
	}
	if e.Body == nil {
		return nil, errMissing
	}

	b := e.Body
	switch e.Kind {
	case "system":
		return System{Name: b.Name, Text: b.Text}, nil
	case "tools":
		return b.defs(), nil
	case "message":
		blocks, err := n.parts("blocks", b.Blocks)
		return Message{Role: content.Role(b.Role), Blocks: blocks}, err

	case "tool_execution":
		child, err := lookup(b.Child, resolve)
		if err != nil {
			return nil, &FieldError{Field: "child", Err: err}
		}
		result, err := n.parts("result", b.Result)
		e := ToolExecution{CallID: b.CallID, Index: b.Index, Tool: b.Tool, Input: write.Either[content.JSON](b.Input, b.InputText),
			State: ExecutionState(b.State), Result: result, IsError: b.IsError, Child: ListOf(child...)}
		if e.State.Unfinished() {
			e.Ran, e.Note, e.Deferred = b.Ran.value(), b.Note, b.Deferred
		}
		return e, err

	case "sub_graph":
		heads, err := lookup(b.Heads, resolve)
		if err != nil {
			return nil, &FieldError{Field: "heads", Err: err}
		}

		// The summary is a text here and a list of blocks in a compaction, so it is decoded by the kind.
		var summary string
		if b.Summary != nil {
			err = json.Unmarshal(b.Summary, &summary)
		}
		return SubGraph{Title: b.Title, CallID: b.CallID, Heads: ListOf(heads...), Summary: summary}, err

	case "compaction":
		return b.compaction()
	case "run_start":
		return RunStart{Agent: b.Agent}, nil
	case "stop_reason":
		return StopReason{Reason: content.Stop(b.Reason), Detail: b.Detail}, nil
	case "custom":
		return Custom{Name: b.Name, JSON: write.Either[content.JSON](b.JSON, b.JSONText)}, nil
	}
	panic("node: a kind that is known and that payload does not read")
}

func known(kind string) bool {
	switch kind {
	case "system", "tools", "message", "tool_execution", "sub_graph", "compaction", "run_start", "stop_reason",
		"custom":
		return true
	}
	return false
}

func (b body) defs() Tools {
	defs := make([]content.Tool, len(b.Tools))
	for i, t := range b.Tools {
		defs[i] = content.Tool{Name: t.Name, Description: t.Description, Schema: write.Either[content.JSON](t.Schema, t.SchemaText),
			Extra: content.Extra{API: t.Extra.API, JSON: write.Either[content.JSON](t.Extra.JSON, t.Extra.JSONText)}}
	}
	return Tools{Defs: ListOf(defs...), Withdrawn: ListOf(b.Withdrawn...)}
}

func (b body) compaction() (Payload, error) {
	var c Compaction
	if b.Summary != nil {
		if err := json.Unmarshal(b.Summary, &c.Summary); err != nil {
			return nil, err
		}
	}

	ids := make([]ID, len(b.Replaced))
	for i, text := range b.Replaced {
		id, err := parseID(text)
		if err != nil {
			return nil, &FieldError{Field: "replaced", Err: err}
		}
		ids[i] = id
	}
	c.Replaced = ListOf(ids...)
	return c, nil
}

// part is an element of a saved list of blocks: a block, or a reference to the result of a parent.
type part struct {
	block    content.Block
	resultOf *int
	err      error
}

// UnmarshalJSON keeps an error in the part, to report it later with its position.
func (p *part) UnmarshalJSON(saved []byte) error {
	*p = part{}
	if p.resultOf, p.err = reference(saved); p.resultOf == nil && p.err == nil {
		p.block, p.err = parseBlock(saved)
	}
	return nil
}

// reference returns the index in a saved reference to a result, or nil for a block. A block of an unknown type may have
// a member result_of of its own, with any value.
func reference(saved []byte) (resultOf *int, err error) {
	// Most blocks are no references: do not parse them twice.
	if !bytes.Contains(saved, []byte(`"result_of"`)) {
		return nil, nil
	}

	var ref struct {
		Type     string         `json:"type"`
		ResultOf jsontext.Value `json:"result_of"`
	}
	if err := json.Unmarshal(saved, &ref); err != nil || ref.Type != "tool_result" || ref.ResultOf == nil {
		return nil, err
	}
	if err := json.Unmarshal(ref.ResultOf, &resultOf); err != nil {
		return nil, inField("result_of", err)
	}
	return resultOf, nil
}

// parts returns the blocks in a field of the body. It reads the form written by appendShared.
func (n *Node) parts(field string, parts []part) (content.Blocks, error) {
	list := make([]content.Block, len(parts))
	for i, p := range parts {
		if p.resultOf != nil {
			p.block, p.err = n.resultOf(*p.resultOf)
		}
		if p.err != nil {
			return content.Blocks{}, fieldError("", field+"/"+strconv.Itoa(i), p.err)
		}
		list[i] = p.block
	}
	return content.Of(list...)
}

func (n *Node) resultOf(i int) (content.Block, error) {
	if parents := n.parents(); i >= 0 && i < len(parents) {
		if e, ok := parents[i].Payload().(ToolExecution); ok {
			return e.Answer(), nil
		}
	}
	return nil, fmt.Errorf("result_of %d names no parent that is a tool execution", i)
}
