package viz_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz"
)

// A tool phase: two calls side by side, joined by the message with their results.
func ExampleMermaid() {
	d := dag.New().
		User("Weather in Tokyo and Paris?").
		Assistant("Let me look.",
			content.ToolUse{ID: "1", Name: "get_weather", Input: `{"city":"Tokyo"}`},
			content.ToolUse{ID: "2", Name: "get_weather", Input: `{"city":"Paris"}`}).
		CloseTools(
			node.ToolExecution{Index: 1, Result: content.Words("22°C")},
			node.ToolExecution{Index: 2, Result: content.Words("no such city"), IsError: true}).
		Assistant("Tokyo has 22°C; Paris is unknown to me.")

	if err := viz.Mermaid(os.Stdout, d, nil); err != nil {
		fmt.Println(err)
	}
	// Output:
	// flowchart TD
	//     classDef user fill:#e1f5fe,stroke:#01579b,color:#01579b
	//     classDef assistant fill:#e8f5e9,stroke:#1b5e20,color:#1b5e20
	//     classDef failed fill:#ffebee,stroke:#b71c1c,color:#b71c1c
	//     classDef head stroke-width:4px
	//     n0("user
	// Weather in Tokyo and Paris?"):::user
	//     n1("assistant
	// Let me look.
	// calls get_weather ×2"):::assistant
	//     n2[["get_weather(city: Tokyo)
	// 22°C"]]:::user
	//     n3[["get_weather
	// failed: no such city
	// (city: Paris)"]]:::failed
	//     n4[\"2 results, 1 failed"/]:::user
	//     n5("assistant
	// Tokyo has 22°C#59; Paris is unknown to me."):::assistant
	//     n0 --> n1
	//     n1 --> n2
	//     n1 --> n3
	//     n2 --> n4
	//     n3 --> n4
	//     n4 --> n5
	//     class n5 head
}

// Branches stay side by side, and their ends are numbered.
func ExampleMermaid_branches() {
	question := dag.New().User("Name a tree.")
	d := question.Assistant("An oak.").Join(question.Assistant("A red-black tree."))

	if err := viz.Mermaid(os.Stdout, d, nil); err != nil {
		fmt.Println(err)
	}
	// Output:
	// flowchart TD
	//     classDef user fill:#e1f5fe,stroke:#01579b,color:#01579b
	//     classDef assistant fill:#e8f5e9,stroke:#1b5e20,color:#1b5e20
	//     classDef head stroke-width:4px
	//     n0("user
	// Name a tree."):::user
	//     n1("assistant
	// An oak.
	// ◀ head 1"):::assistant
	//     n2("assistant
	// A red-black tree.
	// ◀ head 2"):::assistant
	//     n0 --> n1
	//     n0 --> n2
	//     class n1 head
	//     class n2 head
}

// What does not fit into a diagram is folded. Full asks for every node, or an error.
func ExampleOptions() {
	d := dag.New()
	for range 600 {
		d = d.User("Tell me more.").Assistant("There is more.")
	}
	fmt.Println(viz.Mermaid(io.Discard, d, nil))

	err := viz.Mermaid(io.Discard, d, &viz.Options{Full: true})
	fmt.Println(errors.Is(err, viz.ErrTooLarge))
	fmt.Println(err)
	// Output:
	// <nil>
	// true
	// too large for a Mermaid diagram: 1199 edges, the maximum is 500
}

// A picture that can be opened in a browser, or put into a document.
func ExampleSVG() {
	d := dag.New().User("Name a tree.").Assistant("An oak.")

	var picture strings.Builder
	if err := viz.SVG(&picture, d, &viz.Options{Title: "Trees"}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.Count(picture.String(), `role="listitem"`), "boxes")
	fmt.Println(strings.Contains(picture.String(), "<script"))
	// Output:
	// 2 boxes
	// false
}

// Where the boxes of a conversation stand.
func ExampleLayout() {
	d := dag.New().User("Name a tree.").Assistant("An oak.")

	p, err := viz.Layout(d, nil)
	if err != nil {
		fmt.Println(err)
	}
	for _, b := range p.Boxes {
		fmt.Println(b.X, b.Y, b.W, b.H, b.Lines)
	}
	fmt.Println(p.Edges[0].Points)
	// Output:
	// 16 16 114 48 [user Name a tree.]
	// 27 92 92 48 [assistant An oak.]
	// [{73 64} {73 92}]
}

// What leads to a node is a conversation of its own, and needs no option.
func ExampleOptions_path() {
	question := dag.New().User("Name a tree.")
	oak := question.Assistant("An oak.")
	d := oak.User("Why?").Join(question.Assistant("A red-black tree."))

	if err := viz.Mermaid(os.Stdout, d.At(oak.Head().ID()), nil); err != nil {
		fmt.Println(err)
	}
	// Output:
	// flowchart TD
	//     classDef user fill:#e1f5fe,stroke:#01579b,color:#01579b
	//     classDef assistant fill:#e8f5e9,stroke:#1b5e20,color:#1b5e20
	//     classDef head stroke-width:4px
	//     n0("user
	// Name a tree."):::user
	//     n1("assistant
	// An oak."):::assistant
	//     n0 --> n1
	//     class n1 head
}

// What "dot -Tsvg" draws.
func ExampleDOT() {
	d := dag.New().User("Name a tree.")

	if err := viz.DOT(os.Stdout, d, nil); err != nil {
		fmt.Println(err)
	}
	// Output:
	// digraph conversation {
	//   graph [
	//     fontname=monospace
	//     fontsize=10
	//   ];
	//   node [
	//     fontname=monospace
	//     fontsize=10
	//     style=filled
	//   ];
	//   edge [
	//     color="#6b7280"
	//     arrowsize=0.7
	//   ];
	//
	//   // Node definitions.
	//   n0 [
	//     label="user\nName a tree."
	//     tooltip="n0: user"
	//     shape=box
	//     fillcolor="#e1f5fe"
	//     color="#0277bd"
	//     fontcolor="#01406d"
	//     style="rounded,filled"
	//     penwidth=3
	//   ];
	// }
}
