package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/viz/page/live"
)

// served holds the flags and the state of serve.
type served struct {
	runner
	addr   string
	remote bool
	hosts  []string
	rates  string     // the name of the price file; "" for none
	prices api.Prices // of the models
	file   *watched
	page   *live.Server

	following sync.WaitGroup // the goroutines following conversations of a database
}

func serveCommand(s *streams) *cobra.Command {
	v := &served{runner: runner{streams: s}}
	cmd := &cobra.Command{
		Use:   "serve FILE",
		Short: "Show a conversation in a browser while it grows",
		Long: `Serves a page that shows the conversation, and prints its address: open it in a
browser. The page follows the file, which may be written by others, as a
document or as a journal, may be replaced, and need not exist yet. If it is
broken, the page says so and shows the version before.

With --provider, everybody who has the address can append a message after any
node and run the model. FILE is updated; a journal is extended. If FILE was
changed meanwhile, both are kept; if it is broken or being written, the
conversation is written to a file beside it. The command executes the tools of
the MCP servers of --mcp: everybody who has the address can have them executed.
With --approve, a run pauses before each call until somebody approves or denies
it on the page, or with "plait resume"; it always does for calls that are open
in FILE. Other tools need --defer-tools: a run
pauses when the model calls one, and the page takes its result. A paused run in
FILE is continued in the same way.

If FILE is a database without a key, the page lists its conversations with the
states of their durable runs, and each has a page of its own. Answers to the
calls of a durable run are stored: the process that has its agent continues it.

Only requests from this machine with the token in the address are answered; the
token is new each time. --allow-remote answers other machines, unencrypted.
Ctrl-C ends it.`,
		Example: `  plait serve talk.json
  plait serve run.jsonl --provider anthropic --model claude-sonnet-4-5
  plait serve sessions.db`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error { return v.serve(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&v.addr, "addr", "", "where to listen, a `HOST:PORT`; port 0 is a free\none (default 127.0.0.1:0)")
	f.BoolVar(&v.remote, "allow-remote", false, "answer other machines, too")
	f.StringArrayVar(&v.hosts, "host", nil, "a further `NAME` in the address, behind a proxy say;\nmay be given several times")
	f.StringVar(&v.rates, "prices", "", "a `FILE` with the prices of models (see plait report)")
	v.endpointFlags(cmd)
	v.toolFlags(cmd)
	return cmd
}

// period is the time between two checks of the file.
const period = 500 * time.Millisecond

// serve shows the file until ctx ends.
func (v *served) serve(ctx context.Context, name string) (err error) {
	if name == std {
		return errors.New("serve needs a file, not standard input")
	}
	if len(v.mcp) > 0 && v.provider == "" {
		return errors.New("--mcp needs a model: name its provider with --provider")
	}
	list, err := v.priceList([]string{name}, v.rates)
	if err != nil {
		return err
	}
	v.prices = list.Prices
	if err := v.begin(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.end()) }()

	// A database without a key is served as a list, with a page for each conversation.
	if database, rest := splitName(name); database != "" && rest == "" {
		return v.serveDatabase(ctx, name)
	}

	if err := v.show(name); err != nil {
		return err
	}
	defer v.page.Close()
	return v.listen(ctx, v.page, name, v.file.refresh)
}

// show makes the page for a file.
func (v *served) show(name string) error {
	o := &live.Options{
		Title: filepath.Base(name), Remote: v.remote, Hosts: v.hosts, Request: exactRequest, Prices: v.prices, Cache: cachePolicy,
	}
	if v.provider != "" {
		if _, err := endpointOf(v.provider); err != nil {
			return fmt.Errorf("--provider %w", err)
		}
		o.Run, o.Resume, o.Save = v.stream, v.resumeStream, v.keepWhole
	}

	v.page = live.New(dag.New(), o)
	v.file = &watched{path: name, stored: stored(name), page: v.page, say: v.say, streams: v.streams}
	return nil
}

// pages is a page or a list of pages.
type pages interface {
	Listen(addr string) (net.Listener, error)
	Serve(l net.Listener) error
	URL(addr net.Addr) string
}

// listen serves pages until ctx ends. Refresh is called again and again.
func (v *served) listen(ctx context.Context, p pages, name string, refresh func()) error {
	l, err := p.Listen(cmp.Or(v.addr, "127.0.0.1:0"))
	if errors.Is(err, live.ErrRemote) {
		return fmt.Errorf("--addr %s: other machines can reach this address; --allow-remote allows that", v.addr)
	}
	if err != nil {
		return err
	}

	// Show the file first: the page is complete when its address is printed.
	refresh()
	_, _ = fmt.Fprintln(v.out, p.URL(l.Addr()))
	v.say("showing %s until Ctrl-C", name)

	// Buffered: at Ctrl-C nobody receives the end of the server.
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(l) }()
	return v.follow(ctx, ended, refresh)
}

// follow checks for changes until ctx ends or the server fails.
func (v *served) follow(ctx context.Context, ended <-chan error, refresh func()) error {
	next := time.NewTimer(period)
	defer next.Stop()

	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case <-next.C:
			begin := time.Now()
			refresh()
			next.Reset(max(period, 10*time.Since(begin))) // a long file takes longer to read and is checked less often
		}
	}
}

// stream runs the conversation like "plait run".
func (v *served) stream(ctx context.Context, d dag.DAG) iter.Seq2[executor.Event, error] {
	// A copy, because choosing the provider for this conversation sets its fields.
	r := v.runner
	agent, d, err := r.agent(d)
	if err != nil {
		return failed(d, err)
	}
	return v.kept(&r, d.Metadata().Get(runKey), agent.Stream(ctx, d))
}

// resumeStream resumes a paused run like "plait resume".
func (v *served) resumeStream(
	ctx context.Context, d dag.DAG, replies ...executor.Reply,
) iter.Seq2[executor.Event, error] {
	r := v.runner
	r.defers = true // as in resume: the replies have the results of these tools
	agent, d, err := r.agent(d)
	if err != nil {
		return failed(d, err)
	}
	return v.kept(&r, d.Metadata().Get(runKey), agent.ResumeStream(ctx, d, replies...))
}

// failed returns the events of a run that could not begin.
func failed(d dag.DAG, err error) iter.Seq2[executor.Event, error] {
	return func(yield func(executor.Event, error) bool) { yield(executor.End{DAG: d}, err) }
}

// kept returns the events of a run, and keeps its settings for the metadata of the file.
func (v *served) kept(
	r *runner, settings content.JSON, events iter.Seq2[executor.Event, error],
) iter.Seq2[executor.Event, error] {
	return func(yield func(executor.Event, error) bool) {
		for event, err := range events {
			switch e := event.(type) {
			case executor.RunStart:
				v.file.setMetadata(runKey, settings)
			case executor.Repaired:
				r.showRepairs(e.Repairs)
			}

			if !yield(event, err) {
				return
			}
		}
	}
}

// keepWhole saves the conversation in the file.
func (v *served) keepWhole(dag.DAG) error { return v.file.save(v.page.DAG) }

// exactRequest returns the body of the request for a response, to the response's API and model, with the options in the
// metadata of the conversation.
func exactRequest(before dag.DAG, response *node.Node) ([]byte, error) {
	m, _ := response.Message()

	run := settingsOf(before)
	for _, e := range endpoints {
		if e.api != m.Answer.API {
			continue
		}
		// The settings of the last run name the server.
		if named, err := endpointOf(run.Provider); err == nil && named.api == e.api {
			e = named // a compatible server
		}

		model := m.Answer.Model
		for _, name := range []string{savedRequestOf(before).Model, run.Model} {
			if name != "" && strings.HasPrefix(model, name) {
				model = name // the response names a version of the requested model
			}
		}

		how, err := optionsFor(before, e, model)
		if err != nil {
			return nil, err
		}
		if run.Provider == e.name {
			how.whole, how.baseURL = run.Whole, run.BaseURL
		}
		body, _, err := e.body(request(before, e), how)
		return body, err
	}
	return nil, errors.New("the response does not name its API")
}
