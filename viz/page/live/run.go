package live

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/node"
)

// change adds nodes to a conversation after the node n, or on a branch beside it. It returns the conversation, and the
// branch to continue.
type change func(d dag.DAG, n *node.Node) (whole, branch dag.DAG, err error)

// withText returns a change that adds a message of the user.
func withText(text string) change {
	return func(d dag.DAG, n *node.Node) (dag.DAG, dag.DAG, error) {
		whole, message, err := d.AppendTo([]*node.Node{n}, node.Message{Role: content.User, Blocks: content.Words(text)})
		return whole, whole.WithHeads(message), err
	}
}

// joined returns d with a branch beside its heads.
func joined(d, branch dag.DAG) (dag.DAG, dag.DAG, error) {
	whole := d.Join(branch)
	return whole, branch, whole.Err()
}

// errNoExecution marks a node without a replaceable result.
var errNoExecution = errors.New("the node is no executed call whose results were sent to the model")

// withResult returns a change that adds the results of a message's calls again, with another result of the call n.
func withResult(text string, failed bool) change {
	return func(d dag.DAG, n *node.Node) (dag.DAG, dag.DAG, error) {
		old, ok := n.Payload().(node.ToolExecution)
		answer := resultsOf(d, n)
		if !ok || answer == nil {
			return d, d, errNoExecution
		}

		// Repeat the executions beside it too: the model was sent all their results.
		executions := executionsAmong(answer.Parents())
		for i := range executions {
			if executions[i].Index == old.Index {
				executions[i].Result, executions[i].IsError = content.Words(text), failed
				executions[i].State = node.ExecutionFinished

				// The whole output and the child conversation belong to the old result.
				executions[i].Full, executions[i].Child = content.Blocks{}, node.List[*node.Node]{}
			}
		}
		return joined(d, d.WithHeads(n.Parents()...).CloseTools(executions...))
	}
}

// executionsAmong returns the executions among nodes, one for each call, for another branch. They have no times, tokens
// and costs: these were spent only once, and stay with the nodes.
func executionsAmong(nodes []*node.Node) []node.ToolExecution {
	var list []node.ToolExecution
	seen := map[int]bool{} // by the index of the call
	for _, n := range nodes {
		e, ok := n.Payload().(node.ToolExecution)
		if !ok || seen[e.Index] {
			continue
		}

		seen[e.Index] = true
		execution := node.ToolExecution{
			Index: e.Index, State: e.State, Result: e.Result, IsError: e.IsError, Child: e.Child, Ran: e.Ran, Full: e.Full,
		}
		if e.State == node.ExecutionStarted {
			execution.Started = e.Started // needed to decide about a call in doubt
		}
		list = append(list, execution)
	}
	return list
}

// resultsOf returns the message with the result of an execution, or nil.
func resultsOf(d dag.DAG, execution *node.Node) *node.Node {
	// A file that was read again beside a watched run has other nodes with the same IDs.
	is := func(n *node.Node) bool { return n.ID() == execution.ID() }
	for _, n := range d.Nodes() {
		if m, ok := n.Message(); ok && m.Role == content.User && slices.ContainsFunc(n.Parents(), is) {
			return n
		}
	}
	return nil
}

// The reasons why a message cannot be edited.
var (
	errNoMessage = errors.New("the node is no message of the user or the assistant")
	errNoText    = errors.New("the message would be empty")
	errNoNext    = errors.New("after a message of the assistant, \"text\" is what the user says next")
)

// withEdit returns a change that adds the message n again with another text. After a message of the assistant follow
// the results of its calls, without a new execution, and next as a message of the user, unless next is empty.
func withEdit(text, next string) change {
	return func(d dag.DAG, n *node.Node) (dag.DAG, dag.DAG, error) {
		// Results are changed at their executions: see withResult.
		m, ok := n.Message()
		if !ok || len(m.Blocks.ToolResults()) > 0 {
			return d, d, errNoMessage
		}

		blocks, err := edited(m, text)
		if err != nil {
			return d, d, err
		}
		branch := d.WithHeads(n.Parents()...).Append(node.Message{Role: m.Role, Blocks: blocks})
		if m.Role == content.User {
			return joined(d, branch)
		}

		if len(blocks.ToolUses()) > 0 {
			branch = withExecutions(branch, d, n)
		} else if next == "" {
			return d, d, errNoNext
		}
		if next != "" {
			branch = branch.User(next)
		}
		return joined(d, branch)
	}
}

// edited returns the blocks of a message with another text. A message of the assistant is then no longer the
// provider's: it loses thinking and opaque blocks, and signatures and citations on others.
func edited(m node.Message, text string) (content.Blocks, error) {
	// The new text comes first, in place of all texts. The other blocks keep their order.
	var list []content.Block
	if strings.TrimSpace(text) != "" {
		list = append(list, content.Text{Text: text})
	}

	for _, b := range m.Blocks.All() {
		if _, replaced := b.(content.Text); replaced {
			continue
		}
		if m.Role == content.Assistant {
			b = ofProgram(b)
		}
		if b != nil {
			list = append(list, b)
		}
	}

	if len(list) == 0 {
		return content.Blocks{}, errNoText
	}
	return content.Of(list...)
}

// ofProgram returns a block of a response without the parts reserved to the provider; nil if nothing is left.
func ofProgram(b content.Block) content.Block {
	switch b := b.(type) {
	case content.ToolUse:
		b.Extra = content.Extra{}
		return b
	case content.Image:
		b.Extra = content.Extra{}
		return b
	case content.Document:
		b.Extra = content.Extra{}
		return b
	case content.Text:
		b.Extra = content.Extra{}
		return b
	case content.Thinking, content.CutToolUse, content.ToolResult, content.Opaque, content.Unknown:
	}
	return nil
}

// withExecutions adds the executions of the calls of n to a branch that ends in its edited form. If d has their results
// message, so has the branch.
func withExecutions(branch, d dag.DAG, n *node.Node) dag.DAG {
	executes := func(e *node.Node) bool {
		_, ok := e.Payload().(node.ToolExecution)
		return ok && slices.Contains(e.Parents(), n)
	}

	// The edited form has the same calls in the same order, in other blocks: another text, and no thinking.
	said, _ := n.Message()
	edited, _ := branch.Head().Message()
	calls, moved := lineage.ReadCalls(said.Blocks), lineage.ReadCalls(edited.Blocks)
	copies := func(nodes []*node.Node) []node.ToolExecution {
		list := executionsAmong(nodes)
		for i, e := range list {
			list[i].Index = moved.At[calls.Of(e)]
		}
		return list
	}

	// Without a results message, the calls are still open: repeat the executions so far.
	var executions []*node.Node
	for _, next := range d.Nodes() {
		if m, ok := next.Message(); ok && m.Role == content.User && slices.ContainsFunc(next.Parents(), executes) {
			return branch.CloseTools(copies(next.Parents())...)
		}
		if executes(next) {
			executions = append(executions, next)
		}
	}
	return branch.AppendExecutions(copies(executions)...)
}

// fork changes the conversation at a node, and runs the result.
func (s *Server) fork(at node.ID, change change) *refusal {
	if s.options.Run == nil {
		return refuse(http.StatusForbidden, "cannot_run", "running is off: the program that serves this page does not allow it")
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	switch {
	case s.closed:
		return refuse(http.StatusServiceUnavailable, "closed", "the server is closed")
	case s.active():
		return refuse(http.StatusConflict, "running", "another run is in progress")
	}
	if no := s.elsewhere(); no != nil {
		return no
	}

	n := s.d.Node(at)
	if n == nil {
		return unknownNode(at.String())
	}

	var whole, branch dag.DAG
	err := attempt("the change", func() (err error) {
		whole, branch, err = change(s.d, n) // it calls the program's source of IDs and times
		return err
	})
	if err != nil {
		return refuse(http.StatusUnprocessableEntity, "cannot_fork", err.Error())
	}

	// The page shows the message at once. The run continues in the background and ends with the server.
	s.show(whole)
	s.start(func(ctx context.Context) runEvents { return s.options.Run(ctx, branch) }, func(outcome) {})
	return nil
}

type runEvents = iter.Seq2[executor.Event, error]

// outcome is the result of a run begun by the page.
type outcome struct {
	err      error
	executed bool // a tool call was started
}

// start begins a run in the background, and calls ended at its end. s.mu must be held.
func (s *Server) start(begin func(context.Context) runEvents, ended func(outcome)) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.stop = cancel
	s.joined.Add(1)
	go s.run(ctx, begin, ended)
}

// run shows a run until it stops.
func (s *Server) run(ctx context.Context, begin func(context.Context) runEvents, ended func(outcome)) {
	defer s.joined.Done()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stop()
		s.stop = nil
		s.rest()
	}()

	// Deferred: ended must also be called if the run ends this goroutine. It may receive an error of the program, and
	// methods of that error may panic; guard recovers from it.
	var got outcome
	defer s.guard("the run")
	defer func() { ended(got) }()
	s.follow(ctx, begin, &got)
}

// errEnded is the error for a run that ended its goroutine: runtime.Goexit.
var errEnded = errors.New("the run ended its goroutine")

// follow shows a run until it stops, and saves it after each turn. A panic of the run is an error.
func (s *Server) follow(ctx context.Context, begin func(context.Context) runEvents, got *outcome) {
	returned := false
	defer func() {
		if returned {
			return
		}

		// Without a panic to recover, it is runtime.Goexit that ends the goroutine.
		got.err = errEnded
		if v := recover(); v != nil {
			got.err = panicked("the run", v)
		}
		s.report(got.err.Error())
	}()

	for event, err := range s.Watch(begin(ctx)) {
		got.err = err
		switch e := event.(type) {
		case executor.ToolStart:
			got.executed = true
		case executor.Child:
			// A tool of a sub-agent may have had effects, too.
			if _, started := e.Event.(executor.ToolStart); started {
				got.executed = true
			}
		case executor.TurnEnd, executor.End:
			s.save()
		}
	}
	returned = true
}

// save calls Options.Save and reports its error.
func (s *Server) save() {
	if s.options.Save == nil {
		return
	}
	if err := attempt("the store", func() error { return s.options.Save(s.DAG()) }); err != nil {
		s.report(fmt.Sprintf("not saved: %v", err))
	}
}

// halt stops the run begun by the page.
func (s *Server) halt() *refusal {
	s.mu.Lock()
	defer s.mu.Unlock()

	// A run that has ended in the meantime needs no stop.
	switch {
	case s.stop != nil:
		s.stop()
	case len(s.watches) > 0:
		return refuse(http.StatusConflict, "not_ours", "the run was not started on this page and cannot be stopped here")
	}
	return nil
}
