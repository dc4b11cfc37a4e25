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
	// maxNodes is how many nodes are written as a chain of the builder's steps. Compilers take their time for longer functions, and
	// nobody reads them.
	maxNodes = 1000
	// maxChain is how many steps stand in one statement.
	maxChain = 40
)

// Write writes a Go file of package fixture whose function Conversation returns a conversation that [dag.Equal] finds equal to d: the
// same nodes with the same words in the same places. What does not count there (ids, times, metadata, what providers reported) and refs
// are not written.
//
//   - Each node is a step of the builder: User, Assistant, CloseTools and so on, Append where none of these makes that node.
//   - What the builder cannot make (nodes that were redacted, kinds that a newer version wrote), and a conversation of more than
//     1,000 nodes, is written in its saved form, which the function reads.
//   - The file is as gofmt would have it. What was said stands in string literals that hold nothing but printable characters.
//   - The same graph gives the same bytes, but for the saved form, which has the ids.
//
// Errors: d's own; those of saving it; and that of w. Nothing is written before the file is whole.
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

// read is the file that reads the conversation from its saved form.
func read(d dag.DAG) (string, error) {
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

// head is the beginning of the file, with its imports: of the standard library, and packages of Plait.
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

// built is the file that builds the conversation step by step, and whether there is one.
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

// generator writes nodes in order, each after those that it names.
type generator struct {
	out   strings.Builder
	names map[*node.Node]string // of the variables that hold the conversation up to a node
	last  *node.Node            // the node that the open statement ends in; nil where none is open
	steps int                   // in the open statement

	uses   map[node.ID]int           // how many nodes and lists of heads name a node
	byID   map[node.ID]*node.Node    // the nodes, so that one that was loaded twice has one name
	phases map[*node.Node]*node.Node // the messages that CloseTools makes, and the calls before each
	inside map[*node.Node]bool       // the executions that CloseTools makes

	content, node bool // whether the packages of these names are needed
	blocks, ids   bool // whether the functions of these names are called
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
	for _, n := range nodes {
		g.phase(n)
	}
	return g
}

// phase finds out whether n and the executions before it are what CloseTools makes.
func (g *generator) phase(n *node.Node) {
	if n.NumParents() == 0 || n.Parent(0).NumParents() != 1 {
		return
	}
	said := n.Parent(0).Parent(0)
	var executions []node.ToolExecution
	for _, p := range n.Parents() {
		e, ok := p.Payload().(node.ToolExecution)
		if !ok || p.NumParents() != 1 || p.Parent(0).ID() != said.ID() || g.uses[p.ID()] != 1 {
			return
		}
		executions = append(executions, e)
	}
	made := dag.New().WithHeads(said).CloseTools(executions...).Head()
	if made == nil || made.Digest() != n.Digest() {
		return
	}
	g.phases[n] = said
	for _, p := range n.Parents() {
		g.inside[g.byID[p.ID()]] = true
		g.uses[said.ID()]--
	}
	g.uses[said.ID()]++
}

// write writes the step that adds n, and reports whether there is one.
func (g *generator) write(n *node.Node) bool {
	if g.inside[n] {
		return true
	}
	before := n.Parents()
	if said := g.phases[n]; said != nil {
		before = []*node.Node{said}
	}
	step, ok := g.step(n, dag.New().WithHeads(before...))
	if !ok {
		return false
	}
	if len(before) == 1 && g.last != nil && g.last.ID() == before[0].ID() && g.uses[g.last.ID()] == 1 && g.steps < maxChain {
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

// flush ends the open statement, and gives its variable to the node that it ends in.
func (g *generator) flush() {
	if g.last == nil {
		return
	}
	g.names[g.byID[g.last.ID()]] = fmt.Sprintf("d%d", len(g.names))
	g.out.WriteString("\n")
	g.last = nil
}

// join is the conversation that ends in heads.
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

// step is what adds n to the conversation before it: the first of the ways to say it that makes just that node.
func (g *generator) step(n *node.Node, before dag.DAG) (string, bool) {
	if executions := g.executions(n); executions != "" {
		return executions, true
	}
	for _, way := range []func(*node.Node, dag.DAG) (string, dag.DAG){g.fluent, g.plain} {
		if text, made := way(n, before); text != "" && made.Head() != nil && made.Head().Digest() == n.Digest() {
			return text, true
		}
	}
	return "", false
}

// executions is the call of CloseTools that makes n; "" where it is another step that does.
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

// fluent is the step that a person would write, and what it makes; "" where there is no such step.
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

// message is the step for a message: its first text is the step's, and the other blocks follow.
func (g *generator) message(m node.Message, before dag.DAG) (string, dag.DAG) {
	list := m.Blocks.Slice()
	if len(list) == 0 {
		return "", before
	}
	if results := m.Blocks.ToolResults(); len(results) == len(list) && m.Role == content.User {
		return call("ToolResults", g.all(list)...), before.ToolResults(results...)
	}
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

// plain is the step that makes any node that a program can make.
func (g *generator) plain(n *node.Node, before dag.DAG) (string, dag.DAG) {
	payload := g.payload(n.Payload(), before)
	if payload == "" {
		return "", before
	}
	return call("Append", payload), before.Append(n.Payload())
}

// call is a step with its arguments: on one line where there is one, else each on its own.
func call(name string, args ...string) string {
	if len(args) < 2 {
		return name + "(" + strings.Join(args, "") + ")"
	}
	return name + "(" + args[0] + ",\n\t\t\t" + strings.Join(args[1:], ",\n\t\t\t") + ",\n\t\t)"
}
