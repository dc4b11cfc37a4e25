package executor

import (
	"fmt"
	"slices"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/shared"
	"github.com/plait-dev/plait/internal/unwrap"
	"github.com/plait-dev/plait/node"
)

// binding is what the conversation of a run declares, and the functions of its tools.
type binding struct {
	shared   shared.Transcript     // of the conversation or an earlier one; held to make the next one cost only its new nodes
	bound    map[string]*boundTool // the tools that can be called, by name
	unbound  []string              // the declared tools without a function, which requests leave out
	prompt   string                // the agent's prompt for this run
	declared bool                  // the conversation has the agent's tools and prompt
	started  bool                  // it has, and it has the run's RunStart node or needs none
	single   bool                  // this is a single tool phase, and no run of a model
}

// bind declares the agent's prompt and tools and finds the function of each declared tool.
func (r *run) bind() error {
	if r.broken != nil {
		return r.broken
	}
	if r.agent.Limits.Cost != 0 || r.agent.Prices != nil {
		if err := r.agent.checkMoney(); err != nil {
			return err
		}
	}
	r.prompt = r.agent.System
	if r.agent.Instructions != nil {
		text, err := guard(r.ctx, &r.crew, r.agent.Instructions, r.d)
		if err != nil {
			return fmt.Errorf("executor: the agent's instructions: %w", err)
		}
		r.prompt = text
	}

	if r.id = r.agent.RunID; r.id == "" {
		r.id = r.d.Source().ID().String()
	}
	if r.open.Branches == 0 {
		r.open = shared.OpenAt(&r.d)
	}
	at := r.d
	if len(r.open.Phases) > 0 {
		at = r.declaring()
	}
	declared := r.withAgents(at)
	if err := declared.Err(); err != nil {
		return err
	}
	own := r.agent.Tools
	if len(r.agent.OnDemand) > 0 {
		own = slices.Concat(own, r.agent.OnDemand)
	}
	if err := checkOwners(r.d, own); err != nil {
		return err
	}
	if err := r.bindTools(declared); err != nil {
		return err
	}
	if len(r.unbound) > 0 {
		r.agent.Log.WarnContext(r.ctx, "plait: declared tools have no implementation, and are left out of the requests", "tools", r.unbound, "run", r.id)
	}

	// A declaration must not come between open calls and their results. It was checked above, to refuse it as early as
	// possible; start appends it after the results.
	r.began = r.d.Source().Time()
	if r.open.Unclosed && declared.Head() != at.Head() {
		return nil
	}
	r.declared = true
	if at.Head() != r.d.Head() {
		shared.Rewind(&declared, &r.d)
	}
	r.d = declared
	return nil
}

// declaring returns the conversation that declarations are compared with. In an open tool phase, that is the one of the
// message with the calls: executions declare nothing, and its transcript is remembered.
func (r *run) declaring() dag.DAG {
	if r.open.Branches == 1 && len(r.open.Phases) == 1 && r.d.Head() != r.open.Phases[0].Caller {
		return r.d.WithHeads(r.open.Phases[0].Caller)
	}
	return r.d
}

// bindTools finds the function of each tool that d declares.
func (r *run) bindTools(d dag.DAG) error {
	r.shared = shared.Of(&d)
	var hollow []string // declared by the program itself, without a function
	before := r.bound   // a hook may return a conversation without its tools' functions
	r.bound, r.unbound = make(map[string]*boundTool, len(r.shared.Tools)), nil
	for _, def := range r.shared.Tools {
		if def.Server() { // the provider executes its calls
			continue
		}

		// A loaded conversation, for example, declares tools without having their functions.
		found, travels := d.Tool(def.Name)
		tool, runs := found.(Tool)
		if !runs {
			if b := before[def.Name]; b != nil && b.tool != nil {
				tool, runs = b.tool, true
			}
		}
		if runs {
			if broken, ok := unwrap.As[interface{ Err() error }, Tool](tool); ok && broken.Err() != nil {
				return broken.Err()
			}
		}

		// A tool without a function is left out of the requests. If the program itself declared it, report the mistake.
		switch {
		case runs, r.agent.Handler != nil:
			r.bound[def.Name] = &boundTool{tool: tool}
		case travels:
			hollow = append(hollow, def.Name)
		default:
			r.unbound = append(r.unbound, def.Name)
		}
	}
	if len(hollow) > 0 {
		return &UnboundError{Names: hollow}
	}
	return nil
}

// agentPrompt names the system prompt of agents.
const agentPrompt = "agent"

// withAgents returns the conversation with the agent's prompt and tools.
func (r *run) withAgents(d dag.DAG) dag.DAG {
	// An agent without a prompt leaves that of the conversation. An empty text of Instructions removes it.
	if r.prompt != "" || r.agent.Instructions != nil {
		// Do not send a prompt twice if the program has added the same text to the conversation itself.
		own := d.SystemPrompt(agentPrompt) == "" && slices.Contains(d.SystemPrompts(), safetext.UTF8(r.prompt))
		if !own {
			d = d.SetSystem(agentPrompt, r.prompt)
		}
	}
	if len(r.agent.Tools) > 0 {
		d = d.Tools(r.agent.Tools...)
	}
	if len(r.agent.OnDemand) > 0 {
		d = d.Tools(declaredOf(d, r.agent.OnDemand)...)
	}
	return d
}

// declaredOf returns the tools that d declares already.
func declaredOf(d dag.DAG, tools []dag.Tool) (list []dag.Tool) {
	declared := map[string]bool{}
	for _, def := range d.ToolDefs() {
		declared[def.Name] = true
	}
	for _, t := range tools {
		if t == nil || declared[t.Definition().Name] { // Tools refuses nil
			list = append(list, t)
		}
	}
	return list
}

// transcript returns the messages and tools of the next request, without tools that have no function. It is shared and
// must not be changed.
func (r *run) transcript() shared.Transcript {
	r.shared = shared.Of(&r.d, r.unbound...)
	return r.shared
}

// start declares the agent's prompt and tools if bind could not, because calls were open, and appends the run's RunStart
// node: after the input and the declarations, and before the first request. It must not be called while calls are open:
// the node would come between them and their results. The node needs no save of its own: it is saved with the first
// response.
func (r *run) start() error {
	d := r.d
	if !r.declared {
		d = r.withAgents(d)
	}

	// A run that was resumed after a request has recorded its start before. A single tool phase is no run.
	if r.turn == 0 && !r.single {
		// A run that got no further than its start leaves nothing to keep: this run takes its place. So does one that
		// asks again from before a response.
		if h := d.Head(); h != nil && h.Kind() == "run_start" {
			d = d.WithHeads(h.Parents()...)
		}

		l := r.agent.Limits
		d = d.AppendMeta(node.RunStart{Agent: r.agent.Name, Run: r.id, Version: r.agent.Version, Limits: node.RunLimits{
			Turns: max(l.Turns, 0), Calls: max(l.Calls, 0), Tokens: max(l.Tokens, 0), Cost: l.Cost, Time: max(l.Time, 0),
		}}, r.agent.RunMeta)
	}
	if err := d.Err(); err != nil {
		return err
	}
	r.d, r.declared, r.started = d, true, true
	return nil
}

// boundTool is a tool that a run can call, and its task.
type boundTool struct {
	tool Tool // nil if only Agent.Handler executes it
	task task // its fn is nil until the tool is called
}
