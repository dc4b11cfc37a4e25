package dag_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// A ref is a name for the heads as they are: a branch to come back to, or a tag for a state that worked.
func ExampleDAG_WithRef() {
	d := dag.New().User("Name a city.").WithRef("start")
	d = d.Assistant("Tokyo.").WithRef("tokyo")
	d = d.AtRef("start").Assistant("Lima.").WithRef("lima")
	for _, r := range d.Refs() {
		fmt.Println(r.Name, d.AtRef(r.Name).Len())
	}
	fmt.Println(d.WithoutRef("tokyo").AtRef("tokyo").Err())
	// Output:
	// lima 2
	// start 1
	// tokyo 2
	// dag: AtRef: no such ref: "tokyo"
}

// What a person types is a ref, or as much of an ID as tells it apart.
func ExampleDAG_AtName() {
	d := dag.New().User("Name a city.").Assistant("Tokyo.").WithRef("tokyo").User("Another one.").Assistant("Lima.")
	id := d.Nodes()[0].ID()
	fmt.Println(d.AtName("tokyo").Text())
	fmt.Println(d.AtName(id.String()).Len(), d.AtName(node.ShortID(id)).Len())
	fmt.Println(d.AtName("cafe").Err())
	// Output:
	// Tokyo.
	// 1 1
	// dag: AtName: no such ref; "cafe": the node is not in this conversation
}

func ExampleDAG_Find() {
	d := dag.New().WithSource(node.Counting(time.Unix(0, 0))).User("Name a city.").Assistant("Tokyo.")
	n, err := d.Find("00000002")
	fmt.Println(n, err)
	_, err = d.Find("00000000-0000-7000")
	fmt.Println(errors.Is(err, dag.ErrAmbiguous))
	fmt.Println(err)
	// Output:
	// message 00000002 <nil>
	// true
	// "00000000-0000-7000": several nodes match: message 00000000-0000-7000-8000-000000000001, message 00000000-0000-7000-8000-000000000002
}

func ExampleDiff() {
	ask := dag.New().WithSource(node.Counting(time.Unix(0, 0))).System("Answer briefly.").User("Weather in Paris?")
	call := content.ToolUse{ID: "a", Name: "get_weather", Input: `{"city":"Paris","unit":"F"}`}
	old := ask.Assistant("", call).CloseTools(node.ToolExecution{Result: content.Words("64 °F\nlight rain\nwind 3")}).Assistant("64 °F.")
	call.Input = `{"city":"Paris","unit":"C"}`
	new := ask.Assistant("", call).CloseTools(node.ToolExecution{Result: content.Words("18 °C\nlight rain\nwind 3")}).Assistant("18 °C.")

	diff := dag.Diff(old, new)
	fmt.Println(diff.Common, "nodes are shared;", diff.Old, "and", diff.New, "are the first that differ")
	fmt.Println(diff)
	fmt.Println(dag.Diff(old, old))
	// Output:
	// 2 nodes are shared; message 00000003 and message 00000007 are the first that differ
	// the first 2 nodes are the same
	// ~ assistant 00000003 → 00000007
	//     call of get_weather
	//       {
	//         "city": "Paris",
	//     -   "unit": "F"
	//     +   "unit": "C"
	//       }
	// ~ tool call 00000004 → 00000008
	//     call 0 of get_weather: as above
	//     result
	//     - 64 °F
	//     + 18 °C
	//       light rain
	//       wind 3
	// ~ results   00000005 → 00000009
	//     result 0 of get_weather: as above
	// ~ assistant 00000006 → 0000000a
	//     - 64 °F.
	//     + 18 °C.
	// the conversations are the same: 6 nodes
}

// Programs read a difference as JSON.
func ExampleDifference_MarshalJSON() {
	d := dag.New().WithSource(node.Counting(time.Unix(0, 0))).User("Weather?")
	text, err := json.Marshal(dag.Diff(d.Assistant("Rain."), d.Assistant("Sun.")))
	var diff struct {
		Common  int
		Changes []struct {
			Op    string
			New   struct{ Kind, Role string }
			Parts []struct {
				Name  string
				Lines []struct{ Op, Text string }
			}
		}
	}
	err = errors.Join(err, json.Unmarshal(text, &diff))
	fmt.Printf("%+v %v\n", diff, err)
	// Output:
	// {Common:1 Changes:[{Op:changed New:{Kind:message Role:assistant} Parts:[{Name:text Lines:[{Op:removed Text:Rain.} {Op:added Text:Sun.}]}]}]} <nil>
}

// To send what all branches said, one after the other, merge them. To send one alone, add the others as sub-graphs.
func ExampleMerge() {
	start := dag.New().User("Name a city.")
	tokyo, lima := start.Assistant("Tokyo."), start.Assistant("Lima.")
	both := dag.Merge(dag.Branch{DAG: tokyo}, dag.Branch{DAG: lima})
	for _, d := range []dag.DAG{both, tokyo.SubGraph("other", lima)} {
		d = d.User("How big is it?")
		fmt.Println("sends", len(d.Messages()), "messages")
		fmt.Println(d)
	}
	// Output:
	// sends 4 messages
	// ○ user      Name a city.
	// ├─╮
	// │ ● assistant Tokyo.
	// ● │ assistant Lima.
	// ├─╯
	// ▫ record    plait.merge of branch 1, branch 2
	// ○ user      How big is it?
	// sends 3 messages
	// ○ user      Name a city.
	// ● assistant Tokyo.
	// ▣ sub-graph other → Lima.
	// │ ┊ ⋮
	// │ ┊ ● assistant Lima.
	// ○ user      How big is it?
}
