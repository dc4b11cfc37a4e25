package main

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/plait-dev/plait/api/openai"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/dag/sessions"
	"github.com/plait-dev/plait/internal/lineage"
)

// transcripts are the formats of whole conversations.
func transcripts() []importer {
	list := []importer{{name: "chat", read: chatFile}}
	for _, f := range sessions.Formats() {
		list = append(list, importer{name: string(f), read: func(data []byte) (dag.DAG, []string, error) {
			in, err := sessions.Import(f, bytes.NewReader(data), nil)
			if err != nil {
				return dag.DAG{}, nil, err
			}
			d, notes := inOneFile(in.Conversations)
			for _, note := range in.Notes {
				notes = append(notes, note.String())
			}
			return d, notes, nil
		}})
	}
	return list
}

// chatFile reads messages of Chat Completions: a list, an object with "messages", or one of either a line. Messages on
// lines of their own are one conversation.
func chatFile(data []byte) (dag.DAG, []string, error) {
	// A file is one JSON value, or a value a line.
	values := [][]byte{data}
	if !json.Valid(data) {
		values = bytes.Split(data, []byte("\n"))
	}

	var open chatMessages // of messages on lines of their own
	var all []chatMessages
	for i, value := range values {
		if value = bytes.TrimSpace(value); len(value) == 0 {
			continue
		}
		found, err := chatValue(value)
		switch {
		case err != nil && len(values) > 1:
			return dag.DAG{}, nil, fmt.Errorf("line %d: %w", i+1, err)
		case err != nil:
			return dag.DAG{}, nil, err
		case found.single:
			open.Messages = append(open.Messages, found.Messages...)
		default:
			all = append(all, found)
		}
	}
	if len(open.Messages) > 0 {
		all = append(all, open)
	}

	var conversations []dag.DAG
	for i, of := range all {
		d, err := of.conversation()
		if err != nil {
			return dag.DAG{}, nil, fmt.Errorf("conversation %d: %w", i+1, err)
		}
		conversations = append(conversations, d)
	}
	d, notes := inOneFile(conversations)
	return d, notes, nil
}

// chatMessages are the members of a request that a conversation consists of.
type chatMessages struct {
	Messages []json.RawMessage `json:"messages"`
	Tools    json.RawMessage   `json:"tools,omitempty"`
	single   bool              // it is one message
}

// chatValue reads a value of a file: a list of messages, an object with one, or a message.
func chatValue(value []byte) (found chatMessages, err error) {
	if value[0] == '[' {
		return found, content.JSON(value).Decode(&found.Messages)
	}
	var message struct{ Role string }
	if err := content.JSON(value).Decode(&found); err != nil {
		return found, err
	}
	if err := content.JSON(value).Decode(&message); err != nil {
		return found, err
	}
	if found.Messages == nil && message.Role != "" {
		return chatMessages{Messages: []json.RawMessage{value}, single: true}, nil
	}
	return found, nil
}

// conversation returns the messages as a conversation. Which of its open calls were started is not known.
func (m chatMessages) conversation() (dag.DAG, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return dag.DAG{}, err
	}
	req, _, err := openai.ImportChat(body)
	if err != nil {
		return dag.DAG{}, err
	}
	d := dag.FromTranscript(dag.Transcript{System: req.System, Tools: req.Tools, Messages: req.Messages})
	return d.WithMetadata(lineage.NoStarts, true), d.Err()
}

// inOneFile returns one conversation with the nodes of several. Its head is that of the first. The heads of the others
// get refs.
func inOneFile(conversations []dag.DAG) (d dag.DAG, notes []string) {
	if len(conversations) == 0 {
		return dag.New(), nil
	}

	// A ref is made of the heads, so each conversation's heads become those of d for a moment.
	d = conversations[0]
	for i, other := range conversations[1:] {
		d = d.WithHeads(other.Heads()...).WithRef(fmt.Sprintf("conversation-%d", i+2))
	}

	if n := len(conversations); n == 2 {
		notes = append(notes, "the second conversation has the ref conversation-2")
	} else if n > 2 {
		notes = append(notes, fmt.Sprintf("%d further conversations have the refs conversation-2 to conversation-%d", n-1, n))
	}
	return d.WithHeads(conversations[0].Heads()...), notes
}
