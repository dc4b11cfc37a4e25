package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/gemini"
	"github.com/plait-dev/plait/api/openai"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
)

// endpoint is one of the APIs, as far as the command needs it.
type endpoint struct {
	// name is that of the provider and of the format.
	name string
	// api is its name in blocks.
	api    string
	parse  func(body []byte) (api.Request, string, error)
	body   func(req api.Request, how asking) ([]byte, []api.RepairNote, error)
	dial   func(how asking) api.Provider
	models string // an example
}

// asking is how an API is asked.
type asking struct {
	model   string
	baseURL string
	whole   bool // not streamed
	// prefill says that the request that the conversation came from ends with words of the assistant, to go on with; hears, that its
	// model takes what it was sent then.
	prefill, hears bool
}

// endpoints are the APIs, in the order in which they are listed.
var endpoints = []endpoint{
	{
		name: "anthropic", api: anthropic.API, models: "claude-sonnet-4-5",
		parse: anthropic.Import,
		body: func(req api.Request, how asking) ([]byte, []api.RepairNote, error) {
			return anthropic.Body(req, how.model, anthropicOptions(how))
		},
		dial: dialAnthropic,
	},
	{
		name: "openai-chat", api: openai.ChatAPI, models: "gpt-4.1",
		parse: openai.ImportChat,
		body: func(req api.Request, how asking) ([]byte, []api.RepairNote, error) {
			return openai.ChatBody(req, how.model, openAIOptions(how))
		},
		dial: dialChat,
	},
	{
		name: "openai-responses", api: openai.ResponsesAPI, models: "gpt-5",
		parse: openai.ImportResponses,
		body: func(req api.Request, how asking) ([]byte, []api.RepairNote, error) {
			return openai.ResponsesBody(req, how.model, openAIOptions(how))
		},
		dial: dialResponses,
	},
	{
		name: "gemini", api: gemini.API, models: "gemini-2.5-flash",
		parse: importGemini,
		body: func(req api.Request, how asking) ([]byte, []api.RepairNote, error) {
			return gemini.Body(req, how.model, geminiOptions(how))
		},
		dial: dialGemini,
	},
}

// endpointOf finds an API by the name of its format, or of its provider.
func endpointOf(name string) (endpoint, error) {
	for _, e := range endpoints {
		if e.name == name {
			return e, nil
		}
	}
	if name == "openai" {
		return endpointOf("openai-responses")
	}
	return endpoint{}, fmt.Errorf("%q is none of openai, %s", name, strings.Join(endpointNames(), ", "))
}

func endpointNames() []string {
	names := make([]string, len(endpoints))
	for i, e := range endpoints {
		names[i] = e.name
	}
	return names
}

// asked is what a request says beside its conversation: it is kept in the metadata of the file, so that it can be made again.
type asked struct {
	API   string          `json:"api"`
	Model string          `json:"model,omitempty"`
	Cache api.Cache       `json:"cache,omitempty"`
	Body  json.RawMessage `json:"body,omitzero"`
	// Prefill says that it ends with words of the assistant, to go on with.
	Prefill bool `json:"prefill,omitempty"`
}

// askedKey is where it is kept.
const askedKey = "plait.request"

// conversation makes a conversation of a request.
func conversation(apiName, model string, req api.Request) dag.DAG {
	d := dag.FromTranscript(dag.Transcript{System: req.System, Tools: req.Tools, Messages: req.Messages})
	kept := asked{API: apiName, Model: model, Cache: req.Options.Cache}
	if n := len(req.Messages); n > 0 {
		last := req.Messages[n-1]
		kept.Prefill = last.Role == content.Assistant && len(last.Blocks.ToolUses()) == 0
	}
	if req.Options.Body != "" {
		kept.Body = json.RawMessage(req.Options.Body)
	}
	return d.WithMetadata(askedKey, kept)
}

// askedOf is what was kept of the request that the conversation came from.
func askedOf(d dag.DAG) (a asked) {
	if kept := d.Metadata().Get(askedKey); kept != "" {
		_ = kept.Decode(&a) // another program's is none of ours
	}
	return a
}

// request is the request that the conversation makes of an API: with what was asked beside it, where it came from there.
func request(d dag.DAG, e endpoint) api.Request {
	t := d.Transcript()
	req := api.Request{System: t.System, Tools: t.Tools, Messages: t.Messages}
	if a := askedOf(d); a.API == e.api {
		req.Options.Cache, req.Options.Body = a.Cache, content.JSON(a.Body)
	}
	return req
}

// manner is how the API is asked: the model in the way that it was asked in the request that the conversation came from.
func manner(d dag.DAG, e endpoint, named string) (asking, error) {
	model, err := modelOf(d, e, named)
	how := asking{model: model}
	if a := askedOf(d); a.API == e.api && a.Model == model {
		how.prefill, how.hears = a.Prefill, true
	}
	return how, err
}

// withBody is the conversation with other members for its requests, which are kept in place of those that it came with.
func withBody(d dag.DAG, e endpoint, model, members string) (dag.DAG, error) {
	if members == "" {
		return d, nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(members), &object); err != nil || object == nil {
		return d, fmt.Errorf("--body is no JSON object: %q", members)
	}
	kept := askedOf(d)
	if kept.API != e.api {
		kept = asked{API: e.api, Model: model}
	}
	kept.Body = json.RawMessage(members)
	return d.WithMetadata(askedKey, kept), nil
}

// modelOf is the model that is asked: the one that was named, else the one of the request that the conversation came from, else the one
// that answered last.
func modelOf(d dag.DAG, e endpoint, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	if a := askedOf(d); a.API == e.api && a.Model != "" {
		return a.Model, nil
	}
	for _, n := range slices.Backward(d.Nodes()) {
		if m, ok := n.Message(); ok && m.Answer.API == e.api && m.Answer.Model != "" {
			return m.Answer.Model, nil
		}
	}
	return "", fmt.Errorf("the conversation does not say which model to ask: name one with --model, such as %s", e.models)
}
