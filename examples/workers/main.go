// Command workers refunds three orders with a few processes: one that asks the model, and workers that execute its tool
// calls. A worker is killed in the middle of a call; another one executes the call again, and the runs finish. The model
// is simulated.
//
//	go run ./examples/workers                                # a temporary SQLite database
//	go run ./examples/workers postgres://localhost/DATABASE  # PostgreSQL
//
// The program starts itself again for each process, with a role:
//
//	workers engine DATABASE
//	workers worker DATABASE NAME
//
// They share nothing but the database. With PostgreSQL they could run on three machines.
//
// With kill, it runs a whole shop: services for web front ends, runners of the agent, and workers. They are killed at
// random moments while customers order. Then every order is checked. kill.sh does this on PostgreSQL too, and shows
// River's UI meanwhile: see README.md.
//
//	go run ./examples/workers kill KILLS [DATABASE]
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/durable"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/store/postgres"
	"github.com/plait-dev/plait/store/sqlite"
)

func main() {
	if err := start(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// start runs the role named in the arguments.
func start(ctx context.Context, args []string, out io.Writer) error {
	switch {
	case len(args) == 0:
		folder, err := os.MkdirTemp("", "plait-workers-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		return refundAll(ctx, filepath.Join(folder, "runs.db"), out)

	case args[0] == "engine" && len(args) == 2:
		return serve(ctx, args[1], engine())
	case args[0] == "worker" && len(args) == 3:
		return serve(ctx, args[1], worker(args[2], out))
	case args[0] == "service" && len(args) == 2:
		return service(ctx, args[1])
	case args[0] == "runner" && len(args) == 2:
		return serve(ctx, args[1], runner())
	case args[0] == "clerk" && len(args) == 3:
		return serve(ctx, args[1], clerk(args[2]))
	case args[0] == "kill" && (len(args) == 2 || len(args) == 3):
		kills, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return killAll(ctx, strings.Join(args[2:], ""), kills, out)
	case len(args) == 1:
		return refundAll(ctx, args[0], out)
	}
	return errors.New("usage: workers [DATABASE | kill KILLS [DATABASE] | engine DATABASE | worker DATABASE NAME]")
}

// engine returns the options of a process that executes runs.
func engine() *durable.Options {
	agent := executor.Agent{
		Provider: apitest.NewScript(apitest.Func(respond).Always()),
		Tools:    []dag.Tool{refund("", nil)}, // its definition; the function is called by workers
		Strategy: executor.DeferAll(),
	}
	return &durable.Options{Agents: map[string]executor.Agent{"support": agent}, Log: slog.New(slog.DiscardHandler)}
}

// respond is the model: it calls the tool, and then repeats the result.
func respond(req api.Request) apitest.Turn {
	last := req.Messages[len(req.Messages)-1].Blocks
	if results := last.ToolResults(); len(results) > 0 {
		return apitest.Say(results[0].Content.Text())
	}
	_, number, _ := strings.Cut(last.Text(), "refund ")
	return apitest.Call(apitest.Use("refund", order{number}))
}

// worker returns the options of a process that executes calls.
func worker(name string, out io.Writer) *durable.Options {
	group := durable.Worker{Tools: []executor.Tool{refund(name, out)}, Concurrency: 1}
	return &durable.Options{Workers: []durable.Worker{group}, Log: slog.New(slog.DiscardHandler)}
}

// order is the arguments of the tool.
type order struct {
	Number string `json:"number"`
}

// refund returns the tool for a worker of a name. The payment service refunds once for each executor.IdempotencyKey, so
// the call may be repeated if its process is lost. Ann has a bad line: the service does not answer her.
func refund(name string, out io.Writer) executor.Tool {
	tool := executor.Func("refund", "Refunds an order.", func(ctx context.Context, in order) (string, error) {
		fmt.Fprintln(out, "refunding", in.Number)
		if name == "ann" {
			<-ctx.Done()
			return "", ctx.Err()
		}
		return fmt.Sprintf("Order %s was refunded by %s.", in.Number, name), nil
	})
	return executor.WithEffect(tool, executor.EffectIdempotent)
}

// open opens an engine on the database at a path or a URL. close closes both.
func open(ctx context.Context, address string, opts *durable.Options) (e *durable.Engine, closeAll func() error, err error) {
	var db interface {
		store.Transactor
		Close() error
	}
	if strings.Contains(address, "://") {
		db, err = postgres.Open(ctx, address, nil)
	} else {
		db, err = sqlite.Open(ctx, address, nil)
	}
	if err != nil {
		return nil, nil, err
	}

	e, err = durable.Open(ctx, db, opts)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return e, func() error { return errors.Join(e.Close(), db.Close()) }, nil
}

// serve is a process with a role. It ends when its standard input does: when the first process closes it, or dies.
func serve(ctx context.Context, address string, opts *durable.Options) error {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()

	e, closeAll, err := open(ctx, address, opts)
	if err != nil {
		return err
	}
	return errors.Join(e.Serve(ctx), closeAll())
}

// refundAll is the first process. It starts the others and the runs, and prints how they end.
func refundAll(ctx context.Context, address string, out io.Writer) (err error) {
	// A front end needs no agents.
	front, closeAll, err := open(ctx, address, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()

	var started processes
	defer func() { err = errors.Join(err, started.end()) }()
	if _, err := started.start(ctx, "engine", address); err != nil {
		return err
	}
	ann, err := started.start(ctx, "worker", address, "ann")
	if err != nil {
		return err
	}

	var runs []string
	for _, number := range []string{"A-1", "A-2", "A-3"} {
		run, err := front.Start(ctx, durable.StartRequest{
			Agent: "support", Conversation: "customer of " + number, Text: "Please refund " + number,
		})
		if err != nil {
			return err
		}
		runs = append(runs, run)
	}

	// Ann writes a line when she begins a call.
	if !bufio.NewScanner(ann.out).Scan() {
		return errors.New("ann has ended")
	}
	fmt.Fprintln(out, "ann has begun a call, and is killed")
	if err := ann.kill(); err != nil {
		return err
	}
	if _, err := started.start(ctx, "worker", address, "bob"); err != nil {
		return err
	}
	fmt.Fprintln(out, "bob has started")
	return report(ctx, front, runs, out)
}

// report waits for the runs, and prints their last messages.
func report(ctx context.Context, front *durable.Engine, runs []string, out io.Writer) error {
	for _, id := range runs {
		run, err := front.Wait(ctx, id)
		if err != nil {
			return err
		}
		c, err := front.Store().Conversation(ctx, run.Conversation)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, run.State, "–", c.DAG().Text())
	}
	return nil
}

// process is a process started by this program.
type process struct {
	*exec.Cmd
	in     io.Closer // the process ends when it is closed
	out    io.Reader
	killed bool
}

// processes are all started processes.
type processes []*process

// start starts this program with arguments.
func (p *processes) start(ctx context.Context, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}

	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}

	if err := cmd.Start(); err != nil {
		return nil, err
	}

	started := &process{Cmd: cmd, in: in, out: out}
	*p = append(*p, started)
	return started, nil
}

// kill ends the process at once.
func (p *process) kill() error {
	p.killed = true
	return p.Process.Kill()
}

// end ends the processes, and waits for them.
func (p processes) end() (err error) {
	for _, one := range p {
		err = errors.Join(err, one.in.Close())
	}
	for _, one := range p {
		failed := one.Wait()
		if !one.killed {
			err = errors.Join(err, failed)
		}
	}
	return err
}
