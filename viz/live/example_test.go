package live_test

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/viz/live"
)

// A run is watched by going through Watch on its way to the program.
func Example() {
	model := apitest.NewScript(apitest.Say("A graph without cycles."))
	d := dag.New().User("What is a DAG?")

	s := live.New(d, nil)
	defer s.Close()
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go s.Serve(l)
	fmt.Println(strings.Contains(s.URL(l.Addr()), "/#token=")) // for whoever is to look

	for event, err := range s.Watch(executor.Stream(context.Background(), model, d)) {
		if end, ok := event.(executor.End); ok {
			fmt.Println(end.DAG.Text(), err)
		}
	}
	// Output:
	// true
	// A graph without cycles. <nil>
}

// With Run, whoever sees the page can go on from any node.
func ExampleOptions_run() {
	model := apitest.NewScript(apitest.Say("A graph without cycles, too."))
	d := dag.New().User("What is a DAG?").Assistant("A graph without cycles.")

	s := live.New(d, &live.Options{
		Run: func(ctx context.Context, d dag.DAG) iter.Seq2[executor.Event, error] {
			return executor.Stream(ctx, model, d)
		},
		Save: func(d dag.DAG) error {
			fmt.Println(len(d.Heads()), "heads:", d.Heads()[0].Kind(), d.Heads()[1].Kind())
			return nil
		},
	})
	defer s.Close()
	server := httptest.NewServer(s)
	defer server.Close()

	// What the page does when somebody asks something else in place of the question's answer.
	ask := func(method, path, body string) *http.Response {
		req, err := http.NewRequest(method, server.URL+path, strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Authorization", "Bearer "+s.Token())
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			panic(err)
		}
		return res
	}
	events := ask("GET", "/events", "")
	defer events.Body.Close()
	lines := bufio.NewScanner(events.Body)
	lines.Buffer(nil, 1<<20)
	until := func(what string) {
		for lines.Scan() && !strings.Contains(lines.Text(), what) {
		}
	}
	until(`"state":"idle"`)
	ask("POST", "/fork", fmt.Sprintf(`{"at":%q,"text":"And a tree?"}`, d.Nodes()[0].ID())).Body.Close()
	until(`"state":"idle"`)
	http.DefaultClient.CloseIdleConnections()
	// Output:
	// 2 heads: message message
	// 2 heads: message stop_reason
}
