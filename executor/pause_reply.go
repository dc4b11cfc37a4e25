package executor

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/node"
)

// Reply is what somebody outside replies to a pending call. [Approved], [ApprovedWith] and [Declined] decide about a
// call that needs approval; [Returned] and [Failed] bring the result of a deferred one. The zero value is no reply, and
// is refused.
//
// A reply names its call and holds a fingerprint of what was shown to whoever replied: the tool, the arguments and the note.
// A run refuses it if the conversation shows something else, so that nothing else can be executed by it. Whoever holds
// an approval can have that call executed: take replies from where they cannot be forged.
type Reply struct {
	// Call is the key of the call.
	Call node.CallKey
	// Shown is the fingerprint of what was shown. Only a reply with a result may have none.
	Shown Fingerprint
	// By names who decided, and At says when. They are kept in the execution (node.Decided) as evidence, and change
	// nothing.
	By string
	At time.Time

	kind   replyKind
	input  content.JSON
	reason string
	result Result
}

type replyKind int

const (
	noReply replyKind = iota
	approved
	declined
	returned
)

// Approved approves the call as it was shown.
func Approved(p dag.Pending) Reply { return Reply{Call: p.Key, Shown: Shown(p), kind: approved} }

// ApprovedWith approves the call with other arguments. They are checked against the tool's schema when the call runs.
// If they do not fit, the call fails with an error result for the model; Resume itself is not refused.
func ApprovedWith(p dag.Pending, input content.JSON) Reply {
	r := Approved(p)
	r.input = input
	return r
}

// Declined refuses the call. The model reads the reason. An empty reason becomes "denied by user".
func Declined(p dag.Pending, reason string) Reply {
	return Reply{Call: p.Key, Shown: Shown(p), kind: declined, reason: reason}
}

// Returned is the result of a call that was executed elsewhere.
func Returned(p dag.Pending, result Result) Reply {
	return Reply{Call: p.Key, Shown: Shown(p), kind: returned, result: result}
}

// ReturnedFor is Returned for a program that knows the key of the call alone, such as a worker. It is accepted whatever
// the conversation shows of the call.
func ReturnedFor(call node.CallKey, result Result) Reply {
	return Reply{Call: call, kind: returned, result: result}
}

// Failed is the result of a call that failed elsewhere.
func Failed(p dag.Pending, text string) Reply { return Returned(p, failedWith(text)) }

// FailedFor is Failed as [ReturnedFor] is Returned.
func FailedFor(call node.CallKey, text string) Reply { return ReturnedFor(call, failedWith(text)) }

func failedWith(text string) Result { return Result{Content: content.Words(text), IsError: true} }

// Fingerprint identifies what was shown of a pending call. It is in replies alone, and never in a conversation: whoever
// has it can find erased arguments by guessing.
type Fingerprint [sha256.Size]byte

// fingerprintPrefix names the algorithm in a fingerprint's text.
const fingerprintPrefix = "sha256:"

// String returns "sha256:" and 64 lower-case digits.
func (f Fingerprint) String() string { return fingerprintPrefix + hex.EncodeToString(f[:]) }

// parseFingerprint reads the output of String.
func parseFingerprint(text string) (f Fingerprint, err error) {
	digits, known := strings.CutPrefix(text, fingerprintPrefix)
	if !known || len(digits) != 2*len(f) || strings.ToLower(digits) != digits {
		return f, errors.New(`it is not "sha256:" and 64 lower-case digits`)
	}
	_, err = hex.Decode(f[:], []byte(digits))
	return f, err
}

// Shown returns the fingerprint of what a person or a program is shown of a pending call: its key, the tool, the arguments
// and the note.
func Shown(p dag.Pending) Fingerprint {
	dst := append(append([]byte("plait.shown.v1\x00"), p.Key.String()...), '{')
	dst = write.String(dst, "tool", p.Call.Name)
	dst = write.Form{Canonical: true}.JSON(dst, "input", string(p.Call.Input))
	dst = write.String(dst, "note", p.Note)
	return sha256.Sum256(append(dst, '}'))
}

// IsResult reports whether the reply brings a result, and not a decision.
func (r Reply) IsResult() bool { return r.kind == returned }

// Result returns the result that the reply brings; zero for a decision.
func (r Reply) Result() Result { return r.result }

// decided returns who replied, for the execution.
func (r Reply) decided() node.Decided { return node.Decided{By: r.By, At: r.At} }

// MarshalJSON returns the reply as one JSON object with "call", its key, "shown", a fingerprint, "by" and "at", and
//
//   - "approve":true and, with other arguments, "arguments":{…}
//   - "approve":false and, with a reason, "reason":"…"
//   - "result":[blocks…], with "is_error", "terminate", "details", "usage" and "full" if the result has them.
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
	dst := write.String([]byte{'{'}, "call", r.Call.String())
	if r.Shown != (Fingerprint{}) {
		dst = write.String(dst, "shown", r.Shown.String())
	}
	dst = write.OptString(dst, "by", r.By)
	if !r.At.IsZero() {
		dst = write.String(dst, "at", r.At.UTC().Format(time.RFC3339Nano))
	}

	if r.kind == returned {
		return append(r.result.append(dst), '}'), nil
	}
	dst = strconv.AppendBool(write.Name(dst, "approve"), r.kind == approved)
	return append(write.OptString(write.JSON(dst, "arguments", r.input), "reason", r.reason), '}'), nil
}

// UnmarshalJSON reads the output of MarshalJSON, and also "result":"text". It is strict, because a mistake in a reply
// written by hand could execute a call: an unknown member, one that does not fit the others, and null are a
// *[CodecError]. So is a reply of the former version, which names no call. After an error r is unchanged.
func (r *Reply) UnmarshalJSON(data []byte) error {
	o := savedObject{jsonx.Read(content.JSON(data), maxNested)}
	var read Reply
	if key, err := node.ParseCallKey(o.Text("call")); err == nil {
		read.Call = key
	} else if o.Has("call") {
		o.Fail("call", err)
	}
	if o.Has("shown") {
		shown, err := parseFingerprint(o.Text("shown"))
		if err != nil {
			o.Fail("shown", err)
		}
		read.Shown = shown
	}

	read, err := o.reply(read, "call", "shown")
	if err == nil {
		*r = read
	}
	return err
}

// ReplyTo reads a reply to a call that was shown, as a person or a page writes it: the output of Reply.MarshalJSON
// without "call" and "shown". Its errors are those of UnmarshalJSON.
func ReplyTo(p dag.Pending, data []byte) (Reply, error) {
	o := savedObject{jsonx.Read(content.JSON(data), maxNested)}
	return o.reply(Reply{Call: p.Key, Shown: Shown(p)})
}

// reply completes a reply with what was decided. members are those that were read before.
func (o savedObject) reply(read Reply, members ...string) (Reply, error) {
	read.By, read.At = o.OptText("by", ""), o.time("at")
	members = append(members, "by", "at")

	// o.Only refuses all other members, so that a misspelled one is not ignored.
	switch {
	case o.Has("approve") && o.Flag("approve"):
		o.Only(append(members, "approve", "arguments", "arguments_text")...)
		read.kind, read.input = approved, o.arguments("arguments", false)
	case o.Has("approve"):
		o.Only(append(members, "approve", "reason")...)
		read.kind, read.reason = declined, o.OptText("reason", "")
	default:
		read.kind, read.result = returned, o.result(members...)
	}

	if err := o.err(); err != nil {
		return Reply{}, err
	}
	if err := read.check(); err != nil {
		return Reply{}, err
	}
	return read, nil
}

// check returns an error if r is not valid, or cannot be written.
func (r Reply) check() error {
	switch {
	case r.kind == noReply:
		return wrong("", "it is no reply")
	case r.Call.Message == node.ID{} || r.Call.Index < 0:
		return wrong("call", "it names no call")
	case r.Shown == Fingerprint{} && r.kind != returned:
		return wrong("shown", "a decision needs the digest of what was shown")
	case r.input != "" && !r.input.IsObject():
		return &CodecError{Field: "arguments", Err: errors.New("they are no JSON object")}
	case r.result.Child.Len() > 0:
		return wrong("result", "a conversation, its Child, cannot be sent")
	}

	// RFC 3339 has four digits for the year.
	if y := r.At.UTC().Year(); y < 0 || y > 9999 {
		return &CodecError{Field: "at", Err: errNoTime}
	}

	// valid checks Full too, but does not name it as the member.
	if err := first(checkUTF8("by", r.By), checkUTF8("reason", r.reason)); err != nil {
		return err
	}
	if err := holdable(r.result.Full); err != nil {
		return &CodecError{Field: "full", Err: err}
	}
	if err := r.result.valid(); err != nil {
		return &CodecError{Field: "result", Err: err}
	}
	return nil
}

// unfit returns the error of check about a reply, with its call.
func (r Reply) unfit() error {
	err := r.check()
	var wrong *CodecError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Field != "":
		return r.refuse(ErrReply, "%s: %w", wrong.Field, wrong.Err)
	case wrong != nil:
		err = wrong.Err
	}
	return r.refuse(ErrReply, "%w", err)
}

// refuse returns a *ResumeError about the call of the reply.
func (r Reply) refuse(kind error, format string, args ...any) error {
	e := &ResumeError{Kind: kind, Call: r.Call}
	if format != "" {
		e.Err = fmt.Errorf(format, args...)
	}
	return e
}
