package durable_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/durable"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/viz/page/live"
)

// livePages returns a list of the conversations with durable runs, and a page for each, which takes approvals. List shows
// the last run of a conversation.
func livePages(engine *durable.Engine) *live.Index {
	list := func(ctx context.Context) (entries []live.Entry, err error) {
		runs, err := engine.Runs(ctx, durable.RunsRequest{})
		seen := map[string]bool{}
		for _, r := range runs {
			if !seen[r.Conversation] {
				entries = append(entries, live.Entry{
					Key: r.Conversation, State: string(r.State), Detail: r.Reason, Waits: r.State == durable.Waiting, Changed: r.Changed,
				})
			}
			seen[r.Conversation] = true
		}
		return entries, err
	}

	open := func(ctx context.Context, key string) (*live.Server, error) {
		c, err := engine.Store().Head(ctx, key, store.Main)
		if err != nil {
			return nil, err
		}
		page := live.New(c.DAG(), &live.Options{Title: key})
		reply := func(ctx context.Context, reply executor.Reply) error {
			reply.By = "operator"
			return engine.Reply(ctx, key, "", reply)
		}
		show := func(d dag.DAG) {
			page.Set(d)
			page.SetPaused(live.Paused{Continuation: executor.ContinuationOf(d), Reply: reply})
		}

		// The context ends when the page is closed.
		show(c.DAG())
		go func() {
			for d, err := range c.Watch(ctx) {
				if page.Report(err); err == nil {
					show(d)
				}
			}
		}()
		return page, nil
	}
	return live.NewIndex(&live.IndexOptions{Title: "Support", List: list, Open: open})
}

// A person approves a call on a page of package live. Nothing of it is in the process of the run.
func Example_livePages() {
	ctx, stop := context.WithCancel(context.Background())
	db, closeDB := open(ctx)
	defer closeDB()
	engine, err := durable.Open(ctx, db, &durable.Options{
		Agents: map[string]executor.Agent{"support": {
			Provider: apitest.NewScript(apitest.Call(apitest.Use("refund", order{"A-7"})), apitest.Say("A-7 was refunded.")),
			Tools:    []dag.Tool{executor.Func("refund", "Refunds an order.", refund)},
			Hooks:    []executor.Hook{executor.RequireApproval("refund")},
		}},
		Log: quiet,
	})
	check(err)
	defer engine.Close()
	served := make(chan error)
	go func() { served <- engine.Serve(ctx) }()

	run, err := engine.Start(ctx, durable.StartRequest{Agent: "support", Conversation: "customer 7", Text: "Please refund A-7."})
	check(err)
	call := waitForApproval(ctx, engine, "customer 7")
	c, err := engine.Store().Conversation(ctx, "customer 7")
	check(err)

	pages := livePages(engine)
	defer pages.Close()
	server := httptest.NewServer(pages)
	defer server.Close()
	var list struct {
		Entries []struct{ Path, State string }
	}
	sendTo(server.URL+"/list", pages.Token(), "GET", "", &list)
	fmt.Println(list.Entries[0].State)

	// What the page does when somebody presses "Approve".
	body := fmt.Sprintf(`{"pause":%q,"call":%q,"reply":{"approve":true}}`, executor.ContinuationOf(c.DAG()).ID, call.Key)
	sendTo(server.URL+"/"+list.Entries[0].Path+"answer", pages.Token(), "POST", body, nil)

	end, err := engine.Wait(ctx, run)
	check(err)
	fmt.Println(end.State)
	stop()
	check(<-served)
	// Output:
	// waiting
	// done
}

// sendTo sends a request to a page, and reads its response if there is one.
func sendTo(url, token, method, body string, response any) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	check(err)
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	check(err)
	defer http.DefaultClient.CloseIdleConnections()
	defer res.Body.Close()
	if res.StatusCode >= 300 {
		panic(res.Status)
	}
	if response != nil {
		check(json.NewDecoder(res.Body).Decode(response))
	}
}
