package providertest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// RequireSendable makes bodies of an imported request. The API's own members are sent as they came, so the body of the
// whole request must only be an object. The strict fake must accept the body of the request without them.
func RequireSendable(t *testing.T, req api.Request, body func(api.Request) ([]byte, error), accepts func([]byte) error) {
	t.Helper()
	req.Options.Body = ""
	for _, check := range []func([]byte) error{isObject, accepts} {
		made, err := body(req)
		if err != nil {
			require.ErrorIs(t, err, api.ErrNothing)
		} else {
			require.NoError(t, check(made), string(made))
		}
		req = withoutOwn(req)
	}
}

func isObject(body []byte) error {
	_, err := jsonx.Members(content.JSON(body))
	return err
}

// withoutOwn returns the request without the parts sent as they came: the API's own members and blocks, and the tools'
// schemas.
func withoutOwn(req api.Request) api.Request {
	messages, tools := req.Messages, req.Tools
	req.Messages, req.Tools = nil, nil
	for _, def := range tools {
		def = content.Tool{Name: def.Name, Description: def.Description, Schema: `{"type":"object","properties":{}}`}
		req.Tools = append(req.Tools, def)
	}
	for _, m := range messages {
		req.Messages = append(req.Messages, content.Message{Role: m.Role, Blocks: plainBlocks(m.Blocks)})
	}
	return req
}

func plainBlocks(list content.Blocks) content.Blocks {
	var plain []content.Block
	for _, b := range list.All() {
		if b := plainBlock(b); b != nil {
			plain = append(plain, b)
		}
	}
	made, err := content.Of(plain...)
	if err != nil {
		panic(err) // they were in a list before
	}
	return made
}

// plainBlock returns the block without Extra, or nil for a block of a single API.
func plainBlock(b content.Block) content.Block {
	switch b := b.(type) {
	case content.Text:
		return content.Text{Text: b.Text}
	case content.Image:
		return content.Image{Source: b.Source}
	case content.Document:
		return content.Document{Source: b.Source, Title: b.Title}
	case content.ToolUse:
		return content.ToolUse{ID: b.ID, Name: b.Name, Input: b.Input}
	case content.ToolResult:
		return content.ToolResult{CallID: b.CallID, Content: plainBlocks(b.Content), IsError: b.IsError}
	}
	return nil
}
