package gocode

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

const (
	// maxNodes is the limit on nodes written as builder steps. A longer function compiles slowly and is not readable.
	maxNodes = 1000
	// maxChain is the limit on steps in one statement.
	maxChain = 40
)

// Write writes a Go file of package fixture. Its function Conversation returns a conversation equal to d according to
// [dag.Equal]: the same nodes with the same content in the same positions. IDs, times, metadata, data reported by
// providers, and refs are not written.
//
//   - Each node is a step of the builder: User, Assistant, CloseTools and so on, or Append if none of these makes it.
//   - A conversation the builder cannot make (with redacted nodes, or kinds of a newer version), and one of more than
//     1,000 nodes, is written in its saved form, and the function reads it.
//   - The file is formatted as by gofmt. Its string literals hold only printable characters.
//   - The same graph gives the same bytes, except in the saved form, because of the IDs.
//
// Write returns the error of d, an error of saving it, or the error of w. Nothing is written before the file is
// complete.
func Write(w io.Writer, d dag.DAG) error {
	if err := d.Err(); err != nil {
		return err
	}

	text, ok := built(d)
	if !ok {
		var err error
		if text, err = read(d); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, text)
	return err
}

// read returns a file that reads the conversation from its saved form.
func read(d dag.DAG) (string, error) {
	// The heads alone: the saved form of d would include its refs and metadata.
	var saved bytes.Buffer
	if err := dag.New().WithHeads(d.Heads()...).Write(&saved); err != nil {
		return "", err
	}

	var b strings.Builder
	b.WriteString(head("strings", "dag"))
	b.WriteString("// Conversation returns " + count(d.Len()) + ", read from the saved form.\n")
	b.WriteString("func Conversation() dag.DAG {\n\td, err := dag.Read(strings.NewReader(strings.Join([]string{\n")
	for line := range strings.SplitSeq(strings.TrimSuffix(saved.String(), "\n"), "\n") {
		b.WriteString("\t\t" + quote(line) + ",\n")
	}
	b.WriteString("\t}, \"\\n\")))\n\tif err != nil {\n\t\tpanic(err)\n\t}\n\treturn d\n}\n")
	return b.String(), nil
}

// head returns the beginning of the file, with imports of the given packages: "strings", or packages of Plait.
func head(packages ...string) string {
	var b strings.Builder
	b.WriteString("package fixture\n\nimport (\n")
	for _, name := range packages {
		if name == "strings" {
			b.WriteString("\t\"strings\"\n\n")
			continue
		}
		b.WriteString("\t\"github.com/plait-dev/plait/" + name + "\"\n")
	}
	b.WriteString(")\n\n")
	return b.String()
}

// built returns a file that builds the conversation step by step, and whether this is possible.
func built(d dag.DAG) (string, bool) {
	nodes := d.WithChildren()
	if len(nodes) > maxNodes {
		return "", false
	}

	g := newGenerator(d, nodes)
	for _, n := range nodes {
		if !g.write(n) {
			return "", false
		}
	}
	result := g.join(d.Heads())
	g.flush()

	// A single statement needs no variable.
	body := g.out.String() + "\treturn " + result + "\n"
	if only, ok := strings.CutPrefix(g.out.String(), "\td0 := "); ok && len(g.names) == 1 && result == "d0" {
		body = "\treturn " + only
	}

	var b strings.Builder
	b.WriteString(head(g.packages()...))
	b.WriteString("// Conversation returns " + count(d.Len()) + ".\nfunc Conversation() dag.DAG {\n" + body + "}\n")
	if g.blocks {
		b.WriteString(blocksFunc)
	}
	if g.ids {
		b.WriteString(idsFunc)
	}
	return b.String(), true
}

const blocksFunc = `
// blocks returns the list of bs.
func blocks(bs ...content.Block) content.Blocks {
	list, err := content.Of(bs...)
	if err != nil {
		panic(err)
	}
	return list
}
`

const idsFunc = `
// ids returns the ids of the nodes of d at these places.
func ids(d dag.DAG, places ...int) node.List[node.ID] {
	nodes := d.Nodes()
	list := make([]node.ID, len(places))
	for i, place := range places {
		list[i] = nodes[place].ID()
	}
	return node.ListOf(list...)
}
`

func count(n int) string {
	if n == 1 {
		return "a conversation of 1 node"
	}
	return fmt.Sprintf("a conversation of %d nodes", n)
}

// generator writes nodes in order, each after the nodes it refers to.
type generator struct {
	out   strings.Builder
	names map[*node.Node]string // the variable for the conversation up to a node
	last  *node.Node            // the last node of the open statement; nil if none is open
	steps int                   // in the open statement

	uses   map[node.ID]int           // the number of nodes and lists of heads that refer to a node
	byID   map[node.ID]*node.Node    // the nodes by ID: a node loaded twice has one name
	phases map[*node.Node]*node.Node // the results messages made by CloseTools; each with the message of its calls
	inside map[*node.Node]bool       // the executions made by CloseTools

	content, node bool // the file needs the package of this name
	blocks, ids   bool // the file calls the function of this name
}

func (g *generator) packages() []string {
	var names []string
	if g.content {
		names = append(names, "content")
	}
	names = append(names, "dag")
	if g.node {
		names = append(names, "node")
	}
	return names
}

func newGenerator(d dag.DAG, nodes []*node.Node) *generator {
	g := &generator{
		names: map[*node.Node]string{}, uses: map[node.ID]int{}, byID: map[node.ID]*node.Node{},
		phases: map[*node.Node]*node.Node{}, inside: map[*node.Node]bool{},
	}

	name := func(heads []*node.Node) {
		for _, h := range heads {
			g.uses[h.ID()]++
		}
	}
	name(d.Heads())
	for _, n := range nodes {
		g.byID[n.ID()] = n
		name(n.Parents())
		name(n.Children().Slice())
	}

	// phase needs complete counts.
	for _, n := range nodes {
		g.phase(n)
	}
	return g
}

// phase records n and the executions before it if CloseTools makes exactly these nodes.
func (g *generator) phase(n *node.Node) {
	if n.NumParents() == 0 || n.Parent(0).NumParents() != 1 {
		return
	}

	// All parents are executions with the same parent, and nothing else refers to them.
	message := n.Parent(0).Parent(0)
	var executions []node.ToolExecution
	for _, p := range n.Parents() {
		e, ok := p.Payload().(node.ToolExecution)
		if !ok || p.NumParents() != 1 || p.Parent(0).ID() != message.ID() || g.uses[p.ID()] != 1 {
			return
		}
		executions = append(executions, e)
	}

	// CloseTools writes its own message. If n has other content, the digests differ.
	made := dag.New().WithHeads(message).CloseTools(executions...).Head()
	if made == nil || made.Digest() != n.Digest() {
		return
	}

	// One step refers to message now, instead of one for each execution.
	g.phases[n] = message
	for _, p := range n.Parents() {
		g.inside[g.byID[p.ID()]] = true
		g.uses[message.ID()]--
	}
	g.uses[message.ID()]++
}

// write writes the step for n, and reports whether there is one.
func (g *generator) write(n *node.Node) bool {
	if g.inside[n] {
		return true
	}

	before := n.Parents()
	if message := g.phases[n]; message != nil {
		before = []*node.Node{message}
	}
	step, ok := g.step(n, dag.New().WithHeads(before...))
	if !ok {
		return false
	}

	// Continue the open statement if n is the only use of its last node. None is open if step had to name other nodes.
	if len(before) == 1 && g.last != nil && g.last.ID() == before[0].ID() && g.uses[g.last.ID()] == 1 &&
		g.steps < maxChain {
		g.out.WriteString(".\n\t\t" + step)
		g.last, g.steps = n, g.steps+1
		return true
	}

	from := g.join(before)
	g.flush()
	g.last, g.steps = n, 1
	fmt.Fprintf(&g.out, "\td%d := %s.\n\t\t%s", len(g.names), from, step)
	return true
}

// flush ends the open statement, and records its variable as the name of its last node.
func (g *generator) flush() {
	if g.last == nil {
		return
	}
	g.names[g.byID[g.last.ID()]] = fmt.Sprintf("d%d", len(g.names))
	g.out.WriteString("\n")
	g.last = nil
}

// join returns an expression for the conversation with the given heads.
func (g *generator) join(heads []*node.Node) string {
	g.flush()
	if len(heads) == 0 {
		return "dag.New()"
	}

	var names []string
	for _, h := range heads {
		names = append(names, g.names[g.byID[h.ID()]])
	}

	if len(names) == 1 {
		return names[0]
	}
	return names[0] + ".Join(" + strings.Join(names[1:], ", ") + ")"
}

// step returns the step to add n to the conversation before it. It tries the readable forms first, and returns the
// first one that makes exactly this node.
func (g *generator) step(n *node.Node, before dag.DAG) (string, bool) {
	if executions := g.executions(n); executions != "" {
		return executions, true
	}

	// Each way also makes the node. Its digest shows whether the step would lose anything.
	for _, way := range []func(*node.Node, dag.DAG) (string, dag.DAG){g.fluent, g.plain} {
		if text, made := way(n, before); text != "" && made.Head() != nil && made.Head().Digest() == n.Digest() {
			return text, true
		}
	}
	return "", false
}

// executions returns the call of CloseTools for n, or "" if another step makes n.
func (g *generator) executions(n *node.Node) string {
	if g.phases[n] == nil {
		return ""
	}
	var list []string
	for _, p := range n.Parents() {
		e := p.Payload().(node.ToolExecution)
		e.CallID, e.Tool, e.Input = "", "", "" // CloseTools takes them from the call
		list = append(list, "\n\t\t\t"+g.execution(e)+",")
	}
	return "CloseTools(" + strings.Join(list, "") + "\n\t\t)"
}

// fluent returns the step a person would write, and the conversation it makes. The step is "" if there is none.
func (g *generator) fluent(n *node.Node, before dag.DAG) (string, dag.DAG) {
	switch p := n.Payload().(type) {
	case node.System:
		if p.Name != "" {
			return call("SetSystem", quote(p.Name), quote(p.Text)), before.SetSystem(p.Name, p.Text)
		}
		return call("System", quote(p.Text)), before.System(p.Text)

	case node.Tools:
		if before.Err() != nil {
			return "", before
		}

		// A step either withdraws tools or declares them. For a node with both, the digests differ and plain is next.
		if p.Defs.Len() == 0 {
			names := p.Withdrawn.Slice()
			return call("WithdrawTools", quoted(names)...), before.WithdrawTools(names...)
		}

		var tools []dag.Tool
		var args []string
		for _, def := range p.Defs.Slice() {
			tools = append(tools, def)
			args = append(args, "\n\t\t\t"+g.definition(def)+",")
		}
		return "Tools(" + strings.Join(args, "") + "\n\t\t)", before.Tools(tools...)

	case node.Message:
		return g.message(p, before)
	case node.SubGraph:
		child := dag.FromNode(n)
		return call("SubGraph", quote(p.Title), g.join(child.Heads())), before.SubGraph(p.Title, child)
	case node.StopReason:
		return call("Stop", quote(string(p.Reason))), before.Stop(p.Reason)
	}
	return "", before
}

// message returns the step for a message. Its first argument is the first text, followed by the other blocks.
func (g *generator) message(m node.Message, before dag.DAG) (string, dag.DAG) {
	list := m.Blocks.Slice()
	if len(list) == 0 {
		return "", before
	}
	if results := m.Blocks.ToolResults(); len(results) == len(list) && m.Role == content.User {
		return call("ToolResults", g.all(list)...), before.ToolResults(results...)
	}

	// A text argument has no place for Extra: such a text stays a block.
	text := ""
	if first, ok := m.Blocks.At(0).(content.Text); ok && first.Text != "" && first.Extra == (content.Extra{}) {
		text, list = first.Text, list[1:]
	}

	args := append([]string{quote(text)}, g.all(list)...)
	if m.Role == content.User {
		return call("User", args...), before.User(text, list...)
	}
	return call("Assistant", args...), before.Assistant(text, list...)
}

// plain returns the Append step for n, and the conversation it makes. The step is "" if a program cannot make n.
func (g *generator) plain(n *node.Node, before dag.DAG) (string, dag.DAG) {
	payload := g.payload(n.Payload(), before)
	if payload == "" {
		return "", before
	}
	return call("Append", payload), before.Append(n.Payload())
}

// call returns a step with its arguments: a single one on the same line, several on a line each.
func call(name string, args ...string) string {
	if len(args) < 2 {
		return name + "(" + strings.Join(args, "") + ")"
	}
	return name + "(" + args[0] + ",\n\t\t\t" + strings.Join(args[1:], ",\n\t\t\t") + ",\n\t\t)"
}
