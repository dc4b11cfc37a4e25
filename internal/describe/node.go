package describe

import (
	"cmp"
	"iter"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// Sort is the kind of a node as a reader sees it. Unlike the kind in a saved file, it distinguishes the sorts of
// messages.
type Sort string

// The sorts of nodes. Each is also the word for it.
const (
	System     Sort = "system"
	Tools      Sort = "tools"
	User       Sort = "user"
	Assistant  Sort = "assistant"
	Results    Sort = "results" // a user's message with tool results
	Call       Sort = "tool call"
	SubGraph   Sort = "sub-graph"
	Compaction Sort = "compaction"
	Run        Sort = "run" // the start of a run
	Stop       Sort = "stop"
	Record     Sort = "record"
	Unknown    Sort = "unknown" // a kind that this version does not know; its word is the kind itself
)

// Sorts returns all sorts. A renderer's table of looks has an entry for each.
func Sorts() []Sort {
	return []Sort{System, Tools, User, Assistant, Results, Call, SubGraph, Compaction, Run, Stop, Record, Unknown}
}

// Node describes a node. Text and Blocks are not both set.
type Node struct {
	Sort Sort
	// Word names the sort, or the saved kind if this version does not know it.
	Word string
	// Role is the role of a message; empty for other nodes.
	Role content.Role
	// Title names the node: the name of a prompt or a record, the called tool, the title of a sub-graph, the agent of a
	// run, the stop reason of a run.
	Title string
	// Text is the content of a node with one text: a prompt, the names of tools, the summary of a sub-graph, the detail
	// of a stop, the JSON of a record.
	Text string
	// Blocks is the content of a node with blocks: a message, the result of a tool, the summary of a compaction.
	Blocks content.Blocks
	// Called is the tool call of an execution.
	Called Execution
	// State is the state of an execution in words, see the function State.
	State string
	// Retried is how many attempts failed before a response, such as "2 retries"; "" for none.
	Retried string
	// Waiting is the number of calls of a message that are open at a head. It depends on the conversation: Of leaves it
	// 0.
	Waiting int
	// Denied is the number of calls declined by a person or a hook: of an execution, or among the results of a message.
	Denied int
	// Failed reports whether something went wrong, as [node.Node.Failed] does.
	Failed bool
	// Stop is the stop reason of a response or a run; empty for other nodes.
	Stop content.Stop
	// Model is the model of an assistant's message.
	Model string
	// Usage counts the tokens of a response, an execution or a run. Took is its duration, or 0 if it is unknown.
	Usage content.Usage
	Took  time.Duration
	// Began is the time of sending a request or starting an execution. If it is unknown, and for other nodes, it is the
	// time of making the node.
	Began time.Time

	payload node.Payload
}

// Execution is a tool call and the call executed for it.
type Execution struct {
	// Tool and Input are those of the call. ID is the provider's ID of the call.
	Tool  string
	Input content.JSON
	ID    string
	// Changed reports whether a hook changed the call. RanTool and RanInput are the executed call; without a change
	// they equal Tool and Input.
	Changed  bool
	RanTool  string
	RanInput content.JSON
}

// The states of an execution without a result, or whose result is not the tool's.
const (
	Started = "started"
	InDoubt = "in doubt"
	Denied  = "denied"
)

// State returns the words for the state of an execution, such as "awaiting approval"; "" for a finished one.
func State(s node.ExecutionState) string { return strings.ReplaceAll(string(s), "_", " ") }

// Of describes n.
func Of(n *node.Node) Node {
	d := Node{Word: n.Kind(), Failed: n.Failed(), Began: n.Time(), payload: n.Payload()}
	switch p := d.payload.(type) {
	case node.System:
		d.Sort, d.Title, d.Text = System, p.Name, p.Text
	case node.Tools:
		d.Sort, d.Text = Tools, toolNames(p)
	case node.Message:
		d.Sort, d.Role, d.Blocks = messageSort(p), p.Role, p.Blocks
		d.Stop, d.Model, d.Usage, d.Took = p.Answer.Stop, p.Answer.Model, p.Answer.Usage, p.Answer.Latency
		d.Retried = retried(p.Answer.Retries)
		if d.Sort == Results {
			d.Denied = deniedBefore(n)
		}
		d.Began = d.Began.Add(-d.Took) // the node was made when the response had ended
	case node.ToolExecution:
		d.Sort, d.Title, d.Blocks, d.Usage, d.State = Call, p.Tool, p.Result, p.Usage, State(p.State)
		d.Called = Execution{Tool: p.Tool, Input: p.Input, ID: p.CallID, Changed: p.Ran != node.Ran{},
			RanTool: cmp.Or(p.Ran.Tool, p.Tool), RanInput: cmp.Or(p.Ran.Input, p.Input)}
		if d.State == Denied {
			d.Denied = 1
		}
		if !p.Started.IsZero() {
			d.Began = p.Started
		}
		if !p.Started.IsZero() && p.Ended.After(p.Started) {
			d.Took = p.Ended.Sub(p.Started)
		}
	case node.SubGraph:
		d.Sort, d.Title, d.Text = SubGraph, p.Title, p.Summary
	case node.Compaction:
		d.Sort, d.Blocks = Compaction, p.Summary
	case node.RunStart:
		d.Sort, d.Title = Run, p.Agent
	case node.StopReason:
		d.Sort, d.Title, d.Text = Stop, string(p.Reason), p.Detail
		d.Stop, d.Usage, d.Took = p.Reason, p.Usage, p.Elapsed
	case node.Custom:
		d.Sort, d.Title, d.Text = Record, p.Name, string(p.JSON)
	case node.Unknown:
		d.Sort, d.Text = Unknown, "a kind that this version does not know"
		return d // Word stays the kind in the saved file
	default: // the zero Node, or a new kind without a description
		d.Sort = Unknown
		return d
	}

	d.Word = string(d.Sort)
	return d
}

func messageSort(m node.Message) Sort {
	switch {
	case m.Role == content.Assistant:
		return Assistant
	case len(m.Blocks.ToolResults()) > 0:
		return Results
	}
	return User
}

// Notes returns the notes about d:
//   - of a response: the model, if withModel is set, the stop reason, unless it is normal, and the number of waiting
//     calls;
//   - of an execution: its state;
//   - of a compaction: the number of replaced nodes;
//   - of the start of a run: the version of its agent, and its limits;
//   - of the end of a run: its totals.
func (d Node) Notes(withModel bool) []string {
	switch d.Sort {
	case Assistant:
		notes := answerNotes(d.payload.(node.Message).Answer, withModel)
		if d.Waiting > 0 {
			notes = append(notes, CallsWait(d.Waiting))
		}
		return notes
	case Call:
		if d.State != "" {
			return []string{d.State}
		}
	case Compaction:
		if of := replaced(d.payload.(node.Compaction)); of != "" {
			return []string{of}
		}
	case Run:
		return startNotes(d.payload.(node.RunStart))
	case Stop:
		return totals(d.payload.(node.StopReason))
	}
	return nil
}

// Lead returns the one-line text before the content of d, after its word:
//
//   - "(name)" for a prompt
//   - "[cut off]" for a response
//   - "of 3 nodes:" for a compaction
//   - "by agent" for the start of a run
//   - the reason and the totals of a stop, separated by dot
//   - the title of any other node
func (d Node) Lead(withModel bool, dot string) string {
	notes := d.Notes(withModel)
	switch {
	case d.Sort == System && d.removed():
		return "(" + d.Title + " removed)"
	case d.Sort == System && d.Title != "":
		return "(" + d.Title + ")"
	case d.Sort == Assistant && len(notes) > 0:
		return "[" + strings.Join(notes, ", ") + "]"
	case d.Sort == Compaction && len(notes) > 0:
		return notes[0] + ":"
	case d.Sort == Run && d.Title != "":
		return "by " + d.Title
	case d.Sort == Stop:
		return strings.Join(append([]string{d.Title}, notes...), dot)
	}
	return d.Title
}

// Head returns the first line of a box for d: "system, greeting removed", "assistant, cut off", "2 results, 1 failed",
// "tool call find, in doubt", "sub-graph: title", "compaction of 3 nodes", "record name", "run by agent", "stop: end".
// It calls clean for each name, to cut and escape it.
func (d Node) Head(withModel bool, clean func(string) string) string {
	title := clean(d.Title)
	switch d.Sort {
	case System:
		if title == "" {
			return d.Word
		}
		if d.removed() {
			title += " removed"
		}
		return d.Word + ", " + title
	case Assistant:
		head := d.Word
		for _, note := range d.Notes(withModel) {
			head += ", " + clean(note)
		}
		return head
	case Results:
		all, _ := d.CountResults()
		return strings.Join(append([]string{Count(all, "result")}, d.BadResults()...), ", ")
	case Compaction:
		return strings.Join(append([]string{d.Word}, d.Notes(false)...), " ")
	case Call:
		head := strings.TrimRight(d.Word+" "+title, " ")
		for _, note := range d.Notes(false) {
			head += ", " + clean(note)
		}
		return head
	case Run:
		if title == "" {
			return d.Word
		}
		return d.Word + " by " + title
	case SubGraph, Stop:
		return d.Word + ": " + title
	}
	return strings.TrimRight(clean(d.Word)+" "+title, " ")
}

// Label returns a short name for d in a list: the tool of a call, "record name" of a record, and the word for other
// nodes.
func (d Node) Label() string {
	switch d.Sort {
	case Call:
		return cmp.Or(d.Title, d.Word)
	case Record:
		return strings.TrimSpace(d.Word + " " + d.Title)
	}
	return d.Word
}

// Inside names the conversation inside d: "sub-agent: research" or "sub-graph: title". It returns "" if d cannot have
// one.
func (d Node) Inside(clean func(string) string) string {
	switch d.Sort {
	case Call:
		return "sub-agent: " + clean(d.Title)
	case SubGraph:
		return d.Word + ": " + clean(d.Title)
	}
	return ""
}

// Runs decides which starts of runs a drawing leaves out. It is used for the nodes of one conversation, in the order of
// the drawing. The zero value has seen no run.
type Runs struct {
	begun bool
	agent string // of the last run
}

// LeavesOut reports whether a drawing leaves out n: the start of the first run, or of another run by the same agent. A
// drawing shows its child as a child of its only parent. It always has a marked node (a head, or one with refs), a root
// and a merge.
func (r *Runs) LeavesOut(n *node.Node, marked bool) bool {
	// Payload would decode every node, even those before the drawn ones.
	if n.Kind() != "run_start" {
		return false
	}
	start := n.Payload().(node.RunStart)
	handedOver := r.begun && start.Agent != "" && start.Agent != r.agent
	r.begun, r.agent = true, start.Agent
	return !handedOver && !marked && n.NumParents() == 1
}

// deniedBefore returns the number of denied executions whose results are in the message n.
func deniedBefore(n *node.Node) (denied int) {
	for i := range n.NumParents() {
		if e, ok := n.Parent(i).Payload().(node.ToolExecution); ok && e.State == node.ExecutionDenied {
			denied++
		}
	}
	return denied
}

// CountResults returns the number of tool results in d and how many of them failed. Denied calls did not fail.
func (d Node) CountResults() (all, failed int) {
	for _, r := range d.Blocks.ToolResults() {
		all++
		if r.IsError {
			failed++
		}
	}
	return all, max(failed-d.Denied, 0)
}

// BadResults returns the numbers of results of failed and of denied calls, such as "1 failed" and "2 denied".
func (d Node) BadResults() (list []string) {
	if _, failed := d.CountResults(); failed > 0 {
		list = append(list, Number(failed)+" failed")
	}
	if d.Denied > 0 {
		list = append(list, Number(d.Denied)+" denied")
	}
	return list
}

// Failure returns why d failed, or "" if it did not. It is grave unless the run merely waits for a person or was
// cancelled.
func (d Node) Failure() (why string, grave bool) {
	if !d.Failed {
		return "", false
	}

	// A failed node without a stop reason is an execution.
	switch d.Stop {
	case "":
		return cmp.Or(d.State, "tool failed"), true
	case content.StopApproval, content.StopResults, content.StopCancelled:
	default:
		grave = true
	}

	if d.Sort == Stop {
		return "the run ended: " + string(d.Stop), grave
	}
	return "the response ended: " + string(d.Stop), grave
}

// Grave reports whether d failed gravely, see Failure. Drawings, pages and logs mark such nodes.
func (d Node) Grave() bool {
	_, grave := d.Failure()
	return grave
}

// Outcome returns the word for the outcome of an execution: "started", "in doubt", "denied" or "failed". It returns "" if the
// execution has a result and did not fail.
func (d Node) Outcome() string {
	if d.State == "" && d.Failed {
		return "failed"
	}
	return d.State
}

// MergeRecord is the name of the record of a merge.
const MergeRecord = "plait.merge"

// RecordLine returns the content of a record on one line of at most limit characters: the names of the branches of a
// merge, and the members of any other object.
func (d Node) RecordLine(limit int) string {
	var merge struct {
		Branches []struct {
			Name string `json:"name"`
		} `json:"branches"`
	}

	// The record of a merge written by another program may have other members. It is shown like any object.
	record := content.JSON(d.Text)
	if d.Title != MergeRecord || record.Decode(&merge) != nil || len(merge.Branches) == 0 {
		return Arguments(record, limit)
	}

	var names []string
	for _, b := range merge.Branches {
		names = append(names, b.Name)
	}
	return safetext.Clip("of "+strings.Join(names, ", "), 1, limit)
}

// WithOutcome returns the text of a result behind the word for its outcome: "failed: it rained", "started".
func WithOutcome(outcome, text string) string {
	if outcome == "" || text == "" {
		return outcome + text
	}
	return outcome + ": " + text
}

// removed reports whether d removes the prompt with its name.
func (d Node) removed() bool { return d.Sort == System && d.Title != "" && d.Text == "" }

// Elapsed returns the duration of d in a readable form; "" for less than a millisecond.
func (d Node) Elapsed() string {
	if d.Took < time.Millisecond {
		return ""
	}
	return Duration(d.Took)
}

// SeveralModels reports whether the responses among nodes name more than one model. A view then names the model of each.
func SeveralModels(nodes iter.Seq[*node.Node]) bool {
	first := ""
	for n := range nodes {
		m, _ := n.Message()
		if model := m.Answer.Model; model != "" {
			first = cmp.Or(first, model)
			if model != first {
				return true
			}
		}
	}
	return false
}
