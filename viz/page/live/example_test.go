package live_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/viz/page/live"
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
	p := open(server.URL, s.Token())
	defer p.close()
	p.until(`"state":"idle"`)
	p.post("/fork", fmt.Sprintf(`{"at":%q,"text":"And a tree?"}`, d.Nodes()[0].ID()))
	p.until(`"state":"idle"`)
	// Output:
	// 2 heads: message message
	// 2 heads: message stop_reason
}

// With Resume, whoever sees the page decides about the calls of a paused run.
func ExampleOptions_resume() {
	ctx := context.Background()
	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Call(apitest.Use("pay", map[string]int{"euros": 7})), apitest.Say("Paid.")),
		Tools: []dag.Tool{executor.Func("pay", "Pays.", func(context.Context, map[string]int) (string, error) {
			fmt.Println("paying")
			return "paid", nil
		})},
		Hooks: []executor.Hook{executor.RequireApproval("pay")},
	}
	s := live.New(dag.New(), &live.Options{Resume: agent.ResumeStream})
	defer s.Close()
	server := httptest.NewServer(s)
	defer server.Close()

	var pause executor.Continuation
	for _, err := range s.Watch(agent.Stream(ctx, dag.New().User("Pay the bill."))) {
		if paused := (*executor.PausedError)(nil); errors.As(err, &paused) {
			pause = paused.Continuation()
		}
	}
	call := s.DAG().Pending()[0]
	fmt.Println(call.Call.Name, call.Call.Input)

	// What the page does when somebody presses "Approve".
	p := open(server.URL, s.Token())
	defer p.close()
	p.until(`"paused":[{`)
	p.post("/answer", fmt.Sprintf(`{"pause":%q,"call":%q,"reply":{"approve":true}}`, pause.ID, call.Key))
	p.until(`"state":"idle"`)
	fmt.Println(s.DAG().Text())
	// Output:
	// pay {"euros":7}
	// paying
	// Paid.
}

// browser is a page without a screen.
type browser struct {
	url, token string
	events     *http.Response
	lines      *bufio.Scanner
}

func open(url, token string) *browser {
	b := &browser{url: url, token: token}
	b.events = b.send("GET", "/events", "")
	b.lines = bufio.NewScanner(b.events.Body)
	b.lines.Buffer(nil, 1<<20)
	return b
}

func (b *browser) send(method, path, body string) *http.Response {
	req, err := http.NewRequest(method, b.url+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", "Bearer "+b.token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(err)
	}
	return res
}

func (b *browser) post(path, body string) { b.send("POST", path, body).Body.Close() }

// until reads events until one has the words.
func (b *browser) until(words string) {
	for b.lines.Scan() && !strings.Contains(b.lines.Text(), words) {
	}
}

func (b *browser) close() {
	b.events.Body.Close()
	http.DefaultClient.CloseIdleConnections()
}

// An Index lists conversations, each with a page of its own. In a service, List and Open read its store.
func ExampleIndex() {
	talks := map[string]dag.DAG{"trees": dag.New().User("Name a tree."), "birds": dag.New().User("Name a bird.")}
	index := live.NewIndex(&live.IndexOptions{
		List: func(context.Context) (list []live.Entry, err error) {
			for _, key := range slices.Sorted(maps.Keys(talks)) {
				list = append(list, live.Entry{Key: key})
			}
			return list, nil
		},
		Open: func(_ context.Context, key string) (*live.Server, error) {
			d, ok := talks[key]
			if !ok {
				return nil, fmt.Errorf("there is no conversation %q", key)
			}
			return live.New(d, nil), nil
		},
	})
	defer index.Close()
	server := httptest.NewServer(index)
	defer server.Close()

	b := &browser{url: server.URL, token: index.Token()}
	defer http.DefaultClient.CloseIdleConnections()
	res := b.send("GET", "/list", "")
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	fmt.Println(strings.TrimSpace(string(text)), err)
	// Output:
	// {"entries":[{"key":"birds","path":"c/YmlyZHM/"},{"key":"trees","path":"c/dHJlZXM/"}]} <nil>
}
