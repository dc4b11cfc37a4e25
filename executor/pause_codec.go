package executor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// savedVersion is the version of the formats written by this package, and the only one it reads. Version 1 held the
// state of a pause, which is in the conversation now.
const savedVersion = 2

const (
	maxSaved     = 64 << 20 // bytes of a continuation or a task
	maxNested    = 512      // nesting of one; arguments nested deeper than 256 are written as a string
	maxAttribute = 200      // bytes of an attribute
)

// CodecError reports an invalid member of a [Continuation], a [ToolTask] or a [Reply]: every error about writing or
// reading one is a *CodecError. An invalid Continuation causes the same errors when it is written as when it is read.
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

// Unwrap returns the reason.
func (e *CodecError) Unwrap() error { return e.Err }

// Reasons for refusing a member.
var (
	errUTF8     = errors.New("it is not UTF-8")
	errTooLarge = fmt.Errorf("it is larger than %d bytes", maxSaved)
	errNoTime   = errors.New("it is not a time in the form of RFC 3339")
	errNoTask   = errors.New("no call waits for a result that somebody may bring now")
)

// ContinuationCodec writes a [Continuation] as JSON, and reads it. The conversation is saved separately, for example by
// dag.DAG.Save. The zero value writes no attribute.
//
// The output holds keys of calls, and neither arguments nor secrets of the program. Nothing is executed because of it.
type ContinuationCodec struct {
	// Keys names the attributes to write. Each is converted to a string, and cut to 200 bytes. No other attribute is
	// ever written: name IDs, not secrets. Defaults to none.
	Keys []string
}

// Encode returns c as one JSON object on one line, the same bytes for the same c. If Decode would refuse c, Encode
// returns the same *[CodecError].
func (k ContinuationCodec) Encode(c Continuation) ([]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}

	dst := write.Int([]byte{'{'}, "schema_version", savedVersion)
	dst = write.OptString(write.OptString(dst, "run_id", c.Run), "continuation_id", c.ID)
	dst = write.OptString(write.OptString(dst, "parent_continuation_id", c.Parent), "pause_reason", string(c.Reason))
	dst = append(write.Name(dst, "calls"), '[')
	for _, key := range c.Calls {
		dst = write.Quote(write.Comma(dst), key.String())
	}
	return sized(append(appendAttributes(append(dst, ']'), c.Attributes, k.Keys), '}'))
}

// Decode reads the output of Encode. It does not retain data, and its use of memory is proportional to data. All
// attributes in data are read, regardless of Keys, as strings. Unknown members are ignored, as in a saved node. The
// order of members and the space between them do not matter.
//
// Every error is a *[CodecError]. If the version is not 2, its chain holds [dag.ErrVersion]. A continuation of version
// 1 held the state of its pause, which is in the conversation now: run that conversation, and it pauses anew. Decode
// refuses
//
//   - more than 64 MiB,
//   - a missing required member, and a value of the wrong type,
//   - the same name twice in an object,
//   - an unknown pause_reason, and an empty ID,
//   - calls that are not keys, and the same key twice.
func (k ContinuationCodec) Decode(data []byte) (Continuation, error) {
	o, err := readSaved(data)
	if err != nil {
		return Continuation{}, err
	}
	o.version()

	c := Continuation{
		Run: o.OptText("run_id", ""), ID: o.Text("continuation_id"), Parent: o.OptText("parent_continuation_id", ""),
		Reason: content.Stop(o.Text("pause_reason")),
	}
	for i, text := range o.Texts("calls") {
		key, err := node.ParseCallKey(text)
		if err != nil {
			o.Fail("calls", fmt.Errorf("item %d: %w", i, err))
		}
		c.Calls = append(c.Calls, key)
	}
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
	// Run and Continuation identify the pause in which the task was made.
	Run, Continuation string
	// Pending is the call. Its result is a [Reply]: see [Returned], and [Agent.Work], which executes it.
	Pending dag.Pending
	// Attributes holds the attributes of the run named by the codec's Keys.
	Attributes map[string]string
}

// ToolTaskCodec writes the deferred calls of a paused conversation as tasks for workers: JSON, one object for each call.
// The zero value writes no attribute.
//
// A task holds the call's arguments unchanged. They may contain anything from the conversation: tasks are as sensitive
// as the conversation, and do not belong in a log.
type ToolTaskCodec struct {
	// Keys names the attributes to write, as in [ContinuationCodec]. Defaults to none.
	Keys []string
}

// Encode returns one task for each call of d that waits for its result and that nobody has begun, in the order of
// dag.DAG.Pending, with the attributes of c. Each is one JSON object on one line, the same bytes for the same d. While
// one call of a message waits for approval, no call of that message has a task, because none may be executed yet. If
// there are no tasks, the error is a *[CodecError].
func (k ToolTaskCodec) Encode(d dag.DAG, attributes map[string]any) ([][]byte, error) {
	pending := d.Pending()
	asks := map[node.ID]bool{} // messages with a call that waits for approval
	for _, p := range pending {
		asks[p.Key.Message] = asks[p.Key.Message] || p.Approval
	}

	var tasks [][]byte
	c := ContinuationOf(d)
	c.Attributes = attributes
	for _, p := range pending {
		if asks[p.Key.Message] || !p.Started.IsZero() {
			continue
		}
		task, err := k.encode(c, p)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, task)
	}
	if len(tasks) == 0 {
		return nil, &CodecError{Field: "calls", Err: errNoTask}
	}
	return tasks, nil
}

// encode returns one call as a task, with the run, the ID and the attributes of c.
func (k ToolTaskCodec) encode(c Continuation, p dag.Pending) ([]byte, error) {
	err := first(checkUTF8("name", p.Tool), checkUTF8("executed_name", p.Call.Name),
		checkObject("arguments", p.Call.Input))
	if err != nil {
		return nil, err
	}
	dst := write.Int([]byte{'{'}, "schema_version", savedVersion)
	dst = write.OptString(write.OptString(dst, "run_id", c.Run), "continuation_id", c.ID)
	dst = write.OptString(write.String(dst, "call", p.Key.String()), "tool_call_id", p.Call.ID)
	dst = write.String(write.String(dst, "name", p.Tool), "executed_name", p.Call.Name)
	dst = write.JSON(dst, "arguments", p.Call.Input)
	if p.Input != p.Call.Input {
		dst = write.JSON(dst, "asked", p.Input)
	}
	dst = write.OptString(write.OptTrue(dst, "approval", p.Approval), "note", p.Note)
	return sized(append(appendAttributes(dst, c.Attributes, k.Keys), '}'))
}

// Decode reads one task written by Encode, under the rules of ContinuationCodec.Decode.
func (k ToolTaskCodec) Decode(data []byte) (ToolTask, error) {
	o, err := readSaved(data)
	if err != nil {
		return ToolTask{}, err
	}
	o.version()

	t := ToolTask{Run: o.OptText("run_id", ""), Continuation: o.Text("continuation_id"), Attributes: o.attributes()}
	key, err := node.ParseCallKey(o.Text("call"))
	if err != nil {
		o.Fail("call", err)
	}
	t.Pending = dag.Pending{Key: key, Tool: o.Text("name"), Approval: o.Flag("approval"), Note: o.OptText("note", "")}
	t.Pending.Deferred = !t.Pending.Approval
	t.Pending.Call = Call{
		Name: o.Text("executed_name"), Input: o.arguments("arguments", true), Message: key.Message, Index: key.Index,
		ID: o.OptText("tool_call_id", ""),
	}
	t.Pending.Input = cmp.Or(o.arguments("asked", false), t.Pending.Call.Input)

	if err := o.err(); err != nil {
		return ToolTask{}, err
	}
	if err := first(checkID("continuation_id", t.Continuation), checkObject("arguments", t.Pending.Call.Input)); err != nil {
		return ToolTask{}, err
	}
	return t, nil
}

// check returns an error if c is not valid.
func (c Continuation) check() error {
	err := first(checkUTF8("run_id", c.Run), checkID("continuation_id", c.ID),
		checkUTF8("parent_continuation_id", c.Parent))
	switch {
	case err != nil:
		return err
	case c.Reason != content.StopApproval && c.Reason != content.StopResults:
		return wrong("pause_reason", "it is neither %s nor %s", content.StopApproval, content.StopResults)
	case len(c.Calls) == 0:
		return wrong("calls", "no call waits")
	}

	seen := make(map[node.CallKey]bool, len(c.Calls))
	for i, key := range c.Calls {
		switch path := "calls/" + strconv.Itoa(i); {
		case key.Message == node.ID{} || key.Index < 0:
			return &CodecError{Field: path, Err: jsonx.ErrAbsent}
		case seen[key]:
			return wrong(path, "the call stands here twice")
		}
		seen[key] = true
	}
	return nil
}

func checkObject(field string, input content.JSON) error {
	if !input.IsObject() {
		return &CodecError{Field: field, Err: jsonx.ErrNotObject}
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
	v := o.Int("schema_version")
	if v != savedVersion {
		o.Fail("schema_version", fmt.Errorf("%w: it has version %d, this program reads version %d", dag.ErrVersion, v, savedVersion))
	}
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

// result reads a result, beside other members. Its content is a list of blocks, or a string for one text.
func (o savedObject) result(members ...string) Result {
	o.Only(append(members, "result", "is_error", "terminate", "details", "details_text", "usage", "full")...)
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
