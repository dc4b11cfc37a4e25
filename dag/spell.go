package dag

import (
	"cmp"
	"hash/maphash"
	"strconv"
	"strings"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// field is a part of a node's content in readable form: its name and its text. Neither is cleaned. hidden is content
// that counts and is not shown, such as base64.
type field struct{ name, text, hidden string }

// key identifies the content of a node without its ancestors. It consists of two hashes with random seeds, so that
// nobody can prepare contents with equal keys.
type key [2]uint64

var keySeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func keyOf(n *node.Node) key {
	fields := spelled(n)
	var k key
	for i, seed := range keySeeds {
		var h maphash.Hash
		h.SetSeed(seed)
		write := func(s string) {
			// With its length before it, a text cannot be mistaken for the end of one and the beginning of the next.
			maphash.WriteComparable(&h, len(s))
			_, _ = h.WriteString(s)
		}

		write(n.Kind())
		write(kindOf(n))
		for _, f := range fields {
			write(f.name)
			write(f.text)
			write(f.hidden)
		}
		k[i] = h.Sum64()
	}
	return k
}

// spelled returns the content of a node, as far as its digest covers it. Of unreadable data, such as base64, the text
// has the size. It has no hash of the content: that would confirm guesses of content that is erased later.
func spelled(n *node.Node) []field {
	var s speller

	switch p := n.Payload().(type) {
	case node.System:
		s.add("name", p.Name)
		s.add("text", p.Text)
	case node.Tools:
		for _, name := range p.Withdrawn.Slice() {
			s.add("withdrawn", name)
		}
		for _, def := range p.Defs.Slice() {
			s.say("tool "+def.Name, def.Description)
			s.add("schema of "+def.Name, lined(def.Schema))
			s.extra("tool "+def.Name, def.Extra)
		}
	case node.Message:
		s.callers = callNames(n)
		s.blocks("", p.Blocks)
	case node.ToolExecution:
		// The digest covers the index of the call, but not its ID.
		s.say("call "+strconv.Itoa(p.Index)+" of "+p.Tool, lined(p.Input))
		s.add("state", describe.State(p.State))
		s.result("result", p.Result, p.IsError)
		s.heads("sub-agent", p.Child)
	case node.SubGraph:
		s.add("title", p.Title)
		s.heads("conversation", p.Heads)
		s.add("summary", p.Summary)
	case node.Compaction:
		s.blocks("summary: ", p.Summary)
	case node.RunStart:
		s.add("agent", p.Agent)
	case node.StopReason:
		s.add("reason", string(p.Reason))
		s.add("detail", p.Detail)
	case node.Custom:
		s.say(p.Name, lined(p.JSON))
	default:
		// The fields of an unknown kind are not known, so use its saved form.
		var saved struct {
			Body jsontext.Value `json:"body"`
		}
		_ = json.Unmarshal(n.Append(nil), &saved) // no error: Append writes valid JSON
		s.add(n.Kind(), lined(content.JSON(saved.Body)))
	}

	return s.fields
}

// speller collects the fields of a node.
type speller struct {
	fields  []field
	callers map[string][]string // names of the calls without a result so far, by call ID
}

func (s *speller) say(name, text string) { s.fields = append(s.fields, field{name: name, text: text}) }

// add adds a field unless it is empty: a digest leaves out empty members too.
func (s *speller) add(name, text string) {
	if text != "" {
		s.say(name, text)
	}
}

func (s *speller) extra(name string, e content.Extra) {
	if e != (content.Extra{}) {
		s.say(name+", of "+e.API, lined(e.JSON))
	}
}

// heads adds a child conversation. Its text is the beginning of the last texts, and its digests count.
func (s *speller) heads(name string, heads node.List[*node.Node]) {
	if heads.Len() == 0 {
		return
	}
	var text, digests []string
	for _, h := range heads.Slice() {
		d := describe.Of(h)
		text = append(text, safetext.Line("ends in "+d.Word+" "+cmp.Or(describe.Text(d.Blocks), d.Text), maxLine))
		digest := h.Digest()
		digests = append(digests, string(digest[:]))
	}
	s.hide(name, strings.Join(text, "\n"), strings.Join(digests, "\n"))
}

// hide adds a field with content that counts and is not shown.
func (s *speller) hide(name, text, hidden string) {
	s.fields = append(s.fields, field{name, text, hidden})
}

func (s *speller) blocks(before string, blocks content.Blocks) {
	for p := range describe.Parts(blocks) {
		name := before + p.Label()
		switch {
		case p.Form == describe.Returned:
			name += " " + s.answered(p.ID)
			s.result(name, p.Content, p.Failed)
		case p.JSON != "" || p.Form == describe.Asked:
			// A call counts even if it has no arguments.
			s.say(name, lined(p.JSON))
		case p.Source != (content.Source{}):
			s.hide(name, source(p.Source), p.Source.Data)
		default:
			s.say(name, p.Text)
		}
		s.unreadable(before+"signature of the thinking", p.Signature)
		s.unreadable(before+"hidden thinking", p.Hidden)
		s.extra(name, p.Extra)
	}
}

// result adds a tool result. A result of one text, the usual case, is one field.
func (s *speller) result(name string, blocks content.Blocks, failed bool) {
	if failed {
		name = "failed " + name
	}
	if blocks.Len() == 1 {
		if text, ok := blocks.At(0).(content.Text); ok {
			s.say(name, text.Text)
			s.extra(name+": text", text.Extra)
			return
		}
	}
	s.say(name, "")
	s.blocks(name+": ", blocks)
}

// answered returns the name of the call for a result with this call ID. The name has the call's index, because a digest
// covers the index and not the ID.
func (s *speller) answered(id string) string {
	names := s.callers[id]
	if len(names) == 0 {
		return "of call " + strconv.Quote(id)
	}
	s.callers[id] = names[1:]
	return names[0]
}

// callNames returns names of the calls before the results in n, by call ID.
func callNames(n *node.Node) map[string][]string {
	for i := range n.NumParents() {
		m, ok := lineage.CallerOf(n.Parent(i)).Message()
		if !ok || m.Role != content.Assistant {
			continue
		}

		names := map[string][]string{}
		for i, call := range m.Blocks.ToolUses() {
			names[call.ID] = append(names[call.ID], strconv.Itoa(i)+" of "+call.Name)
		}
		return names
	}
	return nil
}

// source returns a readable form of the source of an image or a document.
func source(s content.Source) string {
	var lines []string
	for _, line := range []struct{ name, text string }{
		{"type", s.MediaType}, {"data", size(s.Data)}, {"url", s.URL}, {"file", s.FileID},
	} {
		if line.text != "" {
			lines = append(lines, line.name+": "+line.text)
		}
	}
	if s.Text != "" {
		lines = append(lines, s.Text)
	}
	return strings.Join(lines, "\n")
}

// unreadable adds data of which only the size is shown.
func (s *speller) unreadable(name, data string) {
	if data != "" {
		s.hide(name, size(data), data)
	}
}

// size returns the size of unreadable data, or "" for none.
func size(data string) string {
	if data == "" {
		return ""
	}
	return count(len(data), "byte")
}

// lined returns JSON in canonical form with a line for each member. It returns invalid JSON unchanged.
func lined(j content.JSON) string {
	const deepest = 256

	// Canonical makes a string of JSON that nests deeper.
	if j == "" || jsonx.Depth(j) > deepest || !j.Valid() {
		return string(j)
	}
	v := jsontext.Value(j.Canonical())
	if err := v.Indent(jsontext.WithIndent("  ")); err != nil {
		return string(j)
	}
	return string(v)
}
