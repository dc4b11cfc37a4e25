package page

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/report"
	"github.com/plait-dev/plait/viz/internal/web"
)

// ReportOptions change what a page about many conversations shows. The zero value and nil are the defaults.
type ReportOptions struct {
	// Title is the heading and the title of the browser's tab. Defaults to "Conversations".
	Title string
	// Currency is the currency of the costs in the rows. Defaults to none: costs are not shown.
	Currency string
}

// WriteReport writes a page about many conversations: their rows, with filters, groups and sorting; the paths that they
// took, as a matrix that shows where they part; and the tools and models. Conversations that are chosen are compared
// from their common ancestor. The name of a row should be what plait accepts as a FILE, because the page shows commands
// with it.
//
// Like the page of [Write] it is one self-contained HTML file, and the texts are untrusted. It holds the first steps of
// each conversation with the beginning of their texts, up to 100,000 in all ([report.StepShare]). WriteReport sets the paths of the rows
// ([report.Paths]). It returns the error of the writer unchanged.
func WriteReport(w io.Writer, rows []report.Row, o *ReportOptions) error {
	if o == nil {
		o = &ReportOptions{}
	}

	sum := report.Sum(rows)
	data := reportData{
		Currency: safetext.Line(o.Currency, 20),
		Rows:     []reportRow{}, Paths: []reportPath{}, Tools: []report.Tool{}, Models: []reportModel{}, // not nil: in JSON they are lists
	}
	for _, p := range report.Paths(rows) {
		data.Paths = append(data.Paths, withCells(p, rows[p.Rows[0]].Steps()))
	}
	for _, outcome := range report.Outcomes() {
		if sum.Outcomes[outcome] > 0 {
			data.Outcomes = append(data.Outcomes, outcome)
		}
	}
	for _, tool := range sum.Tools {
		tool.Name = safetext.Line(tool.Name, 100)
		data.Tools = append(data.Tools, tool)
	}
	for _, m := range sum.Models {
		m.Model = safetext.Line(m.Model, 100)
		data.Models = append(data.Models, reportModel{m, m.Money()})
	}

	known := stepTable{at: map[stepKey]int{}}
	for _, r := range rows {
		data.Rows = append(data.Rows, known.row(r, report.StepShare(len(rows))))
	}
	data.Steps = known.list
	return web.WriteReport(w, cmp.Or(o.Title, "Conversations"), plainReport(rows), data)
}

// reportData is what the script of the page reads.
type reportData struct {
	Currency string           `json:"currency,omitempty"`
	Outcomes []report.Outcome `json:"outcomes"`
	Rows     []reportRow      `json:"rows"`
	// Steps are the steps of all rows, each once.
	Steps  []reportStep  `json:"steps"`
	Paths  []reportPath  `json:"paths"`
	Tools  []report.Tool `json:"tools"`
	Models []reportModel `json:"models"`
}

// reportPath is a path with its row of the matrix: the steps from index From on.
type reportPath struct {
	report.Path
	From  int          `json:"from"`
	Cells []reportStep `json:"cells"`
}

// maxCells is the number of steps in a row of the matrix, and cellsBefore how many of them come before the step at which
// the path parts from its base.
const (
	maxCells    = 28
	cellsBefore = 20
)

// withCells returns a path with the steps around its parting.
func withCells(p report.Path, steps []report.Step) reportPath {
	row := reportPath{Path: p, From: max(p.Same-cellsBefore, 0), Cells: []reportStep{}}
	for _, step := range steps[row.From:min(row.From+maxCells, len(steps))] {
		row.Cells = append(row.Cells, reportStep{Label: step.Label, Kind: step.Kind, Failed: step.Failed})
	}
	return row
}

type reportModel struct {
	report.ModelSpending
	Money string `json:"money"`
}

// reportRow is a conversation. Its texts are clean.
type reportRow struct {
	Name    string            `json:"name"`
	Error   string            `json:"error,omitempty"`
	Outcome report.Outcome    `json:"outcome"`
	Stop    string            `json:"stop,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Turns   int               `json:"turns"`
	Calls   int               `json:"calls"`
	Failed  int               `json:"failed"`
	Tokens  int64             `json:"tokens"`
	Cost    *float64          `json:"cost,omitempty"`
	Known   *float64          `json:"known,omitempty"`
	Money   string            `json:"money"`
	Took    int64             `json:"took"` // in milliseconds
	Began   string            `json:"began,omitempty"`
	Failure *reportFailure    `json:"failure,omitempty"`
	Answer  string            `json:"answer,omitempty"`
	Model   string            `json:"model,omitempty"`
	Path    int               `json:"path"`
	// Steps are indexes in the steps of all rows, and Nodes the names of their nodes, 8 digits each. Total is the number
	// of all steps.
	Steps []int  `json:"steps"`
	Nodes string `json:"nodes,omitempty"`
	Total int    `json:"total"`
}

type reportFailure struct {
	Node string `json:"node"`
	Text string `json:"text"`
	Kind string `json:"kind"`
}

type reportStep struct {
	Label  string `json:"label"`
	Kind   string `json:"kind"`
	Text   string `json:"text,omitempty"`
	Failed bool   `json:"failed,omitempty"`
}

// stepTable numbers steps. Steps with the same digest and text have one number, so that two rows share a step exactly if
// they have the same content up to it.
type stepTable struct {
	list []reportStep
	at   map[stepKey]int
}

type stepKey struct{ digest, text string }

// row returns a row with the numbers of its first steps.
func (t *stepTable) row(r report.Row, maxSteps int) reportRow {
	row := reportRow{
		Name: safetext.Row(r.Name), Error: safetext.Line(r.Error, 400), Outcome: r.Outcome, Stop: safetext.Line(string(r.Stop), 60),
		Turns: r.Turns, Calls: r.Calls, Failed: r.FailedCalls, Tokens: r.Usage.Total(), Cost: r.Cost, Known: r.Known, Money: r.Money(),
		Took: r.Took.Milliseconds(), Answer: r.Answer, Path: r.Path, Steps: []int{}, Total: r.NumSteps,
	}
	row.Model, _ = r.Value("model")
	row.Model = safetext.Line(row.Model, 200)
	if !r.Began.IsZero() {
		row.Began = r.Began.UTC().Format(time.DateTime) + " UTC"
	}
	if r.Failure != nil {
		kind, _ := r.Value("failure")
		row.Failure = &reportFailure{r.Failure.Node, r.Failure.Text, kind}
	}
	for key, value := range r.Labels {
		if row.Labels == nil {
			row.Labels = map[string]string{}
		}
		row.Labels[safetext.Line(key, 60)] = value
	}

	var nodes strings.Builder
	steps := r.Steps()
	for _, step := range steps[:min(len(steps), maxSteps)] {
		key := stepKey{step.Digest, step.Text}
		at, ok := t.at[key]
		if !ok {
			at = len(t.list)
			t.at[key] = at
			t.list = append(t.list, reportStep{step.Label, step.Kind, step.Text, step.Failed})
		}
		row.Steps = append(row.Steps, at)
		nodes.WriteString(step.Node)
	}
	row.Nodes = nodes.String()
	return row
}

// plainReport returns the rows as text.
func plainReport(rows []report.Row) string {
	var out strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&out, "%s  %s\n", r.Outcome, safetext.Row(r.Name))
		lines := []string{r.Error, r.Answer}
		if r.Failure != nil {
			lines = slices.Insert(lines, 1, r.Failure.Node+" "+r.Failure.Text)
		}
		for _, line := range lines {
			if line != "" {
				out.WriteString("  " + safetext.Line(line, 200) + "\n")
			}
		}
	}
	return out.String()
}
