package background

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/node"
)

// Work is a tool call that was answered "started", and whose result is not in the conversation yet.
type Work struct {
	// ID is the number of the work in its conversation, as the model knows it.
	ID int
	// Call is the key of its call.
	Call node.CallKey
	// Tool is the name of the tool, and Input has the arguments.
	Tool  string
	Input content.JSON
	// Started is the time of the call.
	Started time.Time

	asked content.ToolUse // the call as the model wrote it
}

// Open returns the open work of a conversation, in the order of the IDs. It visits every node.
func Open(d dag.DAG) []Work {
	open, _ := openIn(d)
	return open
}

// openIn returns the open work of a conversation, and the greatest ID of any work in it.
func openIn(d dag.DAG) (open []Work, last int) {
	nodes, last := lineage.OpenWork(slices.Values(d.Nodes()))
	for _, n := range nodes {
		e, _ := n.Payload().(node.ToolExecution)
		key, _ := n.Call()
		open = append(open, Work{
			ID: lineage.WorkID(e), Call: key, Tool: cmp.Or(e.Ran.Tool, e.Tool), Input: cmp.Or(e.Ran.Input, e.Input),
			Started: e.Started, asked: content.ToolUse{Name: e.Tool, Input: e.Input},
		})
	}
	slices.SortStableFunc(open, func(a, b Work) int { return cmp.Compare(a.ID, b.ID) })
	return open, last
}

// details returns the Details of an execution that holds work.
func details(id int) (content.JSON, error) {
	text, err := json.Marshal(map[string]int{lineage.WorkKey: id})
	return content.JSON(text), err
}

// label names work in a text for the model.
func (w Work) label() string { return "Background work " + strconv.Itoa(w.ID) + " (" + w.Tool + ")" }
