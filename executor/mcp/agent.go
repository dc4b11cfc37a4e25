package mcp

import (
	"context"
	"errors"
	"fmt"
	"iter"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/front"
	"github.com/plait-dev/plait/store"
)

// AgentTool describes an agent for [AddAgent].
type AgentTool struct {
	// Name and Description are those of the tool. Required.
	Name, Description string
	// Agent executes the calls. Required.
	Agent executor.Agent
	// Store keeps the conversations. With it, a call may name a conversation to continue. The conversation is saved
	// step by step. Anybody who may call the tool may read and continue any conversation of the store. It also has the
	// runs that wait for approval. Defaults to none: each call is a new conversation, and is not kept.
	Store *store.Store
}

// agentArguments has the arguments of the tool added by [AddAgent].
type agentArguments struct {
	Message string `json:"message" jsonschema:"what to tell the agent"`
	// Conversation is the key of a stored conversation.
	Conversation string `json:"conversation,omitempty" jsonschema:"the name of the conversation to continue or begin"`
}

// agentResult is the structured result of the tool added by [AddAgent].
type agentResult struct {
	Text string `json:"text" jsonschema:"the agent's answer"`
	Stop string `json:"stop" jsonschema:"why the agent stopped"`
	// Conversation is the key from the arguments.
	Conversation string `json:"conversation,omitempty"`
}

// AddAgent adds a tool to a server of the SDK. The tool sends a message to an agent and returns its answer. While the
// agent works, a client that asked for progress gets a notification for each tool call, with the tool's name. When the
// client cancels the call, the run is cancelled.
//
// If calls of the agent need approval, the client's user is asked (elicitation). Calls without approval are declined,
// and so are all of them if the client does not support elicitation. A run that waits for deferred results is an error.
//
// While the user is asked, the run is kept: in the Store, under a key that begins with "mcp.paused/", or in memory if
// there is none. With one Store, any instance of a service takes the answer. An answer counts once. A run is dropped
// after a day, or when 1,000 newer ones wait; then its call fails. A client of a protocol before 2026-07-28 is asked by a
// request in its session, at the instance that has the session. Where the SDK's handler is Stateless, there is none, and
// its calls are declined.
//
// AddAgent panics if the name is not a tool name, as sdk.AddTool does.
func AddAgent(server *sdk.Server, tool AgentTool) {
	s := &agentServer{AgentTool: tool, pauses: tool.Store}
	if s.pauses == nil {
		s.pauses = store.New(store.Memory())
	}
	sdk.AddTool(server, &sdk.Tool{Name: tool.Name, Description: tool.Description}, s.call)
}

// agentServer executes the calls of an AgentTool.
type agentServer struct {
	AgentTool

	pauses *store.Store // has the runs that wait for approval: Store, or one in memory
}

// call executes a call, or continues one after the client has asked its user.
func (s *agentServer) call(
	ctx context.Context, r *sdk.CallToolRequest, q agentArguments,
) (*sdk.CallToolResult, agentResult, error) {
	agent := s.Agent
	var events iter.Seq2[executor.Event, error]
	var conversation *store.Conversation

	if state := r.Params.RequestState; state != "" {
		// The client repeats the call, with the state and the answers of its user.
		d, kept, err := s.resume(ctx, state)
		if err != nil {
			return nil, agentResult{}, err
		}
		conversation = kept
		agent = saving(agent, conversation)
		events = agent.ResumeStream(ctx, d, replies(d, r.Params.InputResponses)...)
	} else {
		d := dag.New()
		if q.Conversation != "" {
			var err error
			if conversation, err = s.open(ctx, q.Conversation); err != nil {
				return nil, agentResult{}, err
			}
			d = conversation.DAG()
		}
		agent = saving(agent, conversation)
		events = agent.Stream(ctx, d.User(q.Message))
	}

	// Run to the end. At each pause the user is asked.
	calls := 0
	for {
		end, err := report(ctx, r, events, &calls)
		var pause *executor.PausedError
		if !errors.As(err, &pause) {
			return nil, agentResult{Text: end.DAG.Text(), Stop: string(end.Stop.Reason), Conversation: q.Conversation}, err
		}

		if pause.Reason != content.StopApproval {
			return nil, agentResult{}, fmt.Errorf("the agent waits for deferred results: %w", err)
		}
		questions := questions(end.DAG)
		switch {
		case r.ClientCapabilities() == nil || r.ClientCapabilities().Elicitation == nil:
			questions = nil // everything is declined
		case r.ProtocolVersion() >= roundTrips:
			state, err := s.pause(ctx, end.DAG, conversation)
			return &sdk.CallToolResult{InputRequests: questions, RequestState: state}, agentResult{}, err
		}

		// An older client is asked while it waits for the result.
		answers, err := elicit(ctx, r.Session, end.DAG, questions)
		if err != nil {
			return nil, agentResult{}, err
		}
		events = agent.ResumeStream(ctx, end.DAG, replies(end.DAG, answers)...)
	}
}

// roundTrips is the first version of the protocol in which a server asks the user by a result. In older versions it
// sends a request of its own.
const roundTrips = "2026-07-28"

func (s *agentServer) open(ctx context.Context, key string) (*store.Conversation, error) {
	if s.Store == nil {
		return nil, errors.New("conversations are not kept here: leave out the name of the conversation")
	}
	return s.Store.Conversation(ctx, key)
}

// saving returns the agent with a Save that also appends to the conversation, if there is one.
func saving(agent executor.Agent, c *store.Conversation) executor.Agent {
	if c != nil {
		agent.Save = front.Save(agent.Save, c.Append)
	}
	return agent
}

// report ranges over the events of a run, and notifies the client of each tool call. It counts the calls in calls,
// because the progress of a request must increase, also over several runs.
func report(
	ctx context.Context, r *sdk.CallToolRequest, events iter.Seq2[executor.Event, error], calls *int,
) (executor.End, error) {
	token := r.Params.GetProgressToken()
	for event, err := range events {
		switch e := event.(type) {
		case executor.End:
			return e, err
		case executor.ToolStart:
			*calls++
			if token == nil {
				continue
			}
			// Ignore the error: a client that cannot be notified still gets the answer.
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
				ProgressToken: token, Progress: float64(*calls), Message: e.Call.Name,
			})
		}
	}
	return executor.End{}, errors.New("the run has no end")
}

// questions asks for approval of each call that needs it.
func questions(d dag.DAG) sdk.InputRequestMap {
	all := sdk.InputRequestMap{}
	for _, p := range d.Pending() {
		if !p.Approval {
			continue
		}
		message := fmt.Sprintf("May the agent call %s with these arguments? %s", p.Call.Name, p.Call.Input)
		if p.Note != "" {
			message += "\n" + p.Note
		}
		all[p.Key.String()] = &sdk.ElicitParams{Mode: "form", Message: message, RequestedSchema: map[string]any{
			"type":       "object",
			"properties": map[string]any{"approve": map[string]any{"type": "boolean", "title": "Approve"}},
			"required":   []string{"approve"},
		}}
	}
	return all
}

// replies converts a user's answers to replies. Only an accepted form whose approve is the boolean true approves a
// call; every other answer, and none, declines it.
func replies(d dag.DAG, answers sdk.InputResponseMap) (all []executor.Reply) {
	for _, p := range d.Pending() {
		if !p.Approval {
			continue
		}
		reply := executor.Declined(p, "")
		answer, _ := answers[p.Key.String()].(*sdk.ElicitResult)
		if answer != nil && answer.Action == "accept" && answer.Content["approve"] == true {
			reply = executor.Approved(p)
		}
		all = append(all, reply)
	}
	return all
}

// elicit asks the client's user about the calls, in call order, by requests to the client.
func elicit(
	ctx context.Context, session *sdk.ServerSession, d dag.DAG, questions sdk.InputRequestMap,
) (sdk.InputResponseMap, error) {
	answers := sdk.InputResponseMap{}
	for _, p := range d.Pending() {
		question, asked := questions[p.Key.String()].(*sdk.ElicitParams)
		if !asked {
			continue
		}
		answer, err := session.Elicit(ctx, question)
		if err != nil {
			return nil, fmt.Errorf("asking for approval: %w", err)
		}
		answers[p.Key.String()] = answer
	}
	return answers, nil
}
