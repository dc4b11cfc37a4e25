package node

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/goccy/go-json/jsontext"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx/plain"
)

// unread is the payload of a node that is decoded when its content is first used. [Node.Payload] does not return it.
//
// The ID, the parents, the kind and the time of such a node are set. Its other fields are in the decoded
// node.
type unread struct {
	Unknown // the kind, and the whole line in place of a body
	failed  func(*Node, error)
	node    atomic.Pointer[Node] // nil until the line is decoded
}

// ParseLazy is [Parse] for a node that may not be used in full. It reads the ID, the parents, the kind and the
// time, and decodes the rest of the line when it is first needed. This holds for messages and tool executions in
// the form written by [Node.Append]. ParseLazy decodes other lines at once, and returns the same errors as Parse for
// them.
//
// If a line cannot be decoded later, failed is called with the node and the error of Parse. The node then has a payload
// of type [Unknown], and is written back unchanged. failed may be called more than once for a node, and on any
// goroutine that uses a node.
//
// The line may hold line breaks; they are removed when it is decoded. The node refers to line, so line must not be
// changed after the call. The node is safe for concurrent use, as any node.
func ParseLazy(line []byte, resolve func(ID) *Node, failed func(*Node, error)) (*Node, error) {
	line = bytes.TrimSpace(line)
	if n := parseEnvelope(line, resolve, failed); n != nil {
		return n, nil
	}

	// Any other line is decoded now.
	n, err := parseLines(line, resolve)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrParse, err)
	}
	return n, nil
}

// parseEnvelope reads the beginning and the end of a line. It returns nil for a line that must be decoded at once: a
// line in another form, or one that may have a child conversation, because the graph needs its heads.
func parseEnvelope(line []byte, resolve func(ID) *Node, failed func(*Node, error)) *Node {
	if len(line) < sumTail {
		return nil
	}

	both := &struct { // one allocation for both
		node Node
		unread
	}{}
	n, u := &both.node, &both.unread

	// The envelope has no strings of free text, so ReadTokens is enough.
	r := plain.ReadTokens(line)
	execution := n.readEnvelope(&r, resolve)
	end := plain.ReadTokens(line[len(line)-sumTail:])
	readSum(&end)
	if r.Failed() || !end.Done() {
		return nil
	}

	// Only executions can have a child conversation. A text with the word is decoded at once too, which does no harm.
	u.kind, u.failed = Message{}.Kind(), failed
	if execution {
		if bytes.Contains(line, []byte(`"child"`)) {
			return nil
		}
		u.kind = ToolExecution{}.Kind()
	}
	u.body = content.JSON(plain.Text(line))
	n.payload = u
	return n
}

// whole returns the node with all fields set: n itself, or the decoded node of an unread n.
func (n *Node) whole() *Node {
	if u, is := n.payload.(*unread); is {
		return u.decoded(n)
	}
	return n
}

// decoded returns the node decoded from the line of n.
func (u *unread) decoded(n *Node) *Node {
	if whole := u.node.Load(); whole != nil {
		return whole
	}

	// The parents were found when the envelope was read. A node needs no others, because it has no child conversation.
	whole, err := parseLines(plain.Bytes(string(u.body)), n.parent)
	if err == nil && whole.Children().Len() > 0 {
		err = errors.New("the name of a member is written with escapes") // no program is known to write that
	}
	if err != nil {
		u.failed(n, fmt.Errorf("%w: %w", ErrParse, err))
		whole = n.unreadable(u)
	}

	// Another goroutine may have decoded the same line. All callers get the same node.
	u.node.CompareAndSwap(nil, whole)
	return u.node.Load()
}

// Model returns the name of the model in the node's Answer, or "". It is quick for a node of [ParseLazy] that is not
// decoded yet.
func (n *Node) Model() string {
	if u, is := n.payload.(*unread); is && u.node.Load() == nil {
		if model, known := u.model(); known {
			return model
		}
	}
	m, _ := n.Message()
	return m.Answer.Model
}

// model finds the model in the line of a response: 0.3 µs, where decoding a line of 2 KB takes 3. It reports whether it
// is known.
func (u *unread) model() (model string, known bool) {
	line := string(u.body)
	if !strings.Contains(line, `"model":`) {
		return "", true
	}

	// The body may have an object of this name too. It does not end at the end of the line, so reading it fails below.
	const info = `]},"info":{`
	at := strings.LastIndex(line, info)
	if at < 0 {
		return "", false
	}
	r := plain.Read(plain.Bytes(line[at+len(info):]))
	a := plainAnswer(&r)
	readSum(&r)
	return a.Model, r.Done()
}

// parseLines is parse for JSON that may span several lines.
func parseLines(line jsontext.Value, resolve func(ID) *Node) (*Node, error) {
	if bytes.ContainsAny(line, "\n\r") {
		line = line.Clone()
		if err := line.Compact(); err != nil {
			return nil, err
		}
	}
	return parse(line, resolve)
}

// parent returns the parent with that ID, or nil.
func (n *Node) parent(id ID) *Node {
	for _, p := range n.parents() {
		if p.id == id {
			return p
		}
	}
	return nil
}

// unreadable returns n with its line and without content.
func (n *Node) unreadable(u *unread) *Node {
	whole := &Node{id: n.id, seconds: n.seconds, nanos: n.nanos, depth: n.depth, first: n.first, rare: n.rare}
	whole.payload = Unknown{kind: u.kind, body: "null"}
	whole.line.set(string(u.body))
	return whole
}
