package executor

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-json/jsontext"
	"github.com/google/uuid"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/wire"
	"github.com/plait-dev/plait/node"
)

// savedVersion is the version of what this package writes, and the only one that it reads.
const savedVersion = 1

const (
	mostSaved     = 64 << 20 // bytes of a continuation or a task
	mostNested    = 512      // how deep one may nest; arguments that nest deeper than 256 are written as a string
	mostAttribute = 200      // bytes of an attribute
)

var (
	// ErrCodec is in the chain of every error about a [Continuation], a [ToolTask] or a [Reply] that cannot be written
	// or read.
	ErrCodec = errors.New("cannot be written or read")
	// ErrVersion marks data that another version of Plait wrote; a [VersionError] names the version. It is
	// dag.ErrVersion.
	ErrVersion = dag.ErrVersion
)

// CodecError names the member of a saved continuation, task or reply that is wrong. A Continuation that is not valid
// has the same errors before it is written as after it was read.
type CodecError struct {
	// Field is the path of the member, such as "pending/0/index"; "" where it is the whole.
	Field string
	Err   error
}

// Error names the member. It is safe to print, whatever was read.
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

// Reasons why a member is refused.
var (
	errMissing   = errors.New("it is missing")
	errNoText    = errors.New("it is no string")
	errNoInteger = errors.New("it is no integer that fits")
	errNoFlag    = errors.New("it is neither true nor false")
	errNoObject  = errors.New("it is no JSON object")
	errNegative  = errors.New("it is negative")
	errUTF8      = errors.New("it is not UTF-8")
	errTooLarge  = fmt.Errorf("it is larger than %d bytes", mostSaved)
	errApproval  = errors.New("the run waits for approval: no result can be brought yet")
)

// ContinuationCodec writes a [Continuation] as JSON, and reads it. The conversation is saved beside it, by dag.DAG.Save
// say. The zero value writes no attribute.
//
// What is written is no secret of the program's, but the calls' arguments are what they are: keep it as safe as the
// conversation. And whoever can change it decides what is executed: let it come back from a store of your own, not from
// a browser.
type ContinuationCodec struct {
	// Keys names the attributes that are written. Each is turned into a string, and cut to 200 bytes. Nothing else of
	// the attributes is ever written: name ids, not secrets. Defaults to none.
	Keys []string
}

// Encode returns c as one JSON object on one line, the same bytes for the same c. Of the totals, Reason is that of the
// pause, and Detail is not written.
//
// A c that Decode would refuse is not written: the error is the same *[CodecError]. A run's own continuations are
// valid, except those with a name or an id that is not UTF-8, which a hook can make.
func (k ContinuationCodec) Encode(c Continuation) ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	dst := appendInt([]byte{'{'}, "schema_version", savedVersion)
	dst = content.AppendString(content.AppendString(dst, "run_id", c.Run), "continuation_id", c.ID)
	dst = content.AppendString(content.AppendString(dst, "parent_continuation_id", c.Parent), "pause_reason", string(c.Reason))
	dst = content.AppendRaw(content.AppendString(dst, "message_id", c.Message.String()), "pending")
	dst = append(dst, '[')
	for i, p := range c.Pending {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = p.append(dst)
	}
	dst = appendTotals(append(dst, ']'), c.Totals)
	return sized(append(appendAttributes(dst, c.Attributes, k.Keys), '}'))
}

// Decode reads what Encode wrote. It keeps nothing of data, and takes memory in proportion to it. All attributes that
// stand there are read, whatever Keys says; they are strings.
//
// Members that it does not know are left out, as they are in a saved node; their order and the space between them do
// not count. Every error is a *[CodecError], and a version that is not 1 a *[VersionError] in its chain. Refused are:
// more than 64 MiB, a required member that is missing, a value of another type, a name twice in an object, a
// pause_reason that is none, a message_id that is no node's, ids that are empty, and in pending an id twice, indexes
// that do not ascend, arguments that are no JSON object, and calls that do not wait for what pause_reason says.
func (k ContinuationCodec) Decode(data []byte) (Continuation, error) {
	var c Continuation
	in := &reading{}
	o := in.whole(data)
	o.version()

	c.Run, c.ID, c.Parent = o.text("run_id"), o.text("continuation_id"), o.textOr("parent_continuation_id", "")
	c.Reason, c.Message = content.Stop(o.text("pause_reason")), o.node("message_id")
	for i, each := range o.list("pending") {
		c.Pending = append(c.Pending, in.object("pending/"+strconv.Itoa(i), each).pending())
		if in.err != nil {
			break // a long list must not take memory for what is refused anyway
		}
	}

	c.Totals = o.object("totals").totals(c.Reason)
	for name, value := range o.attributes() {
		if c.Attributes == nil {
			c.Attributes = map[string]any{}
		}
		c.Attributes[name] = value
	}

	if in.err == nil {
		in.err = c.check()
	}
	if in.err != nil {
		return Continuation{}, in.err
	}
	return c, nil
}

// ToolTask is one call that waits for a result from outside, as a worker gets it.
type ToolTask struct {
	// Run and Continuation say where the result goes: a [Reply] in [Agent.Resume].
	Run, Continuation string
	// Turn is how often the run has asked the model until now.
	Turn int
	// ID names the call in replies.
	ID string
	// Call is the call as it is to be executed.
	Call Call
	// Tool is the tool's name as the model wrote it.
	Tool string
	// Attributes is the attributes of the run that Keys of the codec named.
	Attributes map[string]string
}

// ToolTaskCodec writes the calls of a [Continuation] that waits for results as tasks for workers: JSON, one object for
// each call. The zero value writes no attribute.
//
// A task holds the call's arguments as they are, which may be anything that was said in the conversation: tasks are as
// sensitive as that, and do not belong in a log.
type ToolTaskCodec struct {
	// Keys names the attributes that are written, as in [ContinuationCodec]. Defaults to none.
	Keys []string
}

// Encode returns one task for each pending call, in call order: each one JSON object on one line, the same bytes for
// the same c. Its errors are those of ContinuationCodec.Encode; so is that of a c that waits for approval, because
// nobody is to execute its calls yet.
func (k ToolTaskCodec) Encode(c Continuation) ([][]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.Reason != content.StopResults {
		return nil, &CodecError{Field: "pause_reason", Err: errApproval}
	}
	tasks := make([][]byte, len(c.Pending))
	for i, p := range c.Pending {
		dst := appendInt([]byte{'{'}, "schema_version", savedVersion)
		dst = content.AppendString(content.AppendString(dst, "run_id", c.Run), "continuation_id", c.ID)
		dst = p.appendNames(appendInt(dst, "turn", int64(c.Totals.Turns)))
		dst = content.AppendJSON(wire.AppendString(dst, "executed_name", p.Call.Name), "arguments", p.Call.Input)
		task, err := sized(append(appendAttributes(dst, c.Attributes, k.Keys), '}'))
		if err != nil {
			return nil, err
		}
		tasks[i] = task
	}
	return tasks, nil
}

// Decode reads one task that Encode wrote, under the rules of ContinuationCodec.Decode.
func (k ToolTaskCodec) Decode(data []byte) (ToolTask, error) {
	in := &reading{}
	o := in.whole(data)
	o.version()
	t := ToolTask{Run: o.text("run_id"), Continuation: o.text("continuation_id"), Turn: o.integer("turn")}
	o.text("executed_name")
	p := o.pending()
	t.ID, t.Call, t.Tool, t.Attributes = p.ID, p.Call, p.Tool, o.attributes()
	if in.err == nil {
		in.err = first(checkID("run_id", t.Run), checkID("continuation_id", t.Continuation), checkCount("turn", t.Turn),
			p.check(""))
	}
	if in.err != nil {
		return ToolTask{}, in.err
	}
	return t, nil
}

// MarshalJSON returns the reply as one JSON object:
//
//   - {"approve":true} and {"approve":true,"arguments":{…}},
//   - {"approve":false} and {"approve":false,"reason":"…"},
//   - {"result":[blocks…]}, with "is_error", "terminate", "details", "usage" and "full" where the result has them.
//
// A *[CodecError] is what is no reply: the zero Reply, arguments that are no JSON object, a result that a run would not
// take, and one with a Child, because a conversation cannot be sent: tell of its outcome in Details.
//
// Package encoding/json prints anew what MarshalJSON returns: JSON in arguments, details and the extras of blocks keeps
// its value, but not its bytes.
func (r Reply) MarshalJSON() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	dst := []byte{'{'}
	if r.kind == returned {
		return append(r.result.append(dst), '}'), nil
	}
	dst = strconv.AppendBool(content.AppendRaw(dst, "approve"), r.kind == approved)
	return append(content.AppendString(content.AppendJSON(dst, "arguments", r.input), "reason", r.reason), '}'), nil
}

// UnmarshalJSON reads what MarshalJSON returns, and {"result":"text"} as well. It is strict, because a reply can be
// written by hand and a slip in it lets a call be executed: a member that is unknown, or does not fit the others, is a
// *[CodecError], and r is then as it was before. So is null.
func (r *Reply) UnmarshalJSON(data []byte) error {
	in := &reading{}
	o := in.object("", content.JSON(data))
	var read Reply
	switch {
	case o.has("approve") && o.flag("approve"):
		o.only("approve", "arguments", "arguments_text")
		read = ApprovedWith(o.arguments("arguments", false))
	case o.has("approve"):
		o.only("approve", "reason")
		read = Declined(o.textOr("reason", ""))
	default:
		read = Returned(o.result())
	}
	if in.err == nil {
		in.err = read.check()
	}
	if in.err != nil {
		return in.err
	}
	*r = read
	return nil
}

// check returns what is wrong with c.
func (c Continuation) check() error {
	err := first(checkID("run_id", c.Run), checkID("continuation_id", c.ID), checkUTF8("parent_continuation_id", c.Parent))
	if err != nil {
		return err
	}
	switch {
	case c.Reason != content.StopApproval && c.Reason != content.StopResults:
		return wrong("pause_reason", "it is neither %s nor %s", content.StopApproval, content.StopResults)
	case c.Message == node.ID{}:
		return &CodecError{Field: "message_id", Err: errMissing}
	case len(c.Pending) == 0:
		return wrong("pending", "no call waits")
	}
	if err := c.checkPending(); err != nil {
		return err
	}
	if cost := c.Totals.Cost; cost < 0 || math.IsNaN(cost) || math.IsInf(cost, 0) {
		return wrong("totals/cost", "%v is no cost: it is negative or not finite", cost)
	}
	return first(checkCount("totals/turns", c.Totals.Turns), checkCount("totals/tool_calls", c.Totals.ToolCalls))
}

func (c Continuation) checkPending() error {
	asks, seen, last := false, make(map[string]bool, len(c.Pending)), -1
	for i, p := range c.Pending {
		path := "pending/" + strconv.Itoa(i) + "/"
		if err := p.check(path); err != nil {
			return err
		}
		switch {
		case p.Call.Index <= last:
			return wrong(path+"index", "%d does not come after %d: calls stand in their order, each once", p.Call.Index, last)
		case seen[p.ID]:
			return wrong(path+"tool_call_id", "another call has it")
		case c.Reason == content.StopResults && (p.Approval || !p.Deferred):
			return wrong(path+"deferred", "the run waits for results, and not for that of this call")
		}
		asks, last, seen[p.ID] = asks || p.Approval, p.Call.Index, true
	}
	if c.Reason == content.StopApproval && !asks {
		return wrong("pending", "the run waits for approval, and no call asks for it")
	}
	return nil
}

// check returns what is wrong with one call. Its names may be empty: a model can write that, and an Agent's Handler
// carry it out.
func (p Pending) check(path string) error {
	err := first(checkID(path+"tool_call_id", p.ID), checkCount(path+"index", p.Call.Index), checkUTF8(path+"call_id", p.Call.ID),
		checkUTF8(path+"name", p.Tool), checkUTF8(path+"executed_name", p.Call.Name))
	if err == nil && !p.Call.Input.IsObject() {
		err = &CodecError{Field: path + "arguments", Err: errNoObject}
	}
	return err
}

func (r Reply) check() error {
	switch {
	case r.kind == noReply:
		return wrong("", "it is no reply")
	case r.input != "" && !r.input.IsObject():
		return &CodecError{Field: "arguments", Err: errNoObject}
	case r.result.Child.Len() > 0:
		return wrong("result", "a conversation, its Child, cannot be sent")
	}
	if err := holdable(r.result.Full); err != nil {
		return &CodecError{Field: "full", Err: err}
	}
	if err := r.result.valid(); err != nil {
		return &CodecError{Field: "result", Err: err}
	}
	return nil
}

func wrong(field, format string, args ...any) error {
	return &CodecError{Field: field, Err: fmt.Errorf(format, args...)}
}

// first returns the first error there is.
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
		return &CodecError{Field: field, Err: errMissing}
	}
	return checkUTF8(field, id)
}

// checkUTF8 refuses what would be another name when it is read again.
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
		dst = wire.AppendString(dst, "executed_name", p.Call.Name)
	}
	dst = appendTrue(appendTrue(content.AppendJSON(dst, "arguments", p.Call.Input), "approval", p.Approval), "deferred", p.Deferred)
	return append(content.AppendString(dst, "reason", p.Reason), '}')
}

// appendNames appends the identity of the call.
func (p Pending) appendNames(dst []byte) []byte {
	dst = appendInt(content.AppendString(dst, "tool_call_id", p.ID), "index", int64(p.Call.Index))
	if p.Call.ID != p.ID {
		dst = wire.AppendString(dst, "call_id", p.Call.ID)
	}
	return wire.AppendString(dst, "name", p.Tool)
}

func appendTotals(dst []byte, t node.StopReason) []byte {
	dst = append(content.AppendRaw(dst, "totals"), '{')
	dst = appendInt(appendInt(dst, "turns", int64(t.Turns)), "tool_calls", int64(t.ToolCalls))
	dst = appendUsage(appendUsage(dst, "usage", t.Usage), "tool_usage", t.ToolUsage)
	if t.Cost != 0 || t.CostKnown {
		dst = strconv.AppendFloat(content.AppendRaw(dst, "cost"), t.Cost, 'g', -1, 64)
		dst = appendTrue(dst, "cost_partial", !t.CostKnown)
	}
	if t.Elapsed != 0 {
		dst = appendInt(dst, "elapsed_ns", int64(t.Elapsed))
	}
	return append(dst, '}')
}

// appendAttributes appends those attributes that keys names, sorted by name.
func appendAttributes(dst []byte, attributes map[string]any, keys []string) []byte {
	texts := map[string]string{}
	for _, key := range slices.Sorted(slices.Values(keys)) {
		if value, ok := attributes[key]; ok {
			texts[content.Clean(key)] = attributeText(value)
		}
	}
	if len(texts) == 0 {
		return dst
	}
	dst = append(content.AppendRaw(dst, "attributes"), '{')
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		dst = wire.AppendString(dst, key, texts[key])
	}
	return append(dst, '}')
}

// attributeText is an attribute as a string, cut at a character's boundary.
func attributeText(value any) string {
	return safetext.Head(content.Clean(fmt.Sprint(value)), mostAttribute)
}

func (r Result) append(dst []byte) []byte {
	dst = r.Content.Append(content.AppendRaw(dst, "result"))
	dst = appendTrue(appendTrue(dst, "is_error", r.IsError), "terminate", r.Terminate)
	dst = appendUsage(content.AppendJSON(dst, "details", r.Details), "usage", r.Usage)
	if r.Full.Len() > 0 {
		dst = r.Full.Append(content.AppendRaw(dst, "full"))
	}
	return dst
}

func appendInt(dst []byte, name string, v int64) []byte {
	return strconv.AppendInt(content.AppendRaw(dst, name), v, 10)
}

func appendTrue(dst []byte, name string, v bool) []byte {
	if !v {
		return dst
	}
	return append(content.AppendRaw(dst, name), "true"...)
}

func appendUsage(dst []byte, name string, u content.Usage) []byte {
	if u == (content.Usage{}) {
		return dst
	}
	text, _ := content.ToJSON(u) // integers and a flag cannot fail
	return append(content.AppendRaw(dst, name), text...)
}

// sized refuses what Decode would not read again.
func sized(data []byte) ([]byte, error) {
	if len(data) > mostSaved {
		return nil, &CodecError{Err: errTooLarge}
	}
	return data, nil
}

// reading is one reading of JSON. It keeps the first error; what is read after it means nothing.
type reading struct{ err error }

// savedObject is the members of an object that is read.
type savedObject struct {
	in      *reading
	path    string // goes before a member's name
	members map[string]content.JSON
}

func (in *reading) fail(field string, err error) {
	if in.err == nil {
		in.err = &CodecError{Field: field, Err: err}
	}
}

// whole reads the object that is all of data.
func (in *reading) whole(data []byte) savedObject {
	if len(data) > mostSaved {
		in.fail("", errTooLarge)
		return savedObject{in: in}
	}
	return in.object("", content.JSON(data))
}

// object reads the object that stands at a path. What nests too deep is refused before anything else looks at it.
func (in *reading) object(path string, j content.JSON) savedObject {
	o := savedObject{in: in, path: path, members: map[string]content.JSON{}}
	if path != "" {
		o.path += "/"
	}

	// Depth comes first, so that nothing else looks at what nests too deep.
	if in.err != nil {
		return o
	}
	if deep := j.Depth(); deep > mostNested {
		in.fail(path, fmt.Errorf("it nests %d deep; the limit is %d", deep, mostNested))
		return o
	}
	if !j.IsObject() {
		in.fail(path, errNoObject)
		return o
	}

	list, err := wire.Members(j)
	if err != nil {
		in.fail(path, err)
	}
	for _, m := range list {
		o.members[m.Name] = m.Value
	}
	return o
}

func (o savedObject) fail(name string, err error) { o.in.fail(o.path+name, err) }

func (o savedObject) has(name string) bool {
	_, ok := o.members[name]
	return ok
}

// take returns a member that is required.
func (o savedObject) take(name string) content.JSON {
	if !o.has(name) {
		o.fail(name, errMissing)
	}
	return o.members[name]
}

// only refuses all members but those.
func (o savedObject) only(names ...string) {
	for _, name := range slices.Sorted(maps.Keys(o.members)) {
		if !slices.Contains(names, name) {
			o.fail(name, errors.New("it does not belong there"))
		}
	}
}

func (o savedObject) version() {
	if v := o.integer("schema_version"); v != savedVersion {
		o.fail("schema_version", &VersionError{Version: v, Supported: savedVersion})
	}
}

func (o savedObject) text(name string) string {
	text, ok := wire.Text(o.take(name))
	if !ok {
		o.fail(name, errNoText)
	}
	return text
}

// textOr is text for a member that may be absent.
func (o savedObject) textOr(name, absent string) string {
	if !o.has(name) {
		return absent
	}
	return o.text(name)
}

func (o savedObject) integer64(name string, bits int) int64 {
	n, err := strconv.ParseInt(string(o.take(name)), 10, bits)
	if err != nil {
		o.fail(name, errNoInteger)
	}
	return n
}

func (o savedObject) integer(name string) int { return int(o.integer64(name, strconv.IntSize)) }

func (o savedObject) integerOr0(name string) int64 {
	if !o.has(name) {
		return 0
	}
	return o.integer64(name, 64)
}

// flag is false where it is absent.
func (o savedObject) flag(name string) bool {
	switch o.members[name] {
	case "true":
		return true
	case "false", "":
	default:
		o.fail(name, errNoFlag)
	}
	return false
}

func (o savedObject) node(name string) node.ID {
	text := o.text(name)
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text {
		o.fail(name, errors.New("it is no node's id: a UUID in lower-case hexadecimal with hyphens"))
	}
	return id
}

func (o savedObject) object(name string) savedObject {
	return o.in.object(o.path+name, o.take(name))
}

// list yields the items of a list, as long as nothing is wrong.
func (o savedObject) list(name string) iter.Seq2[int, content.JSON] {
	return func(yield func(int, content.JSON) bool) {
		dec := jsontext.NewDecoder(bytes.NewBufferString(string(o.take(name))))
		if open, err := dec.ReadToken(); err != nil || open.Kind() != '[' {
			o.fail(name, errors.New("it is no list"))
			return
		}
		for i := 0; dec.PeekKind() != ']'; i++ {
			value, err := dec.ReadValue()
			if err != nil || !yield(i, content.JSON(value)) {
				return
			}
		}
	}
}

// json is a value that AppendJSON wrote: as it is, or in a string; "" where it is absent.
func (o savedObject) json(name string) content.JSON {
	if !o.has(name + "_text") {
		return o.members[name]
	}
	if o.has(name) {
		o.fail(name, errors.New("it is there twice, also as a string"))
	}
	return content.JSON(o.text(name + "_text"))
}

// arguments are seen to be an object by check, which asks that of what is written as well.
func (o savedObject) arguments(name string, required bool) content.JSON {
	j := o.json(name)
	switch {
	case j == "" && required:
		o.fail(name, errMissing)
	case j == "" && o.has(name+"_text"):
		o.fail(name, errNoObject)
	}
	return j
}

func (o savedObject) usage(name string) (u content.Usage) {
	if !o.has(name) {
		return u
	}
	in := o.object(name)
	u.Input, u.Output, u.Reasoning = in.integerOr0("input"), in.integerOr0("output"), in.integerOr0("reasoning")
	u.CacheRead, u.CacheWrite = in.integerOr0("cache_read"), in.integerOr0("cache_write")
	u.Incomplete = in.flag("incomplete")
	return u
}

// totals reads the totals of a run. Tokens and time may be negative: servers miscount, and clocks are set back.
func (o savedObject) totals(reason content.Stop) node.StopReason {
	t := node.StopReason{
		Reason: reason, Turns: o.integer("turns"), ToolCalls: o.integer("tool_calls"), Usage: o.usage("usage"),
		ToolUsage: o.usage("tool_usage"), Elapsed: time.Duration(o.integerOr0("elapsed_ns")),
	}
	if o.has("cost") {
		var err error
		if t.Cost, err = strconv.ParseFloat(string(o.members["cost"]), 64); err != nil {
			o.fail("cost", errors.New("it is no number that fits"))
		}
		t.CostKnown = !o.flag("cost_partial")
	}
	return t
}

// pending reads a call.
func (o savedObject) pending() Pending {
	p := Pending{
		ID: o.text("tool_call_id"), Tool: o.text("name"), Approval: o.flag("approval"), Deferred: o.flag("deferred"),
		Reason: o.textOr("reason", ""),
	}
	p.Call = Call{
		Name: o.textOr("executed_name", p.Tool), Input: o.arguments("arguments", true), Index: o.integer("index"),
		ID: o.textOr("call_id", p.ID),
	}
	return p
}

// attributes reads the context; nil where there is none.
func (o savedObject) attributes() map[string]string {
	if !o.has("attributes") {
		return nil
	}
	from := o.object("attributes")
	if len(from.members) == 0 {
		return nil
	}
	texts := make(map[string]string, len(from.members))
	for _, name := range slices.Sorted(maps.Keys(from.members)) {
		texts[name] = from.text(name)
		if len(texts[name]) > mostAttribute {
			from.fail(name, fmt.Errorf("it is longer than %d bytes", mostAttribute))
		}
	}
	return texts
}

// result reads a result. A list is blocks, and a string is a text.
func (o savedObject) result() Result {
	o.only("result", "is_error", "terminate", "details", "details_text", "usage", "full")
	if !o.has("result") {
		o.fail("", errors.New("it has neither approve nor result"))
		return Result{}
	}
	r := Result{
		IsError: o.flag("is_error"), Terminate: o.flag("terminate"), Details: o.json("details"), Usage: o.usage("usage"),
	}
	if text, ok := wire.Text(o.members["result"]); ok {
		r.Content = content.Words(text)
	} else if !strings.HasPrefix(string(o.members["result"]), "[") {
		o.fail("result", errors.New("it is neither a string nor a list of blocks"))
	} else {
		r.Content = o.blocks("result")
	}
	if o.has("full") {
		r.Full = o.blocks("full")
	}
	return r
}

func (o savedObject) blocks(name string) (b content.Blocks) {
	if !strings.HasPrefix(string(o.members[name]), "[") {
		o.fail(name, errors.New("it is no list of blocks"))
	} else if err := b.UnmarshalJSON([]byte(o.members[name])); err != nil {
		o.fail(name, err)
	}
	return b
}
