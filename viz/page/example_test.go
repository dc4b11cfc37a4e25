package page_test

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/report"
	"github.com/plait-dev/plait/viz/page"
)

func ExampleWrite() {
	d := dag.New().User("What is a DAG?").Assistant("A graph without cycles.")

	var file bytes.Buffer
	if err := page.Write(&file, d, &page.Options{Title: "Graphs"}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.Contains(file.String(), "<title>Graphs</title>"))
	fmt.Println(strings.Contains(file.String(), "https://"))
	// Output:
	// true
	// false
}

// The program knows which provider it asks, and so which request an answer was given to.
func ExampleOptions() {
	d := dag.New().User("What is a DAG?").Assistant("A graph without cycles.")

	var file bytes.Buffer
	err := page.Write(&file, d, &page.Options{
		Request: func(before dag.DAG, _ *node.Node) ([]byte, error) {
			said := before.Messages()
			return fmt.Appendf(nil, `{"model":"mine","prompt":%q}`, said[len(said)-1].Blocks.Text()), nil
		},
	})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.Contains(file.String(), `\"prompt\":\"What is a DAG?\"`))
	// Output:
	// true
}

// A page about many conversations.
func ExampleWriteReport() {
	rows := []report.Row{
		report.Of("runs/1.json", dag.New().User("What is a DAG?").Assistant("A graph without cycles."), nil),
		report.Of("runs/2.json", dag.New().User("What is a DAG?"), nil),
	}

	var file bytes.Buffer
	if err := page.WriteReport(&file, rows, &page.ReportOptions{Title: "Two runs"}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.Contains(file.String(), "<title>Two runs</title>"))
	// Output:
	// true
}

// What must not be handed on is erased before.
func ExampleWrite_redacted() {
	d := dag.New().User("My password is hunter2.").Assistant("I will not tell.")
	question := d.Nodes()[0]

	var file bytes.Buffer
	if err := page.Write(&file, d.Redact(question.ID()), nil); err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.Contains(file.String(), "hunter2"))
	// Output:
	// false
}
