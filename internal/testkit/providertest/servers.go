package providertest

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/compatible"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/servers"
)

// RequireServerBodies requires a golden file with the bodies of requests for each server of package compatible, and for
// none. The requests have all parts with differences between servers: tool choices, limits, forms of a response, and
// thinking of earlier responses. Body makes a body for a server.
func RequireServerBodies(
	t *testing.T, file string, thinking []content.Thinking,
	body func(server compatible.Server, req api.Request) ([]byte, []api.RepairNote, error),
) {
	t.Helper()
	tools := []content.Tool{{Name: "ls", Schema: `{"type":"object"}`}, {Name: "cat", Schema: `{"type":"object"}`}}
	form := api.Schema{Name: "city", JSON: `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`}

	requests := []Case{
		{Name: "one tool, once", Request: api.Request{Tools: tools, Options: api.Options{ToolChoice: api.OneTool("ls"), OneCall: true, MaxTokens: 100, Thinking: api.ThinkMedium}}},
		{Name: "a tool that is not there", Request: api.Request{Tools: tools, Options: api.Options{ToolChoice: api.OneTool("rm")}}},
		{Name: "no tool", Request: api.Request{Tools: tools, Options: api.Options{ToolChoice: api.ToolsNone}}},
		{Name: "any tool", Request: api.Request{Tools: tools, Options: api.Options{ToolChoice: api.ToolsAny}}},
		{Name: "a form", Request: api.Request{System: []string{"Be brief."}, Options: api.Options{Output: form, Thinking: api.ThinkOff, Cache: api.CacheLong}}},
		{Name: "a budget", Request: api.Request{Options: api.Options{Thinking: api.ThinkTokens(2000)}}},
		{Name: "the model thinks as it likes", Request: api.Request{Options: api.Options{Thinking: api.ThinkAuto}}},
	}

	// All thinking in one conversation: each piece in a turn of its own, with a call.
	thought := Case{Name: "thinking"}
	for i, b := range thinking {
		id := fmt.Sprintf("call_%d", i)
		call, _ := content.Of(b, content.ToolUse{ID: id, Name: "ls", Input: "{}"})
		result, _ := content.Of(content.ToolResult{CallID: id, Content: content.Words("a")})
		thought.Request.Messages = append(thought.Request.Messages,
			content.Message{Role: content.Assistant, Blocks: call}, content.Message{Role: content.User, Blocks: result})
	}
	thought.Request.Tools = tools
	requests = append(requests, thought)

	const none = "no server"
	var cases []Case
	hello := content.Message{Role: content.User, Blocks: content.Words("Hello")}
	for _, server := range append([]string{""}, servers.Names()...) {
		for _, c := range requests {
			c.Name = cmp.Or(server, none) + ": " + c.Name
			// The conversation with thinking begins with the assistant, the others are empty.
			c.Request.Messages = append([]content.Message{hello}, c.Request.Messages...)
			cases = append(cases, c)
		}
	}

	RequireBodies(t, file, cases, func(c Case) ([]byte, []api.RepairNote, error) {
		// The name of a case begins with its server.
		server, _, _ := strings.Cut(c.Name, ": ")
		return body(compatible.Server(strings.TrimPrefix(server, none)), c.Request)
	})
}
