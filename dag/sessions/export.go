package sessions

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// ExportOptions change how a session is written. A nil *ExportOptions means the defaults.
type ExportOptions struct {
	// Folder is the folder in which the other program continues the session. Defaults to "/".
	Folder string
	// Model is the model of responses that name none. Defaults to that of the last response, or "unknown".
	Model string
	// Provider is the other program's name for the server of the model. Defaults to "unknown": the other program then
	// asks, or takes its own.
	Provider string
}

// Loss is what a session cannot express, and how often. Two sessions with the same losses lack the same.
type Loss struct {
	Code  LossCode
	Count int
}

// LossCode names a kind of loss. The names stay the same.
type LossCode string

// The kinds of losses.
const (
	LossBranches  LossCode = "branches"   // nodes that only other heads and refs reach
	LossSystem    LossCode = "system"     // system prompts
	LossTools     LossCode = "tools"      // declarations of tools
	LossMessages  LossCode = "messages"   // messages without anything that can be written
	LossBounds    LossCode = "bounds"     // blocks behind results, which become a message of their own
	LossBlocks    LossCode = "blocks"     // images, documents and opaque blocks
	LossTexts     LossCode = "texts"      // texts that are joined to the text before
	LossOrder     LossCode = "order"      // blocks that come at another place of their message
	LossThinking  LossCode = "thinking"   // thinking, or its signature
	LossExtra     LossCode = "extra"      // further members of blocks, and media types of addresses
	LossCallIDs   LossCode = "call_ids"   // IDs of calls that are missing or used twice: they are replaced
	LossArguments LossCode = "arguments"  // arguments that are no JSON object
	LossErrors    LossCode = "errors"     // marks of failed results; their texts stay
	LossDetails   LossCode = "details"    // Details and full outputs of executions
	LossChildren  LossCode = "children"   // conversations of sub-agents
	LossAPI       LossCode = "api"        // the APIs of responses
	LossAnswers   LossCode = "answers"    // stop reasons, IDs, latencies, and reasoning tokens of responses
	LossMeta      LossCode = "metadata"   // metadata of nodes
	LossRecords   LossCode = "records"    // records, starts and ends of runs
	LossCompacted LossCode = "compaction" // messages that a compaction replaces: their summary is written
)

var errNotWritten = errors.New("this format is not written")

// exporters are the formats that can be written.
var exporters = map[Format]func(*exporter){
	ATIF: (*exporter).atif, ClaudeCode: (*exporter).claudeCode, Codex: (*exporter).codex,
	OpenCode: (*exporter).openCode, Pi: (*exporter).pi,
}

// ExportFormats returns the formats that [Export] writes, in alphabetical order.
func ExportFormats() []Format { return slices.Sorted(maps.Keys(exporters)) }

// Export writes the conversation at the head of d, as it is sent to a model, as a session of another program. The
// program can continue it; an ATIF file is for reading. The losses are those of this conversation, sorted by code.
//
// The IDs in the session are derived from the ID of the head. The errors are those of w, of d, and of a format that is
// not written.
func Export(format Format, w io.Writer, d dag.DAG, o *ExportOptions) ([]Loss, error) {
	write, known := exporters[format]
	if !known {
		return nil, &Error{Format: format, Err: fmt.Errorf("%w: those are %s", errNotWritten, joinNames(ExportFormats()))}
	}
	if err := d.Err(); err != nil {
		return nil, err
	}

	x := &exporter{w: w, lost: map[LossCode]int{}, ids: map[string]bool{}}
	if o != nil {
		x.opts = *o
	}
	x.opts.Folder = cmp.Or(x.opts.Folder, "/")
	x.read(d)
	for _, s := range slices.Backward(x.turns) {
		x.opts.Model = cmp.Or(x.opts.Model, s.answer.Model)
	}
	x.opts.Model, x.opts.Provider = cmp.Or(x.opts.Model, "unknown"), cmp.Or(x.opts.Provider, "unknown")
	if write(x); x.err != nil {
		return nil, x.err
	}

	var list []Loss
	for code, n := range x.lost {
		list = append(list, Loss{code, n})
	}
	slices.SortFunc(list, func(a, b Loss) int { return cmp.Compare(a.Code, b.Code) })
	return list, nil
}

// exporter is the state of one call of Export.
type exporter struct {
	w       io.Writer
	opts    ExportOptions
	session node.ID
	began   time.Time
	system  []string
	tools   []content.Tool
	turns   []spoken
	lost    map[LossCode]int
	ids     map[string]bool // the IDs of calls so far
	err     error           // the first one of w
}

// spoken is a message of the user, or a response with the results of its calls.
type spoken struct {
	role   content.Role
	blocks []content.Block
	answer node.Answer
	time   time.Time
	calls  []called
}

// called is a call of a response.
type called struct {
	content.ToolUse
	id       string // the one that is written
	answered bool
	result   content.ToolResult
	ended    time.Time
}

func (x *exporter) lose(code LossCode, n int) {
	if n > 0 {
		x.lost[code] += n
	}
}

// read reads the conversation, and counts what no format can express.
func (x *exporter) read(d dag.DAG) {
	t := d.Transcript()
	x.system, x.tools = t.System, t.Tools
	x.session, x.began = node.ID{}, time.Unix(0, 0).UTC()
	if h := d.Head(); h != nil {
		x.session, x.began = h.ID(), h.Time()
	}
	if len(t.Nodes) > 0 {
		x.began = t.Nodes[0].Time()
	}
	x.count(d, t)

	for i, m := range t.Messages {
		n := t.Nodes[i]
		if m.Role == content.Assistant {
			x.response(m, n)
			continue
		}
		rest := x.results(m, n.Time())
		if len(rest) > 0 {
			if len(rest) < m.Blocks.Len() {
				x.lose(LossBounds, 1)
			}
			x.turns = append(x.turns, spoken{role: content.User, blocks: rest, time: n.Time()})
		}
	}
}

// response reads a message of the model.
func (x *exporter) response(m content.Message, n *node.Node) {
	s := spoken{role: content.Assistant, time: n.Time()}
	if own, is := n.Message(); is {
		s.answer = own.Answer
	}
	for _, b := range m.Blocks.All() {
		s.blocks = append(s.blocks, b)
		use, is := b.(content.ToolUse)
		if !is {
			continue
		}
		id := use.ID
		for k := len(x.ids) + 1; id == "" || x.ids[id]; k++ {
			id = "call_" + strconv.Itoa(k)
		}
		if x.ids[id] = true; id != use.ID {
			x.lose(LossCallIDs, 1)
		}
		s.calls = append(s.calls, called{ToolUse: use, id: id})
	}
	x.turns = append(x.turns, s)
}

// results gives the results of a message to the calls before it, and returns its other blocks.
func (x *exporter) results(m content.Message, at time.Time) (rest []content.Block) {
	var calls []called
	if n := len(x.turns); n > 0 {
		calls = x.turns[n-1].calls
	}
	for _, b := range m.Blocks.All() {
		r, is := b.(content.ToolResult)
		if !is {
			rest = append(rest, b)
			continue
		}
		i := slices.IndexFunc(calls, func(c called) bool { return !c.answered && c.ID == r.CallID })
		if i < 0 {
			x.lose(LossBlocks, 1)
			continue
		}
		calls[i].answered, calls[i].result, calls[i].ended = true, r, at
	}
	return rest
}

// count counts what is in the graph and in no message.
func (x *exporter) count(d dag.DAG, t dag.Transcript) {
	sent := map[node.ID]bool{}
	for _, n := range t.Nodes {
		sent[n.ID()] = true
	}
	nodes := d.Nodes()
	for _, n := range nodes {
		switch p := n.Payload().(type) {
		case node.ToolExecution:
			if p.Details != "" || p.Full.Len() > 0 {
				x.lose(LossDetails, 1)
			}
			x.lose(LossChildren, min(p.Child.Len(), 1))
		case node.SubGraph:
			x.lose(LossChildren, 1)
		case node.Custom, node.RunStart, node.StopReason, node.Unknown:
			x.lose(LossRecords, 1)
		case node.Message:
			if p.Answer.Latency != 0 {
				x.lose(LossAnswers, 1)
			}
			if !sent[n.ID()] {
				x.lose(LossCompacted, 1)
			}
		case node.Compaction, node.System, node.Tools:
		}
		x.lose(LossMeta, min(n.Meta().Len(), 1))
	}

	all := d.Heads()
	for _, r := range d.Refs() {
		all = append(all, r.Heads...)
	}
	x.lose(LossBranches, len(d.WithHeads(all...).Nodes())-len(nodes))
}

// each calls add for every turn, with what write makes of its blocks. A turn without any is lost.
func (x *exporter) each(write func(*spoken, content.Block, *called) any, add func(*spoken, []any)) {
	for i := range x.turns {
		s := &x.turns[i]
		parts := x.parts(s.blocks, s.calls, func(b content.Block, c *called) any { return write(s, b, c) })
		if len(parts) == 0 {
			x.lose(LossMessages, 1)
			continue
		}
		add(s, parts)
	}
}

// parts returns what write makes of the blocks, with the call of each content.ToolUse. What it makes nil of is lost.
func (x *exporter) parts(blocks []content.Block, calls []called, write func(content.Block, *called) any) []any {
	parts := []any{}
	for _, b := range blocks {
		var c *called
		if _, is := b.(content.ToolUse); is && len(calls) > 0 {
			c, calls = &calls[0], calls[1:]
		}
		part := write(b, c)
		if part != nil {
			parts = append(parts, part)
			continue
		}
		if _, thinks := b.(content.Thinking); thinks {
			x.lose(LossThinking, 1)
		} else {
			x.lose(LossBlocks, 1)
		}
	}
	return parts
}

// fields is a JSON object.
type fields map[string]any

// with adds the further members of a block to f, if they are of this API.
func (x *exporter) with(f fields, e content.Extra, api string) fields {
	list, _ := object(e.JSON)
	for _, m := range list {
		if _, own := f[m.Name]; own || e.API != api {
			x.lose(LossExtra, 1)
			return f
		}
		f[m.Name] = jsontext.Value(m.Value)
	}
	return f
}

// unset counts system prompts and tools, for a program that has its own.
func (x *exporter) unset() {
	x.lose(LossSystem, len(x.system))
	x.lose(LossTools, len(x.tools))
}

// only counts the responses of other APIs, for a format without names of APIs. It is read as of this one.
func (x *exporter) only(api string) {
	for _, s := range x.turns {
		if s.role == content.Assistant && s.answer.API != api {
			x.lose(LossAPI, 1)
		}
	}
}

// stop returns the word for a stop reason. A reason without a word is lost, unless the blocks of the response tell it.
func (x *exporter) stop(a node.Answer, words map[content.Stop]string) string {
	if a.Stop != "" && a.Stop != content.StopEndTurn && a.Stop != content.StopToolUse && words[a.Stop] == "" {
		x.lose(LossAnswers, 1)
	}
	return words[a.Stop]
}

// stopOf returns the stop reason of a word.
func stopOf(word string, words map[content.Stop]string) content.Stop {
	for stop, w := range words {
		if w == word {
			return stop
		}
	}
	return content.Stop(word)
}

// model returns the model of a response.
func (x *exporter) model(a node.Answer) string { return cmp.Or(a.Model, x.opts.Model) }

// object returns the arguments of a call as a JSON object.
func (x *exporter) object(input content.JSON) jsontext.Value {
	if input == "" {
		return jsontext.Value(`{}`)
	}
	if !input.IsObject() {
		x.lose(LossArguments, 1)
		return jsontext.Value(`{}`)
	}
	return jsontext.Value(input)
}

// line writes a value on a line.
func (x *exporter) line(v any) {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err == nil && x.err == nil {
		_, err = x.w.Write(append(text, '\n'))
	}
	x.err = cmp.Or(x.err, err)
}

// address returns dataURL, or nil if it is "", for formats without media types of addresses.
func (x *exporter) address(s content.Source) any {
	if s.URL != "" && s.MediaType != "" {
		x.lose(LossExtra, 1)
	}
	if url := dataURL(s); url != "" {
		return url
	}
	return nil
}

// dataURL returns an address with the data of a source, or that of the source; "" if it has neither.
func dataURL(s content.Source) string {
	if s.Data != "" {
		return "data:" + s.MediaType + ";base64," + s.Data
	}
	return s.URL
}

// sourceOf returns the source of an address.
func sourceOf(url, mediaType string) content.Source {
	if head, data, is := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,"); is && strings.HasPrefix(url, "data:") {
		return content.Source{MediaType: cmp.Or(head, mediaType), Data: data}
	}
	return content.Source{URL: url, MediaType: mediaType}
}

// texts returns the texts of a list, and its other blocks.
func texts(blocks content.Blocks) (list []string, other []content.Block) {
	for _, b := range blocks.All() {
		if t, is := b.(content.Text); is {
			list = append(list, t.Text)
			continue
		}
		other = append(other, b)
	}
	return list, other
}

// rfc returns a time as the programs write it.
func rfc(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
