package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/store"
	"github.com/plait-dev/plait/viz"
)

// conversationURI is the URI of a stored conversation, before its escaped key.
const conversationURI = "plait://conversations/"

// ListArguments has the arguments of the tool list_conversations.
type ListArguments struct {
	Prefix string `json:"prefix,omitempty" jsonschema:"list only conversations whose names begin with this"`
	After  string `json:"after,omitempty" jsonschema:"list only names after this one, to read on"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many to list at most, up to 1,000; 100 if it is left out"`
}

// ListResult is the structured result of the tool list_conversations.
type ListResult struct {
	Conversations []string `json:"conversations"`
	More          bool     `json:"more" jsonschema:"whether there are more after the last one"`
}

// ReadArguments has the arguments of the tool read_conversation.
type ReadArguments struct {
	Conversation string `json:"conversation" jsonschema:"the name of the conversation"`
	Form         string `json:"form,omitempty" jsonschema:"log (the default: a line for each node), mermaid (a diagram) or json (everything)"`
}

// AddStore adds the conversations of a store to a server, for reading only. There are the tools list_conversations and
// read_conversation, and resources plait://conversations/KEY with the log of the conversation as their text. The key in
// a URI is escaped as a segment of a path. Anybody who may call the server may read the whole store.
func AddStore(server *sdk.Server, db *store.Store) {
	sdk.AddTool(server, &sdk.Tool{
		Name: "list_conversations", Description: "Lists the names of stored conversations, sorted.",
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true},
	}, func(ctx context.Context, _ *sdk.CallToolRequest, q ListArguments) (*sdk.CallToolResult, ListResult, error) {
		answer, err := list(ctx, db, q)
		return nil, answer, err
	})

	sdk.AddTool(server, &sdk.Tool{
		Name: "read_conversation", Description: "Reads a stored conversation: what was said, which tools were called, with which results.",
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true},
	}, func(ctx context.Context, _ *sdk.CallToolRequest, q ReadArguments) (*sdk.CallToolResult, any, error) {
		text, err := read(ctx, db, q)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, err
	})

	server.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: "conversation", Title: "A stored conversation", MIMEType: "text/plain", URITemplate: conversationURI + "{key}",
	}, func(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		uri := r.Params.URI
		key, err := url.PathUnescape(strings.TrimPrefix(uri, conversationURI))
		if err != nil {
			return nil, sdk.ResourceNotFoundError(uri)
		}
		text, err := read(ctx, db, ReadArguments{Conversation: key})
		switch {
		case errors.Is(err, store.ErrNotStored):
			return nil, sdk.ResourceNotFoundError(uri)
		case err != nil:
			return nil, err
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: text}}}, nil
	})
}

func list(ctx context.Context, db *store.Store, q ListArguments) (ListResult, error) {
	const limit, maxLimit = 100, 1000
	if q.Limit <= 0 {
		q.Limit = limit
	}
	q.Limit = min(q.Limit, maxLimit)

	answer := ListResult{Conversations: []string{}}
	for key, err := range db.Conversations(ctx, q.Prefix) {
		switch {
		case err != nil:
			return answer, err

		// The names are sorted, but the store cannot begin after a name: skip those listed before.
		case key <= q.After:
			continue

		// One name beyond the limit shows that there are more.
		case len(answer.Conversations) == q.Limit:
			answer.More = true
			return answer, nil
		}
		answer.Conversations = append(answer.Conversations, key)
	}
	return answer, nil
}

// read returns a conversation as text. If it is not stored, the error is store.ErrNotStored.
func read(ctx context.Context, db *store.Store, q ReadArguments) (string, error) {
	c, err := db.Head(ctx, q.Conversation, store.Main)
	if err != nil {
		return "", err
	}

	var text strings.Builder
	switch q.Form {
	case "", "log":
		err = c.DAG().WriteLog(&text, &dag.LogOptions{})
	case "mermaid":
		err = viz.Mermaid(&text, c.DAG(), nil)
	case "json":
		err = c.DAG().Write(&text)
	default:
		err = fmt.Errorf("unknown form %q: use log, mermaid or json", q.Form)
	}
	return text.String(), err
}
