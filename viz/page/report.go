package page

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/report"
	"github.com/plait-dev/plait/viz/page/internal/web"
)

// ReportOptions configure a page about many conversations. The zero value and nil are the defaults.
type ReportOptions struct {
	// Title is the heading and the title of the browser's tab. Defaults to "Conversations".
	Title string
	// Currency is the currency of the costs in the rows. Defaults to none: costs are not shown.
	Currency string
}

// WriteReport writes a page about many conversations:
//
//   - their rows, with filters, groups and sorting;
//   - their paths, as a matrix with the step at which they part;
//   - the tools and the models.
//
// A reader can choose conversations and compare them from their common ancestor. The page shows commands with the name
// of a row, so the name should be a FILE for the command plait.
//
// Like the page of [Write] it is one self-contained HTML file, and the texts are untrusted. It holds the first steps of
// each conversation with the beginning of their texts, up to 100,000 in all ([report.StepShare]). WriteReport sets the
// paths of the rows ([report.Paths]). It returns the error of the writer unchanged.
func WriteReport(w io.Writer, rows []report.Row, o *ReportOptions) error {
	if o == nil {
		o = &ReportOptions{}
	}

	sum := report.Sum(rows)
	data := reportData{
		Currency: safetext.Line(o.Currency, 20),
		// Empty lists in JSON, not null.
		Outcomes: []string{}, Rows: []reportRow{}, Paths: []reportPath{}, Tools: []string{}, Models: []string{},
	}
	for _, p := range report.Paths(rows) {
		data.Paths = append(data.Paths, withCells(p, rows[p.Rows[0]].Steps()))
	}
	for _, g := range report.GroupBy(rows, "outcome") {
		data.Outcomes = append(data.Outcomes, g.Value)
	}

	t := reportTables{steps: map[stepKey]int{}, labels: labelNames(rows), tools: map[string]int{}, models: map[string]int{}}
	for i, tool := range sum.Tools {
		data.Tools = append(data.Tools, safetext.Line(tool.Name, 100))
		t.tools[tool.Name] = i
	}
	for i, m := range sum.Models {
		data.Models = append(data.Models, safetext.Line(m.Model, 100))
		t.models[m.Model] = i
	}

	// All rows share a fixed number of steps and of times, to limit the size of the page.
	t.maxSteps = report.StepShare(len(rows))
	t.maxTimes = max(reportTimes/max(len(rows)*len(sum.Tools), 1), minTimes)
	for _, r := range rows {
		data.Rows = append(data.Rows, t.row(r))
	}
	data.Steps = t.list
	return web.WriteReport(w, cmp.Or(o.Title, "Conversations"), data)
}

// reportData is the data for the page's script.
type reportData struct {
	Currency string      `json:"currency,omitempty"`
	Outcomes []string    `json:"outcomes"` // the most frequent first
	Rows     []reportRow `json:"rows"`
	// Steps are the steps of all rows, each once.
	Steps []reportStep `json:"steps"`
	Paths []reportPath `json:"paths"`
	// Tools and Models are the names, in order.
	Tools  []string `json:"tools"`
	Models []string `json:"models"`
}

// reportPath is a path with its row of the matrix: the steps from index From on.
type reportPath struct {
	report.Path
	From  int          `json:"from"`
	Cells []reportStep `json:"cells"`
}

// maxCells is the number of steps in a row of the matrix. cellsBefore of them precede the step at which the path parts
// from its base.
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

// reportTool sums up the calls of a tool in one conversation.
type reportTool struct {
	Tool   int `json:"tool"` // an index in the tools of all conversations
	Calls  int `json:"calls"`
	Failed int `json:"failed,omitempty"`
	Timed  int `json:"timed,omitempty"`
	// Times are the times of the timed calls in milliseconds, sorted; if there are many, a sample at equal distances.
	Times []float64 `json:"times,omitempty"`
}

// reportTimes limits the times of calls on a page. Each tool of each conversation has an equal share, but at least
// minTimes.
const (
	reportTimes = 200_000
	minTimes    = 5
)

// reportModel sums up the responses of a model in one conversation.
type reportModel struct {
	Model     int      `json:"model"` // an index in the models of all conversations
	Responses int      `json:"responses"`
	Input     int64    `json:"input"`
	Output    int64    `json:"output"`
	Cached    int64    `json:"cached"`
	Cost      *float64 `json:"cost,omitempty"`
	Known     *float64 `json:"known,omitempty"`
	Estimated bool     `json:"estimated,omitempty"`
}

// reportRow is a conversation. Its texts are clean.
type reportRow struct {
	Name    string            `json:"name"`
	Error   string            `json:"error,omitempty"`
	Outcome string            `json:"outcome"`
	Stop    string            `json:"stop,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
	Turns   int               `json:"turns"`
	Calls   int               `json:"calls"`
	Failed  int               `json:"failed"`
	Tokens  int64             `json:"tokens"`
	Cost    *float64          `json:"cost,omitempty"`
	Known   *float64          `json:"known,omitempty"`
	Money   string            `json:"money"`
	// Estimated reports that some tokens have no price of their own.
	Estimated bool           `json:"estimated,omitempty"`
	Took      int64          `json:"took"` // in milliseconds
	Began     string         `json:"began,omitempty"`
	Failure   *reportFailure `json:"failure,omitempty"`
	Cause     *reportFailure `json:"cause,omitempty"`
	Answer    string         `json:"answer,omitempty"`
	Model     string         `json:"model,omitempty"`
	Path      int            `json:"path"`
	Tools     []reportTool   `json:"tools,omitempty"`
	Models    []reportModel  `json:"models,omitempty"`
	// Steps are indexes in the steps of all rows, and Nodes the names of their nodes, all of one length. Total is the
	// number of all steps.
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

// reportTables gives each step, label, tool and model a number or name for all rows. Steps with the same content and
// text have one number: two rows share a step if and only if they have the same content up to it.
type reportTables struct {
	list          []reportStep
	steps         map[stepKey]int
	labels        map[string]string // by the key
	tools, models map[string]int    // by the name

	maxSteps, maxTimes int // of a row
}

type stepKey struct {
	content uint64
	text    string
}

// labelNames returns the displayed name of each key of the metadata. No two keys have the same name.
func labelNames(rows []report.Row) map[string]string {
	keys := map[string]bool{}
	for _, r := range rows {
		for key := range r.Labels {
			keys[key] = true
		}
	}

	const width = 60
	names, taken := map[string]string{}, map[string]bool{}

	// By name: the last number appended to it. Many keys with the same beginning then need no long search.
	numbered := map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		plain := safetext.Line(key, width)
		name, n := plain, max(numbered[plain], 1)
		for taken[name] {
			n++
			mark := fmt.Sprintf(" (%d)", n)
			name = safetext.Line(key, width-len(mark)) + mark
		}
		numbered[plain] = n
		names[key], taken[name] = name, true
	}
	return names
}

// failureOf returns a failure with its kind, the value of the key; nil for none.
func failureOf(r report.Row, f *report.Failure, key string) *reportFailure {
	if f == nil {
		return nil
	}
	kind, _ := r.Value(key)
	return &reportFailure{f.Node, f.Text, kind}
}

// row returns a row with the numbers of its first steps.
func (t *reportTables) row(r report.Row) reportRow {
	money := r.Spending
	money.Unpriced = nil // the page lists the models
	row := reportRow{
		Name: safetext.Row(r.Name), Error: safetext.Line(r.Error, 400), Outcome: r.Outcome, Stop: safetext.Line(string(r.Stop), 60),
		Turns: r.Turns, Calls: r.Calls, Failed: r.FailedCalls, Tokens: r.Usage.Total(),
		Cost: r.Cost, Known: r.Known, Money: money.Money(), Estimated: r.Estimated,
		Took: r.Took.Milliseconds(), Answer: r.Answer, Path: r.Path, Steps: []int{}, Total: r.NumSteps,
	}

	row.Model, _ = r.Value("model")
	row.Model = safetext.Line(row.Model, 200)
	if !r.Began.IsZero() {
		row.Began = r.Began.UTC().Format(time.DateTime) + " UTC"
	}
	row.Failure, row.Cause = failureOf(r, r.Failure, "failure"), failureOf(r, r.Cause, "cause")
	for key, value := range r.Labels {
		if row.Labels == nil {
			row.Labels = map[string]string{}
		}
		row.Labels[t.labels[key]] = value
	}

	for _, tool := range r.Tools {
		sums := reportTool{Tool: t.tools[tool.Name], Calls: tool.Calls, Failed: tool.Failed, Timed: tool.Timed}
		for _, took := range tool.Times(t.maxTimes) {
			sums.Times = append(sums.Times, float64(took.Round(100*time.Microsecond))/1e6)
		}
		row.Tools = append(row.Tools, sums)
	}
	for _, m := range r.Models {
		row.Models = append(row.Models, reportModel{
			t.models[m.Model], m.Responses, m.Usage.Input, m.Usage.Output, m.Usage.CacheRead, m.Cost, m.Known, m.Estimated,
		})
	}

	// All names of nodes have the same length, so one string holds them without separators.
	var nodes strings.Builder
	steps := r.Steps()
	for _, step := range steps[:min(len(steps), t.maxSteps)] {
		key := stepKey{step.Content, step.Text}
		at, ok := t.steps[key]
		if !ok {
			at = len(t.list)
			t.steps[key] = at
			t.list = append(t.list, reportStep{step.Label, step.Kind, step.Text, step.Failed})
		}
		row.Steps = append(row.Steps, at)
		nodes.WriteString(step.Node)
	}
	row.Nodes = nodes.String()
	return row
}
