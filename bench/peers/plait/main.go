// Command plait does the work of the peers with Plait.
package main

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/bench/internal/peer"
	"github.com/plait-dev/plait/bench/internal/probe"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

func main() {
	peer.Serve(peer.Subject{Name: "plait", Version: "this tree", Run: run, History: history, Probes: probe.Subject{Converse: converse, Reload: reload}})
}

type tool struct{}

func (tool) Definition() content.Tool {
	return content.Tool{Name: "instant", Description: "Does nothing.", Schema: `{"type":"object"}`}
}

func (tool) Call(context.Context, executor.Call) (executor.Result, error) {
	return executor.Result{Content: ok}, nil
}

var ok = content.Words("ok")

type model struct{ loop *peer.Loop }

func (m model) Stream(context.Context, api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		if !m.loop.Next() {
			_ = yield(api.BlockEnd{Block: content.Text{Text: "Done."}}, nil) && yield(api.Finish{Stop: content.StopEndTurn}, nil)
			return
		}
		for i := range m.loop.Tools {
			if !yield(api.BlockEnd{Index: i, Block: content.ToolUse{ID: ids[i], Name: "instant", Input: "{}"}}, nil) {
				return
			}
		}
		yield(api.Finish{Stop: content.StopToolUse}, nil)
	}
}

// ids are the IDs of calls, made before anything is measured.
var ids = func() (ids [64]string) {
	for i := range ids {
		ids[i] = fmt.Sprint("call_", i)
	}
	return ids
}()

func run(ctx context.Context, loop *peer.Loop) error {
	_, err := play(ctx, loop)
	return err
}

// play runs the loop and returns its conversation.
func play(ctx context.Context, loop *peer.Loop) (dag.DAG, error) {
	var provider api.Provider = model{loop}
	if loop.HTTP {
		provider = anthropic.New("claude-x", &anthropic.Options{NoStream: true, SDK: []option.RequestOption{
			option.WithoutEnvironmentDefaults(), option.WithAPIKey("none"), option.WithBaseURL("http://localhost"),
			option.WithHTTPClient(&http.Client{Transport: peer.Anthropic{Loop: loop}}),
		}})
	}
	agent := executor.Agent{Provider: provider, Tools: []dag.Tool{tool{}}, Limits: executor.Limits{Turns: loop.Total + 1}, ToolTimeout: time.Minute}
	return agent.Run(ctx, dag.New().User("Go."))
}

func history(turns, tools int) (peer.History, error) {
	// A real run, so that the conversation has the executions and times of one.
	d, err := play(context.Background(), &peer.Loop{Tools: tools, Total: turns})
	return conversation{d}, err
}

type conversation struct{ d dag.DAG }

func (c conversation) Save() ([]byte, error) {
	var out bytes.Buffer
	err := c.d.Write(&out)
	return out.Bytes(), err
}

func (c conversation) Load(data []byte) (any, error) { return dag.Read(bytes.NewReader(data)) }

func (c conversation) Fork() any { return c.d.User("And now?") }
