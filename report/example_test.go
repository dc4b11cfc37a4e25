package report_test

import (
	"fmt"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/report"
)

// weather returns a run whose tool call failed with why, unless that is "".
func weather(why string) dag.DAG {
	d := dag.New().User("Weather in Paris?").Assistant("", content.ToolUse{ID: "1", Name: "get_weather", Input: `{"city":"Paris"}`})
	if why != "" {
		return d.CloseTools(node.ToolExecution{Result: content.Words(why), IsError: true}).Stop(content.StopError)
	}
	return d.CloseTools(node.ToolExecution{Result: content.Words("18 °C")}).Assistant("18 °C.").Stop(content.StopEndTurn)
}

// One of five runs failed in another way than the rest.
func Example() {
	runs := []dag.DAG{weather(""), weather(""), weather("timeout after 5.01s"), weather("no such city"), weather("timeout after 4.98s")}

	var rows []report.Row
	for i, d := range runs {
		rows = append(rows, report.Of(fmt.Sprintf("run %d", i), d.WithMetadata("variant", []string{"short", "long"}[i%2]), nil))
	}

	for _, p := range report.Paths(rows) {
		fmt.Printf("%d %s %q\n", len(p.Rows), p.Outcome, p.Step)
	}
	for _, g := range report.GroupBy(rows, "variant") {
		fmt.Println(g.Value, g.Outcomes["failed"], "of", g.Conversations, "failed")
	}

	failed, err := report.Where(rows, "failure=get_weather: no such city")
	fmt.Println(failed[0].Name, failed[0].Outcome, err)

	// Output:
	// 2 ended ""
	// 2 failed "get_weather: timeout after #s"
	// 1 failed "get_weather: no such city"
	// short 2 of 3 failed
	// long 1 of 2 failed
	// run 3 failed <nil>
}
