package agui

import (
	"encoding/json"
	"slices"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// input is the body of a request, RunAgentInput, without unused members.
type input struct {
	ThreadID string          `json:"threadId"`
	RunID    string          `json:"runId"`
	State    json.RawMessage `json:"state"`
	Messages []inputMessage  `json:"messages"`
	Tools    []inputTool     `json:"tools"`
	Resume   []resumeEntry   `json:"resume"`
	Props    json.RawMessage `json:"forwardedProps"`
}

// cancels reports whether the request cancels the run of its thread.
func (in input) cancels() bool {
	var props struct{ Cancel bool }
	return json.Unmarshal(in.Props, &props) == nil && props.Cancel
}

// inputMessage is a message of the client.
type inputMessage struct {
	ID         string          `json:"id"`
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"` // a string or a list of parts
	ToolCallID string          `json:"toolCallId"`
	Error      string          `json:"error"`
}

// inputTool is a tool that the client executes.
type inputTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// resumeEntry is the answer to an interrupt.
type resumeEntry struct {
	InterruptID string          `json:"interruptId"`
	Status      string          `json:"status"`
	Payload     json.RawMessage `json:"payload"` // a decision
}

// decision is the payload of an answer to a question for approval.
type decision struct {
	Approved bool            `json:"approved"`
	Reason   string          `json:"reason"`
	Input    json.RawMessage `json:"input"`
}

// part is a part of a message.
type part struct {
	Type   string  `json:"type"`
	Text   string  `json:"text,omitempty"`
	Source *source `json:"source,omitempty"`
}

type source struct {
	Type     string `json:"type"`
	Value    string `json:"value"`
	MIMEType string `json:"mimeType,omitempty"`
}

// blocks returns the content of a message.
func (m inputMessage) blocks() (content.Blocks, error) {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return content.Of(content.Text{Text: text})
	}
	var parts []part
	if err := json.Unmarshal(m.Content, &parts); err != nil {
		return content.Blocks{}, err
	}

	var list []content.Block
	for _, p := range parts {
		list = append(list, p.block())
	}
	return content.Of(list...)
}

// block returns a part as a block. A part of an unknown kind becomes a text with its kind, for the model.
func (p part) block() content.Block {
	var from content.Source
	if p.Source != nil {
		from.MediaType = p.Source.MIMEType
		if p.Source.Type == "url" {
			from.URL = p.Source.Value
		} else {
			// The other type is "data": the bytes in base64.
			from.Data = p.Source.Value
		}
	}

	switch {
	case p.Type == "text":
		return content.Text{Text: p.Text}
	case p.Type == "image" && p.Source != nil:
		return content.Image{Source: from}
	case p.Type == "document" && p.Source != nil:
		return content.Document{Source: from}
	}
	return content.Text{Text: "[A part of another kind: " + p.Type + "]"}
}

// metaID is the key for the client's message ID in a node's metadata.
const metaID = "agui.id"

// fresh returns the client's new messages of the user: those that the conversation lacks.
func (in input) fresh(d dag.DAG) (list []inputMessage) {
	known := map[string]bool{}
	for _, m := range messagesOf(d) {
		known[m.ID] = true
	}
	for _, m := range in.Messages {
		if m.Role == "user" && m.ID != "" && !known[m.ID] {
			known[m.ID] = true // a client may send one message twice
			list = append(list, m)
		}
	}
	return list
}

// withNew appends the client's new user messages to the conversation. Open calls are closed before the first one.
func (in input) withNew(d dag.DAG) (dag.DAG, error) {
	for _, m := range in.fresh(d) {
		blocks, err := m.blocks()
		if err != nil {
			return d, err
		}
		meta, err := node.Meta{}.With(metaID, m.ID)
		if err != nil {
			return d, err
		}

		// A new message in place of an answer declines the open calls.
		if len(d.OpenCalls()) > 0 {
			d = d.CloseTools()
		}
		d = d.AppendMeta(node.Message{Role: content.User, Blocks: blocks}, meta)
	}
	return d, d.Err()
}

// tools returns the agent's tools and the client's, as deferred tools. theirs has the names of the client's tools.
func (in input) tools(own []dag.Tool) (all []dag.Tool, theirs map[string]bool) {
	taken := map[string]bool{}
	for _, t := range own {
		taken[t.Definition().Name] = true
	}

	// Appending to all must not write into the agent's own list, which other requests share.
	all, theirs = own[:len(own):len(own)], map[string]bool{}
	for _, t := range in.Tools {
		// The agent's tool has priority. Of two tools of the client, the first counts.
		if taken[t.Name] || theirs[t.Name] {
			continue
		}
		theirs[t.Name] = true
		schema := content.JSON(t.Parameters)
		if schema == "" || schema == "null" {
			schema = `{"type":"object"}`
		}
		all = append(all, executor.DeferredTool(content.Tool{Name: t.Name, Description: t.Description, Schema: schema}))
	}
	return all, theirs
}

// replies returns the client's replies to pending calls: its decisions, and the results of its own tools. Results of the
// program's deferred tools do not come from the client. Each request's replies are used once.
func (s *stream) replies(pending []dag.Pending) (replies []executor.Reply) {
	if s.replied {
		return nil
	}
	s.replied = true
	asks := slices.ContainsFunc(pending, func(p dag.Pending) bool { return p.Approval })
	s.given = map[string]bool{}
	for _, p := range pending {
		if reply, given := s.decision(p); given {
			replies = append(replies, reply)
			continue
		}
		for _, m := range s.in.Messages {
			// No results are taken while a call waits for approval. A result that is taken is not sent back. A client may
			// send a message twice.
			if !asks && m.Role == "tool" && s.theirs(p) && m.ToolCallID == s.callID(p) {
				replies = append(replies, m.reply(p))
				s.given[m.ToolCallID] = true
				break
			}
		}
	}
	return replies
}

// decision returns the client's decision about a pending call, the last one if it sent several.
func (s *stream) decision(p dag.Pending) (reply executor.Reply, given bool) {
	for _, entry := range s.in.Resume {
		if p.Approval && entry.InterruptID == interruptID(p) {
			reply, given = entry.reply(p), true
		}
	}
	return reply, given
}

// reply returns the decision about a call. Only a clear approval approves it.
func (e resumeEntry) reply(p dag.Pending) executor.Reply {
	var d decision
	err := json.Unmarshal(e.Payload, &d)
	switch {
	case err != nil || e.Status != "resolved" || !d.Approved:
		return executor.Declined(p, d.Reason)
	case len(d.Input) > 0 && string(d.Input) != "null":
		return executor.ApprovedWith(p, content.JSON(d.Input))
	}
	return executor.Approved(p)
}

// reply returns the result of a tool of the client.
func (m inputMessage) reply(p dag.Pending) executor.Reply {
	blocks, err := m.blocks()
	if err != nil {
		return executor.Failed(p, "The tool's result could not be read.")
	}
	return executor.Returned(p, executor.Result{Content: blocks, IsError: m.Error != ""})
}
