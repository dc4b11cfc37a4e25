package executor

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// savedVersion is the version of the formats written by this package, and the only one it reads.
const savedVersion = 1

const (
	maxSaved     = 64 << 20 // bytes of a continuation or a task
	maxNested    = 512      // nesting of one; arguments nested deeper than 256 are written as a string
	maxAttribute = 200      // bytes of an attribute
)

var (
	// ErrCodec is in the chain of every error about writing or reading a [Continuation], a [ToolTask] or a [Reply].
	ErrCodec = errors.New("cannot be written or read")
	// ErrVersion marks data written by another version of Plait; a [VersionError] gives the version. It is
	// dag.ErrVersion.
	ErrVersion = dag.ErrVersion
)

// CodecError reports an invalid member of a saved continuation, task or reply. An invalid Continuation causes the same
// errors when it is written as when it is read.
type CodecError struct {
	// Field is the path of the member, such as "pending/0/index": a JSON Pointer (RFC 6901) without its first slash. It
	// is "" for the whole object.
	Field string
	Err   error
}

// Error returns the member and the reason. The text is safe to print, whatever data was read.
func (e *CodecError) Error() string {
	text := "executor: saved: "
	if e.Field != "" {
		text += safetext.Escape(e.Field, 200) + ": "
	}
	return text + safetext.Escape(e.Err.Error(), 1000)
}

// Unwrap returns ErrCodec and the reason.
func (e *CodecError) Unwrap() []error { return []error{ErrCodec, e.Err} }

// VersionError names the version of the data and the version that this program reads. It is a [dag.VersionError].
type VersionError = dag.VersionError

// Reasons for refusing a member.
var (
	errNegative = errors.New("it is negative")
	errUTF8     = errors.New("it is not UTF-8")
	errTooLarge = fmt.Errorf("it is larger than %d bytes", maxSaved)
	errNoTime   = errors.New("it is not a time in the form of RFC 3339")
	errApproval = errors.New("the run waits for approval: no result can be brought yet")
)

// ContinuationCodec writes a [Continuation] as JSON, and reads it. The conversation is saved separately, for example by
// dag.DAG.Save. The zero value writes no attribute.
//
// The output holds none of the program's secrets, but it holds the calls' arguments: protect it like the conversation.
// Anybody able to change it decides which calls are executed: read it from a store of your own, not from a browser.
type ContinuationCodec struct {
	// Keys names the attributes to write. Each is converted to a string, and cut to 200 bytes. No other attribute is
	// ever written: name IDs, not secrets. Defaults to none.
	Keys []string
}

// Encode returns c as one JSON object on one line, the same bytes for the same c. Of the totals, Reason and Detail are
// not written; Decode sets Reason to that of the pause.
//
// If Decode would refuse c, Encode returns the same *[CodecError]. The continuations of a run are valid unless a hook
// gave a call a name or an ID that is not UTF-8.
func (k ContinuationCodec) Encode(c Continuation) ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}

	dst := write.Int([]byte{'{'}, "schema_version", savedVersion)
	dst = write.OptString(write.OptString(dst, "run_id", c.Run), "continuation_id", c.ID)
	dst = write.OptString(write.OptString(dst, "parent_continuation_id", c.Parent),
		"pause_reason", string(c.Reason))
	dst = write.Name(write.OptString(dst, "message_id", c.Message.String()), "pending")

	dst = append(dst, '[')
	for _, p := range c.Pending {
		dst = p.append(write.Comma(dst))
	}

	dst = appendAgents(append(dst, ']'), c.Agents)
	dst = appendInner(appendTotals(dst, c.Totals), c.InnerTurns, c.InnerCalls)
	return sized(append(appendAttributes(dst, c.Attributes, k.Keys), '}'))
}

// Decode reads the output of Encode. It does not retain data, and its use of memory is proportional to data. All
// attributes in data are read, regardless of Keys, as strings. Unknown members are ignored, as in a saved node. The
// order of members and the space between them do not matter.
//
// Every error is a *[CodecError]. If the version is not 1, its chain holds a *[VersionError]. Decode refuses
//
//   - more than 64 MiB,
//   - a missing required member, and a value of the wrong type,
//   - the same name twice in an object,
//   - an unknown pause_reason, a message_id that is not a node ID, and an empty ID,
//   - in pending: the same ID twice, and indexes not in ascending order,
//   - in pending: arguments that are not a JSON object, and a call that contradicts pause_reason,
//   - in agents: a path through a missing sub-agent, and a sub-agent without a pending call.
func (k ContinuationCodec) Decode(data []byte) (Continuation, error) {
	o, err := readSaved(data)
	if err != nil {
		return Continuation{}, err
	}
	o.version()

	var c Continuation
	c.Run, c.ID, c.Parent = o.Text("run_id"), o.Text("continuation_id"), o.OptText("parent_continuation_id", "")
	c.Reason, c.Message = content.Stop(o.Text("pause_reason")), o.node("message_id")
	c.Agents = o.agents()

	// Agents are read first: a call inside one names it by its path.
	paths := pathsOf(c.Agents)
	for call := range o.Objects("pending") {
		p := savedObject{call}.pending()
		p.Path = savedObject{call}.pathOf(paths)
		c.Pending = append(c.Pending, p)
	}

	// The reason is not saved with the totals of a sub-agent. It follows from the pending calls below it.
	asking := c.above(asksApproval)
	for i, a := range c.Agents {
		c.Agents[i].Totals.Reason = stopReason(asking[pathKey(a.Path)])
	}
	c.Totals = savedObject{o.Object("totals")}.totals(c.Reason)
	c.InnerTurns, c.InnerCalls = o.inner()
	for name, value := range o.attributes() {
		if c.Attributes == nil {
			c.Attributes = map[string]any{}
		}
		c.Attributes[name] = value
	}

	// The reader keeps the first error, so one check after all fields is enough.
	if err := o.err(); err != nil {
		return Continuation{}, err
	}
	if err := c.check(); err != nil {
		return Continuation{}, err
	}
	return c, nil
}

// ToolTask is a deferred call in the form sent to a worker.
type ToolTask struct {
	// Run and Continuation identify the pause. Resume it with the result as a [Reply]: see [Agent.Resume].
	Run, Continuation string
	// Turn is the number of requests the run has sent so far.
	Turn int
	// ID identifies the call in replies.
	ID string
	// Call is the call to execute.
	Call Call
	// Tool is the tool's name as the model wrote it.
	Tool string
	// Attributes holds the attributes of the run named by the codec's Keys.
	Attributes map[string]string
}

// ToolTaskCodec writes the deferred calls of a [Continuation] as tasks for workers: JSON, one object for each call. The
// zero value writes no attribute.
//
// A task holds the call's arguments unchanged. They may contain anything from the conversation: tasks are as sensitive
// as the conversation, and do not belong in a log.
type ToolTaskCodec struct {
	// Keys names the attributes to write, as in [ContinuationCodec]. Defaults to none.
	Keys []string
}

// Encode returns one task for each pending call that waits for its result, in call order. Each is one JSON object on
// one line, the same bytes for the same c. While one call of a message waits for approval, no call of that message has
// a task, because none may be executed yet. Its errors are those of ContinuationCodec.Encode. If there are no tasks,
// the error is a *[CodecError] too.
func (k ToolTaskCodec) Encode(c Continuation) ([][]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}

	// One call that asks for approval holds back all calls of its message, that is, all with the same path.
	asks := map[string]bool{}
	for _, p := range c.Pending {
		asks[pathKey(p.Path)] = asks[pathKey(p.Path)] || p.Approval
	}

	var tasks [][]byte
	for _, p := range c.Pending {
		if asks[pathKey(p.Path)] {
			continue
		}
		dst := write.Int([]byte{'{'}, "schema_version", savedVersion)
		dst = write.OptString(write.OptString(dst, "run_id", c.Run), "continuation_id", c.ID)
		dst = p.appendNames(write.Int(dst, "turn", c.Totals.Turns))
		dst = write.JSON(write.String(dst, "executed_name", p.Call.Name), "arguments", p.Call.Input)

		task, err := sized(append(appendAttributes(dst, c.Attributes, k.Keys), '}'))
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, task)
	}
	if len(tasks) == 0 {
		return nil, &CodecError{Field: "pause_reason", Err: errApproval}
	}
	return tasks, nil
}

// Decode reads one task written by Encode, under the rules of ContinuationCodec.Decode.
func (k ToolTaskCodec) Decode(data []byte) (ToolTask, error) {
	o, err := readSaved(data)
	if err != nil {
		return ToolTask{}, err
	}
	o.version()

	t := ToolTask{Run: o.Text("run_id"), Continuation: o.Text("continuation_id"), Turn: o.Int("turn")}
	o.Text("executed_name") // required in a task, but not in a continuation
	p := o.pending()
	t.ID, t.Call, t.Tool, t.Attributes = p.ID, p.Call, p.Tool, o.attributes()

	if err := o.err(); err != nil {
		return ToolTask{}, err
	}
	err = first(checkID("run_id", t.Run), checkID("continuation_id", t.Continuation), checkCount("turn", t.Turn),
		p.check(""))
	if err != nil {
		return ToolTask{}, err
	}
	return t, nil
}

// MarshalJSON returns the reply as one JSON object:
//
//   - {"approve":true} and {"approve":true,"arguments":{…}},
//   - {"approve":false} and {"approve":false,"reason":"…"},
//   - {"result":[blocks…]}, with "is_error", "terminate", "details", "usage" and "full" if the result has them.
//
// It returns a *[CodecError] for the zero Reply, for arguments that are not a JSON object, for a result that a run
// would not accept, and for a result with a Child. A conversation cannot be sent: describe its outcome in Details.
//
// Package encoding/json reformats the output of MarshalJSON: JSON in arguments, details and the extras of blocks keeps
// its value, but not its bytes.
func (r Reply) MarshalJSON() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	dst := []byte{'{'}

	if r.kind == returned {
		return append(r.result.append(dst), '}'), nil
	}
	dst = strconv.AppendBool(write.Name(dst, "approve"), r.kind == approved)
	return append(write.OptString(write.JSON(dst, "arguments", r.input), "reason", r.reason), '}'), nil
}

// UnmarshalJSON reads the output of MarshalJSON, and also {"result":"text"}. It is strict, because a mistake in a reply
// written by hand could execute a call: an unknown member, one that does not fit the others, and null are a
// *[CodecError]. After an error r is unchanged.
func (r *Reply) UnmarshalJSON(data []byte) error {
	o := savedObject{jsonx.Read(content.JSON(data), maxNested)}

	// o.Only refuses all other members, so that a misspelled one is not ignored.
	var read Reply
	switch {
	case o.Has("approve") && o.Flag("approve"):
		o.Only("approve", "arguments", "arguments_text")
		read = ApprovedWith(o.arguments("arguments", false))
	case o.Has("approve"):
		o.Only("approve", "reason")
		read = Declined(o.OptText("reason", ""))
	default:
		read = Returned(o.result())
	}

	if err := o.err(); err != nil {
		return err
	}
	if err := read.check(); err != nil {
		return err
	}
	*r = read
	return nil
}

// check returns an error if c is not valid.
func (c Continuation) check() error {
	err := first(checkID("run_id", c.Run), checkID("continuation_id", c.ID),
		checkUTF8("parent_continuation_id", c.Parent))
	if err != nil {
		return err
	}

	switch {
	case c.Reason != content.StopApproval && c.Reason != content.StopResults:
		return wrong("pause_reason", "it is neither %s nor %s", content.StopApproval, content.StopResults)
	case c.Message == node.ID{}:
		return &CodecError{Field: "message_id", Err: jsonx.ErrAbsent}
	case len(c.Pending) == 0:
		return wrong("pending", "no call waits")
	}

	// The pending calls are checked after the agents, because checkPending needs valid paths.
	if err := c.checkAgents(); err != nil {
		return err
	}
	return first(c.checkPending(), checkTotals("totals", c.Totals),
		checkCount("inner_turns", c.InnerTurns), checkCount("inner_calls", c.InnerCalls))
}

func checkTotals(path string, t node.StopReason) error {
	if cost := t.Cost; cost < 0 || math.IsNaN(cost) || math.IsInf(cost, 0) {
		return wrong(path+"/cost", "%v is no cost: it is negative or not finite", cost)
	}
	return first(checkCount(path+"/turns", t.Turns), checkCount(path+"/tool_calls", t.ToolCalls))
}

// check returns an error if the call is not valid. Names may be empty: a model can write an empty name, and an Agent's
// Handler can execute such a call.
func (p Pending) check(path string) error {
	err := first(checkID(path+"tool_call_id", p.ID), checkCount(path+"index", p.Call.Index),
		checkUTF8(path+"call_id", p.Call.ID), checkUTF8(path+"name", p.Tool),
		checkUTF8(path+"executed_name", p.Call.Name))
	if err == nil && !p.Call.Input.IsObject() {
		err = &CodecError{Field: path + "arguments", Err: jsonx.ErrNotObject}
	}

	// RFC 3339 has four digits for the year.
	if y := p.Started.UTC().Year(); err == nil && (y < 0 || y > 9999) {
		err = &CodecError{Field: path + "started", Err: errNoTime}
	}
	return err
}

// check returns an error if r is not valid, or cannot be written.
func (r Reply) check() error {
	switch {
	case r.kind == noReply:
		return wrong("", "it is no reply")
	case r.input != "" && !r.input.IsObject():
		return &CodecError{Field: "arguments", Err: jsonx.ErrNotObject}
	case r.result.Child.Len() > 0:
		return wrong("result", "a conversation, its Child, cannot be sent")
	}

	// valid checks Full too, but does not name it as the member.
	if err := holdable(r.result.Full); err != nil {
		return &CodecError{Field: "full", Err: err}
	}
	if err := r.result.valid(); err != nil {
		return &CodecError{Field: "result", Err: err}
	}
	return nil
}

// wrong returns a *CodecError about a member.
func wrong(field, format string, args ...any) error {
	return &CodecError{Field: field, Err: fmt.Errorf(format, args...)}
}

// first returns the first error that is not nil.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkID(field, id string) error {
	if id == "" {
		return &CodecError{Field: field, Err: jsonx.ErrAbsent}
	}
	return checkUTF8(field, id)
}

// checkUTF8 returns an error for text that is not UTF-8, because writing it would change it.
func checkUTF8(field, text string) error {
	if !utf8.ValidString(text) {
		return &CodecError{Field: field, Err: errUTF8}
	}
	return nil
}

func checkCount(field string, n int) error {
	if n < 0 {
		return &CodecError{Field: field, Err: errNegative}
	}
	return nil
}

func (p Pending) append(dst []byte) []byte {
	dst = p.appendNames(append(dst, '{'))
	if p.Call.Name != p.Tool {
		dst = write.String(dst, "executed_name", p.Call.Name)
	}
	dst = write.OptTrue(write.OptTrue(write.JSON(dst, "arguments", p.Call.Input), "approval", p.Approval),
		"deferred", p.Deferred)
	dst = write.OptString(appendPath(dst, p.Path), "reason", p.Reason)
	if !p.Started.IsZero() {
		dst = write.String(dst, "started", p.Started.UTC().Format(time.RFC3339Nano))
	}
	return append(dst, '}')
}

// appendPath appends the indexes of the calls in a path. The calls themselves are written with the agents.
func appendPath(dst []byte, path []Call) []byte {
	if len(path) == 0 {
		return dst
	}
	dst = append(write.Name(dst, "path"), '[')
	for _, call := range path {
		dst = strconv.AppendInt(write.Comma(dst), int64(call.Index), 10)
	}
	return append(dst, ']')
}

// appendNames appends the members that identify the call.
func (p Pending) appendNames(dst []byte) []byte {
	dst = write.Int(write.OptString(dst, "tool_call_id", p.ID), "index", p.Call.Index)
	if p.Call.ID != p.ID {
		dst = write.String(dst, "call_id", p.Call.ID)
	}
	return write.String(dst, "name", p.Tool)
}

func appendTotals(dst []byte, t node.StopReason) []byte {
	dst = append(write.Name(dst, "totals"), '{')
	dst = write.Int(write.Int(dst, "turns", t.Turns), "tool_calls", t.ToolCalls)
	dst = write.OptValue(write.OptValue(dst, "usage", t.Usage), "tool_usage", t.ToolUsage)
	if t.Cost != 0 || t.CostKnown {
		dst = strconv.AppendFloat(write.Name(dst, "cost"), t.Cost, 'g', -1, 64)
		dst = write.OptTrue(dst, "cost_partial", !t.CostKnown)
	}
	return append(write.OptInt(dst, "elapsed_ns", t.Elapsed), '}')
}

// appendInner appends the turns and the calls inside tools, if there were any.
func appendInner(dst []byte, turns, calls int) []byte {
	return write.OptInt(write.OptInt(dst, "inner_turns", turns), "inner_calls", calls)
}

// appendAttributes appends the attributes named by keys, sorted by name.
func appendAttributes(dst []byte, attributes map[string]any, keys []string) []byte {
	// Two keys may become equal as UTF-8. The sort decides which one counts, so that the output is always the same.
	texts := map[string]string{}
	for _, key := range slices.Sorted(slices.Values(keys)) {
		if value, ok := attributes[key]; ok {
			texts[safetext.UTF8(key)] = attributeText(value)
		}
	}
	if len(texts) == 0 {
		return dst
	}

	dst = append(write.Name(dst, "attributes"), '{')
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		dst = write.String(dst, key, texts[key])
	}
	return append(dst, '}')
}

// attributeText returns an attribute as a string, cut at the boundary of a character.
func attributeText(value any) string {
	return safetext.Head(safetext.UTF8(fmt.Sprint(value)), maxAttribute)
}

func (r Result) append(dst []byte) []byte {
	dst = r.Content.Append(write.Name(dst, "result"))
	dst = write.OptTrue(write.OptTrue(dst, "is_error", r.IsError), "terminate", r.Terminate)
	dst = write.OptValue(write.JSON(dst, "details", r.Details), "usage", r.Usage)
	if r.Full.Len() > 0 {
		dst = r.Full.Append(write.Name(dst, "full"))
	}
	return dst
}

// sized returns data, or an error if Decode would refuse its size.
func sized(data []byte) ([]byte, error) {
	if len(data) > maxSaved {
		return nil, &CodecError{Err: errTooLarge}
	}
	return data, nil
}

// savedObject reads an object with the values of this package.
type savedObject struct{ jsonx.Reader }

// readSaved reads data as one object.
func readSaved(data []byte) (savedObject, error) {
	if len(data) > maxSaved {
		return savedObject{}, &CodecError{Err: errTooLarge}
	}
	return savedObject{jsonx.Read(content.JSON(data), maxNested)}, nil
}

// err returns the first error of reading as a *CodecError, or nil.
func (o savedObject) err() error {
	if err := o.Err(); err != nil {
		return &CodecError{Field: err.Path, Err: err.Err}
	}
	return nil
}

func (o savedObject) version() {
	if v := o.Int("schema_version"); v != savedVersion {
		o.Fail("schema_version", &VersionError{Version: v, Supported: savedVersion})
	}
}

func (o savedObject) node(name string) node.ID {
	text := o.Text(name)
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text {
		o.Fail(name, errors.New("it is no node's id: a UUID in lower-case hexadecimal with hyphens"))
	}
	return id
}

// time returns an optional time; zero if it is absent.
func (o savedObject) time(name string) time.Time {
	text := o.OptText(name, "")
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		o.Fail(name, errNoTime)
	}
	return at.UTC()
}

// arguments returns the arguments of a call. It does not check for a JSON object: check does so for reading and
// writing.
func (o savedObject) arguments(name string, required bool) content.JSON {
	j := o.JSON(name)
	switch {
	case j == "" && required:
		o.Fail(name, jsonx.ErrAbsent)
	case j == "" && o.Has(name+"_text"): // an empty text
		o.Fail(name, jsonx.ErrNotObject)
	}
	return j
}

func (o savedObject) usage(name string) (u content.Usage) {
	if !o.Has(name) {
		return u
	}
	in := o.Object(name)
	u.Input, u.Output, u.Reasoning = in.OptInt64("input"), in.OptInt64("output"), in.OptInt64("reasoning")
	u.CacheRead, u.CacheWrite = in.OptInt64("cache_read"), in.OptInt64("cache_write")
	u.CacheWriteLong = in.OptInt64("cache_write_long")
	u.Incomplete = in.Flag("incomplete")
	return u
}

// totals reads the totals of a run. Tokens and time may be negative: servers miscount, and clocks are set back. The
// member "cost" is absent if the cost is 0 and not known.
func (o savedObject) totals(reason content.Stop) node.StopReason {
	t := node.StopReason{
		Reason: reason, Turns: o.Int("turns"), ToolCalls: o.Int("tool_calls"), Usage: o.usage("usage"),
		ToolUsage: o.usage("tool_usage"), Elapsed: time.Duration(o.OptInt64("elapsed_ns")),
	}
	if o.Has("cost") {
		t.Cost, t.CostKnown = o.Number("cost"), !o.Flag("cost_partial")
	}
	return t
}

// inner reads the turns and the calls inside tools. A member is absent if it is 0.
func (o savedObject) inner() (turns, calls int) {
	if o.Has("inner_turns") {
		turns = o.Int("inner_turns")
	}
	if o.Has("inner_calls") {
		calls = o.Int("inner_calls")
	}
	return turns, calls
}

// pending reads a call.
func (o savedObject) pending() Pending {
	p := Pending{
		ID: o.Text("tool_call_id"), Tool: o.Text("name"), Approval: o.Flag("approval"), Deferred: o.Flag("deferred"),
		Reason: o.OptText("reason", ""), Started: o.time("started"),
	}
	p.Call = Call{
		Name: o.OptText("executed_name", p.Tool), Input: o.arguments("arguments", true), Index: o.Int("index"),
		ID: o.OptText("call_id", p.ID),
	}
	return p
}

// attributes reads the attributes of a run; nil if there are none.
func (o savedObject) attributes() map[string]string {
	if !o.Has("attributes") {
		return nil
	}
	from := o.Object("attributes")
	if len(from.Members()) == 0 {
		return nil
	}

	texts := make(map[string]string, len(from.Members()))
	for _, m := range from.Members() {
		text, ok := jsonx.Text(m.Value)
		switch {
		case !ok:
			from.Fail(m.Name, jsonx.ErrNotText)
		case len(text) > maxAttribute: // not written by Encode, which cuts them
			from.Fail(m.Name, fmt.Errorf("it is longer than %d bytes", maxAttribute))
		}
		texts[m.Name] = text
	}
	return texts
}

// result reads a result. Its content is a list of blocks, or a string for one text.
func (o savedObject) result() Result {
	o.Only("result", "is_error", "terminate", "details", "details_text", "usage", "full")
	if !o.Has("result") {
		o.Refuse(errors.New("it has neither approve nor result"))
		return Result{}
	}

	r := Result{
		IsError: o.Flag("is_error"), Terminate: o.Flag("terminate"), Details: o.JSON("details"),
		Usage: o.usage("usage"),
	}
	if text, ok := jsonx.Text(o.Value("result")); ok {
		r.Content = content.Words(text)
	} else if !strings.HasPrefix(string(o.Value("result")), "[") {
		o.Fail("result", errors.New("it is neither a string nor a list of blocks"))
	} else {
		r.Content = o.blocks("result")
	}
	if o.Has("full") {
		r.Full = o.blocks("full")
	}
	return r
}

func (o savedObject) blocks(name string) (b content.Blocks) {
	// UnmarshalJSON would read null as an empty list.
	if !strings.HasPrefix(string(o.Value(name)), "[") {
		o.Fail(name, errors.New("it is no list of blocks"))
	} else if err := b.UnmarshalJSON([]byte(o.Value(name))); err != nil {
		o.Fail(name, err)
	}
	return b
}
