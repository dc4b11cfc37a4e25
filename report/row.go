package report

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// The outcomes: see [Row].
const (
	outcomeEnded      = "ended"
	outcomeFailed     = "failed"
	outcomeCancelled  = "cancelled"
	outcomePaused     = "paused"
	outcomeInDoubt    = "in doubt"
	outcomeCutOff     = "cut off"
	outcomeOpen       = "open"
	outcomeEmpty      = "empty"
	outcomeUnreadable = "unreadable"
)

// Row describes one conversation.
type Row struct {
	// Name is the program's name for the conversation, such as its file name.
	Name string `json:"name"`
	// Error is the reason why the conversation cannot be read, or "". If it is set, the fields below are zero apart
	// from Outcome.
	Error string `json:"error,omitempty"`
	// Outcome is how the conversation ended:
	//
	//	ended       for a normal reason, see content.Stop.Normal
	//	failed      for any other reason: an error, a limit, a refusal
	//	cancelled   the run was cancelled
	//	paused      tool calls wait for results or approval
	//	in doubt    a tool call was started, and its outcome is unknown
	//	cut off     the last response broke off
	//	open        the last message has no response
	//	empty       there is no message
	//	unreadable  the conversation cannot be read
	Outcome string `json:"outcome"`
	// Stop is the stop reason of the run or of the last response, or "".
	Stop content.Stop `json:"stop,omitempty"`
	// Labels holds the metadata of the conversation: texts, numbers and booleans, cut to 200 cells.
	Labels map[string]string `json:"labels,omitempty"`
	// Began and Last are the times of the first and the last node; zero if there is none.
	Began time.Time `json:"began,omitzero"`
	Last  time.Time `json:"last,omitzero"`
	// Turns is the number of responses of the conversation itself, without those of sub-agents.
	Turns int `json:"turns"`
	// Calls counts the tool calls with a result. FailedCalls counts the failed calls and the calls in doubt.
	Calls       int `json:"calls"`
	FailedCalls int `json:"failed_calls"`
	// Took is the working time of models and tools: the latencies of the responses, and each tool phase from the start
	// of its first call to the end of its last. It is written to JSON in milliseconds.
	Took time.Duration `json:"-"`
	Spending
	// Models and Tools are the sums by model and by tool, in the order of the names.
	Models []ModelSpending `json:"models,omitempty"`
	Tools  []Tool          `json:"tools,omitempty"`
	// Failure is the first failure, or nil.
	Failure *Failure `json:"failure"`
	// Cause is the failure that ended a conversation that failed, was cut off or is in doubt. It is nil for other
	// outcomes. If the run continued after a failure, the failure is no cause.
	Cause *Failure `json:"cause,omitempty"`
	// Answer is the text of the last answer on one line, cut to 200 cells.
	Answer string `json:"answer,omitempty"`
	// Path is the number of the path among those of the report, or 0 before a call of Paths.
	Path int `json:"path,omitempty"`
	// NumSteps is the number of steps of the path. Steps returns the first ones.
	NumSteps int `json:"steps"`

	list  *stepList // nil if the conversation cannot be read
	names int       // digits in the short names of the nodes
	shape [32]byte  // the hash of the outcome and the labels of all steps
}

// Failure describes a failed node.
type Failure struct {
	// Node is the short name of the node, as from DAG.ShortIDs.
	Node string `json:"node"`
	// Text names the failed part, with the first line of the reason: "get_weather: no such city".
	Text string `json:"text"`
}

// Options are the options of [Of]. The zero value and nil are the defaults.
type Options struct {
	// Prices are the prices of the models. Defaults to none: every cost is unknown.
	Prices api.Prices
	// Texts limits the memory for the texts of steps in a report on many rows. Defaults to none: each row keeps those
	// of its first 400 steps.
	Texts *Texts
}

// Unreadable returns the row of an unreadable conversation.
func Unreadable(name string, err error) Row {
	return Row{Name: name, Outcome: outcomeUnreadable, Error: err.Error()}
}

// Of returns the row of d. If the chain that built d has an error, or a node of d turns out to be broken, it returns
// the row of Unreadable.
func Of(name string, d dag.DAG, o *Options) Row {
	if o == nil {
		o = &Options{}
	}

	r := Row{Name: name, Labels: labels(d.Metadata())}
	r.count(d, o.Prices)
	r.end(d)
	r.walk(d, o.Texts.share())

	// Of a lazily loaded conversation, the steps above were the first to read the nodes and find a broken one.
	if err := d.Err(); err != nil {
		return Unreadable(name, err)
	}
	o.Texts.add(r.list)
	return r
}

// MarshalJSON writes the row with its Took as "took_ms".
func (r Row) MarshalJSON() ([]byte, error) {
	type plain Row
	return json.Marshal(struct {
		plain
		Took float64 `json:"took_ms"`
	}{plain(r), milliseconds(r.Took)})
}

func milliseconds(d time.Duration) float64 { return float64(d.Round(time.Microsecond)) / 1e6 }

const (
	maxLabel  = 200 // cells of a value of the metadata
	maxAnswer = 200 // cells of an answer
	maxReason = 200 // cells of the first line of a failure
)

// labels returns the texts, numbers and booleans among the values of metadata.
func labels(m node.Meta) map[string]string {
	found := map[string]string{}
	for key, value := range m.All() {
		var v any
		if json.Unmarshal([]byte(value), &v) != nil {
			continue
		}
		switch v := v.(type) {
		case string:
			found[key] = safetext.Line(v, maxLabel)
		case float64, bool:
			found[key] = safetext.Line(string(value), maxLabel)
		}
	}
	return found
}

// count adds up the nodes of all branches and of sub-agents.
func (r *Row) count(d dag.DAG, prices api.Prices) {
	// Some branches are within reach of the refs alone.
	heads := d.Heads()
	for _, ref := range d.Refs() {
		heads = append(heads, ref.Heads...)
	}
	all := d.WithHeads(heads...)

	// The tokens and the cost include sub-agents. Turns and time do not: a sub-agent works within a call.
	own := map[*node.Node]bool{}
	for _, n := range all.Nodes() {
		own[n] = true
	}

	nodes := all.WithChildren()
	r.names = describe.NameLength(nodes)

	costs, tools, phases := Costs{Prices: prices}, toolCounts{}, phaseTimes{}
	for _, n := range nodes {
		r.at(n.Time())
		described := describe.Of(n)

		switch described.Sort {
		case describe.Assistant:
			costs.Add(described.Model, described.Usage)
			if own[n] {
				r.Turns++
				r.Took = longer(r.Took, max(described.Took, 0))
			}
		case describe.Call:
			tools.execution(n)
			if own[n] {
				phases.add(n)
			}
		case describe.Results:
			tools.results(n)
		}

		if r.Failure == nil {
			r.Failure = r.failureOf(n, described)
		}
	}

	r.Models, r.Spending = costs.List()
	r.Tools = tools.list()
	for _, t := range r.Tools {
		r.Calls += t.Calls
		r.FailedCalls += t.Failed
	}
	r.Took = longer(r.Took, phases.total())
}

// at notes the time of a node.
func (r *Row) at(t time.Time) {
	// A node imported without a time has the beginning of 1970.
	if t.IsZero() || t.Unix() == 0 {
		return
	}
	if r.Began.IsZero() || t.Before(r.Began) {
		r.Began = t
	}
	if t.After(r.Last) {
		r.Last = t
	}
}

// end finds out how the conversation ended.
func (r *Row) end(d dag.DAG) {
	r.Answer = safetext.Line(d.Text(), maxAnswer)

	ends := ends(d)
	if len(ends) == 0 {
		r.Outcome = outcomeEmpty
		return
	}

	head := newest(ends)
	described := describe.Of(head)
	r.Stop = described.Stop

	// Waiting calls come first: a crash or a pause leaves them open, and the stop reason is not known yet.
	phase := phaseOf(ends, head)
	if len(d.WithHeads(phase...).OpenCalls()) > 0 {
		r.Outcome = outcomePaused
		for _, h := range phase {
			if e, ok := h.Payload().(node.ToolExecution); ok && e.State == node.ExecutionStarted {
				r.Outcome = outcomeInDoubt
			}
		}
		return
	}

	switch {
	case described.Stop == content.StopCut:
		r.Outcome = outcomeCutOff
	case described.Stop == content.StopCancelled:
		r.Outcome = outcomeCancelled
	case described.Stop == content.StopApproval || described.Stop == content.StopResults:
		r.Outcome = outcomePaused
	case !described.Stop.Normal():
		r.Outcome = outcomeFailed
	case described.Sort == describe.Stop || described.Sort == describe.Assistant:
		r.Outcome = outcomeEnded
	default:
		r.Outcome = outcomeOpen
	}
}

// ends returns the last nodes of the conversation. They are the heads of d. For a head beside the conversation they are
// the nearest nodes before it that are not.
func ends(d dag.DAG) []*node.Node {
	var found []*node.Node
	seen := map[*node.Node]bool{}
	for _, h := range d.Heads() {
		stack := []*node.Node{h}
		for len(stack) > 0 {
			n := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if seen[n] {
				continue
			}
			seen[n] = true

			if !isBeside(n) {
				found = append(found, n)
				continue
			}

			// After an open tool phase, a record has all executions as parents.
			stack = append(stack, n.Parents()...)
		}
	}
	return found
}

// newest returns the newest node of a list, and of several as new the first.
func newest(list []*node.Node) *node.Node {
	return slices.MaxFunc(list, func(a, b *node.Node) int { return a.Time().Compare(b.Time()) })
}

// isBeside reports whether n is beside the conversation: a record, a sub-graph, tools, a system prompt, the start of a
// run, or a node of an unknown kind.
func isBeside(n *node.Node) bool {
	switch describe.Of(n).Sort {
	case describe.Record, describe.SubGraph, describe.Tools, describe.System, describe.Run, describe.Unknown:
		return true
	}
	return false
}

// phaseOf returns the ends of the same tool phase as head. In an open phase each execution is an end.
func phaseOf(ends []*node.Node, head *node.Node) []*node.Node {
	caller := func(n *node.Node) *node.Node {
		if _, ok := n.Payload().(node.ToolExecution); ok && n.NumParents() == 1 {
			return n.Parent(0)
		}
		return n
	}
	return slices.DeleteFunc(ends, func(n *node.Node) bool { return caller(n) != caller(head) })
}

// failureOf returns the failure of a node, or nil.
func (r *Row) failureOf(n *node.Node, described describe.Node) *Failure {
	why, grave := described.Failure()
	if _, failed := described.CountResults(); failed > 0 && described.Sort == describe.Results && !hasExecution(n) {
		why, grave = "tool failed", true
	}
	if !grave {
		return nil
	}
	return &Failure{Node: describe.Name(n.ID(), r.names), Text: reason(described, why)}
}

// reason returns the name of the failed step and the most telling line of the cause.
func reason(described describe.Node, why string) string {
	text, _ := describe.Telling(described.Text)
	switch described.Sort {
	case describe.Call:
		line, _ := describe.Telling(describe.Text(described.Blocks))
		why, text = cmp.Or(described.Called.Tool, "tool"), cmp.Or(describe.WithOutcome(described.State, line), "failed")
	case describe.Results:
		for _, result := range described.Blocks.ToolResults() {
			if result.IsError {
				text, _ = describe.Telling(describe.Text(result.Content))
				break
			}
		}
	case describe.Assistant:
		// The text of a response is not the reason of its failure.
		text = ""
	}
	if text != "" {
		why += ": " + text
	}
	return safetext.Line(why, maxReason)
}
