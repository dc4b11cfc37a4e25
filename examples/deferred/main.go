// Command deferred lets another process execute the tools at any later time. The two processes share only JSON files in
// the folder handover. The agent writes a task for each call and ends. A worker, which does not know the conversation,
// turns tasks into results. The agent then resumes with all or some of the results. Every step can be repeated, even
// after it was killed halfway: nothing is lost or said twice.
//
//	go run ./examples/deferred ask      # sends the request; the model calls three tools; writes the calls as tasks
//	go run ./examples/deferred work 2   # executes two tasks; without a number, all of them
//	go run ./examples/deferred resume   # resumes with the available results, until the model has answered
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	switch step := strings.Join(args[:min(1, len(args))], ""); step {
	case "ask":
		return ask(ctx, out)
	case "work":
		return work(args[1:], out)
	case "resume":
		return resume(ctx, out)
	}
	return errors.New("usage: deferred ask | work [number] | resume")
}

// stock declares the tool for the agent, without its implementation.
var stock = executor.DeferredTool(content.Tool{
	Name: "count_stock", Description: "Somebody in the warehouse counts the bolts.",
	Schema: `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`,
})

var agent = executor.Agent{Provider: apitest.NewScript(apitest.Func(answer).Always()), Tools: []dag.Tool{stock}}

// ask begins the conversation. If there is one already, ask resumes it.
func ask(ctx context.Context, out io.Writer) error {
	if _, err := os.Stat(conversation); err == nil {
		return resume(ctx, out)
	}
	d, err := agent.Run(ctx, dag.New().Tools(stock).User("Where do we have the most bolts?"))
	return store(out, d, err)
}

// resume continues the conversation with the available results.
func resume(ctx context.Context, out io.Writer) error {
	d, err := dag.Load(conversation)
	if err != nil {
		return err
	}

	replies, err := collect(d)
	if err != nil {
		return err
	}

	// After a crash nothing may be pending: Resume then continues as Run does.
	d, err = agent.Resume(ctx, d, replies...)

	// The model has answered before: only the output is repeated.
	if errors.Is(err, executor.ErrAnswered) {
		err = nil
	}
	return store(out, d, err)
}

// collect reads the available results.
func collect(d dag.DAG) (replies []executor.Reply, err error) {
	for _, p := range d.Pending() {
		saved, err := os.ReadFile(at(results, p.Key))

		// The call has no result yet. Resume takes the others and pauses again.
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}

		var reply executor.Reply
		if err == nil {
			err = json.Unmarshal(saved, &reply)
		}
		if err != nil {
			return nil, fmt.Errorf("the result of %s: %w", p.Key, err)
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

// store saves the conversation first, because the other files can be made from it again. Then it prints it.
func store(out io.Writer, d dag.DAG, failure error) error {
	if err := errors.Join(os.MkdirAll(tasks, 0o777), os.MkdirAll(results, 0o777), d.Save(conversation)); err != nil {
		return errors.Join(failure, err)
	}

	fmt.Fprintf(out, "%v\n\n", d)
	if failure == nil {
		fmt.Fprintf(out, "Answer: %s\n", d.Text())
	}

	// Only a paused run leaves something to do for a worker.
	if !errors.Is(failure, executor.ErrPaused) {
		return failure
	}

	// All calls of this agent are deferred and none asks for approval: task i is that of pending call i.
	made, err := executor.ToolTaskCodec{}.Encode(d, nil)
	for i, task := range made {
		file := at(tasks, d.Pending()[i].Key)
		err = errors.Join(err, write(file, task))
		fmt.Fprintf(out, "waiting for %s\n", file)
	}
	return err
}

// answer is the model. It runs in a new process each time and knows only the request.
func answer(req api.Request) apitest.Turn {
	counted := req.Messages[len(req.Messages)-1].Blocks.ToolResults()
	if len(counted) == 0 {
		return apitest.Say("I let somebody count.").Call(
			apitest.Use("count_stock", Place{"Lima"}), apitest.Use("count_stock", Place{"Oslo"}),
			apitest.Use("count_stock", Place{"Rome"}))
	}
	return apitest.Say(fmt.Sprintf("Lima has %s, Oslo %s; in Rome %s.",
		counted[0].Content.Text(), counted[1].Content.Text(), counted[2].Content.Text()))
}

// work is the other program. It executes the tasks without a result, all or up to a number of them. If it is killed
// after executing a task and before writing the result, the next run executes the task again: only the tool can prevent
// that.
func work(args []string, out io.Writer) error {
	maxTasks := -1 // no limit
	if len(args) > 0 {
		var err error
		if maxTasks, err = strconv.Atoi(args[0]); err != nil {
			return err
		}
	}

	files, err := filepath.Glob(filepath.Join(tasks, "*.json"))
	done := 0
	for _, task := range files {
		result := filepath.Join(results, filepath.Base(task))
		if _, missing := os.Stat(result); missing == nil || done == maxTasks {
			continue
		}
		if failure := carryOut(task, result); failure != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", task, failure)) // continue with the other tasks
			continue
		}
		fmt.Fprintf(out, "%s → %s\n", task, result)
		done++
	}

	fmt.Fprintf(out, "%d done\n", done)
	return err
}

// carryOut executes the task in a file and writes the result file.
func carryOut(file, result string) error {
	saved, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	task, err := executor.ToolTaskCodec{}.Decode(saved)
	if err != nil {
		return err
	}
	reply, err := json.Marshal(count(task.Pending))
	if err != nil {
		return err
	}
	return write(result, reply)
}

// Place is the arguments of the tool.
type Place struct {
	City string `json:"city"`
}

var shelves = map[string]string{"Lima": "1,200 bolts", "Oslo": "4,700 bolts"}

// count is the tool's implementation.
func count(p dag.Pending) executor.Reply {
	var in Place
	if err := p.Call.Input.Decode(&in); err != nil {
		return executor.Failed(p, err.Error())
	}
	if bolts, ok := shelves[in.City]; ok {
		return executor.Returned(p, executor.Result{Content: content.Words(bolts)})
	}
	return executor.Failed(p, "there is no warehouse in "+in.City)
}

// The files. The conversation is the state. Beside it are a task and a result for each call.
var (
	conversation = filepath.Join("handover", "conversation.json")
	tasks        = filepath.Join("handover", "tasks")
	results      = filepath.Join("handover", "results")
)

// at returns the file for a pending call.
func at(folder string, call node.CallKey) string {
	return filepath.Join(folder, fmt.Sprintf("%s-%d.json", call.Message, call.Index))
}

// write replaces a file atomically: a reader sees the whole file or none.
func write(file string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(file), "*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // fails harmlessly after the rename
	_, err = temp.Write(data)
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), file)
}
