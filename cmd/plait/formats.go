package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/compatible"
	"github.com/plait-dev/plait/api/gemini"
	"github.com/plait-dev/plait/api/openai"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/lineage"
	"github.com/plait-dev/plait/internal/servers"
)

// endpoint is an API, with its functions for this command.
type endpoint struct {
	// name is the name of the provider and of the format.
	name string
	// api is the name of the API in blocks and answers.
	api    string
	parse  func(body []byte) (api.Request, string, error)
	body   func(req api.Request, how endpointOptions) ([]byte, []api.RepairNote, error)
	dial   func(how endpointOptions) api.Provider
	models string // the name of a model, as an example
	// server is the compatible server of this name; nil for the provider of the API itself.
	server *servers.Rules
}

// endpointOptions are the settings for the requests to an API.
type endpointOptions struct {
	model   string
	server  *servers.Rules // nil for the provider of the API itself
	baseURL string
	whole   bool // not streamed
	prefill bool // the imported request ends with text of the assistant, for the model to continue
	audio   bool // the model accepts all blocks of the imported request

	client  *http.Client // nil for the SDK's own
	keyless bool         // no request leaves the machine, so no key is needed
	unnamed bool         // only FILE names the server, so it gets no key
}

// endpoints are the APIs, in the order of the help text.
var endpoints = []endpoint{
	{
		name: "anthropic", api: anthropic.API, models: "claude-sonnet-4-5",
		parse: anthropic.Import,
		body: func(req api.Request, how endpointOptions) ([]byte, []api.RepairNote, error) {
			return anthropic.Body(req, how.model, anthropicOptions(how))
		},
		dial: dialAnthropic,
	},
	{
		name: "openai-chat", api: openai.ChatAPI, models: "gpt-4.1",
		parse: openai.ImportChat,
		body: func(req api.Request, how endpointOptions) ([]byte, []api.RepairNote, error) {
			return openai.ChatBody(req, how.model, openAIOptions(how))
		},
		dial: dialChat,
	},
	{
		name: "openai-responses", api: openai.ResponsesAPI, models: "gpt-5",
		parse: openai.ImportResponses,
		body: func(req api.Request, how endpointOptions) ([]byte, []api.RepairNote, error) {
			return openai.ResponsesBody(req, how.model, openAIOptions(how))
		},
		dial: dialResponses,
	},
	{
		name: "gemini", api: gemini.API, models: "gemini-2.5-flash",
		parse: importGemini,
		body: func(req api.Request, how endpointOptions) ([]byte, []api.RepairNote, error) {
			return gemini.Body(req, how.model, geminiOptions(how))
		},
		dial: dialGemini,
	},
}

// endpointOf returns the API with the given name. The name "openai" is short for "openai-responses". The name of a
// compatible server gives its Chat Completions.
func endpointOf(name string) (endpoint, error) {
	for _, e := range endpoints {
		if e.name == name {
			return e, nil
		}
	}
	if name == "openai" {
		return endpointOf("openai-responses")
	}
	// The empty name is known too, as the provider of the API itself.
	if server, known := servers.Of(compatible.Server(name)); known && name != "" {
		e, err := endpointOf("openai-chat")
		e.name, e.server, e.models = name, server, "qwen3"
		return e, err
	}

	names := slices.Concat(endpointNames(), servers.Names())
	return endpoint{}, fmt.Errorf("%q is not one of openai, %s", name, strings.Join(names, ", "))
}

// providerOf guesses the provider from the name of a model: anthropic, openai or gemini. It returns "" for other names.
func providerOf(model string) string {
	for _, family := range []struct{ prefix, provider string }{
		{"claude", "anthropic"}, {"gemini", "gemini"}, {"gpt-", "openai"}, {"o1", "openai"}, {"o3", "openai"}, {"o4", "openai"},
	} {
		if strings.HasPrefix(model, family.prefix) {
			return family.provider
		}
	}
	return ""
}

// endpointNames returns the names of all APIs.
func endpointNames() []string {
	names := make([]string, len(endpoints))
	for i, e := range endpoints {
		names[i] = e.name
	}
	return names
}

// savedRequest holds the members of an imported request other than the conversation. They are saved in the metadata of
// the file, to make the request again.
type savedRequest struct {
	API   string          `json:"api"`
	Model string          `json:"model,omitempty"`
	Cache api.Cache       `json:"cache,omitempty"`
	Body  json.RawMessage `json:"body,omitzero"`
	// Prefill is set if the request ends with text of the assistant, for the model to continue.
	Prefill bool `json:"prefill,omitempty"`
}

// requestKey is the metadata key of the savedRequest.
const requestKey = "plait.request"

// conversation returns the conversation in an imported request.
func conversation(apiName, model string, req api.Request) dag.DAG {
	d := dag.FromTranscript(dag.Transcript{System: req.System, Tools: req.Tools, Messages: req.Messages})

	kept := savedRequest{API: apiName, Model: model, Cache: req.Options.Cache}
	// A last message with calls waits for their results: it is no text to continue.
	if n := len(req.Messages); n > 0 {
		last := req.Messages[n-1]
		kept.Prefill = last.Role == content.Assistant && len(last.Blocks.ToolUses()) == 0
	}

	if req.Options.Body != "" {
		kept.Body = json.RawMessage(req.Options.Body)
	}
	d = d.WithMetadata(lineage.NoStarts, true) // a request does not say which of its open calls were started
	return d.WithMetadata(requestKey, kept)
}

// savedRequestOf returns the saved request of a conversation, or the zero value.
func savedRequestOf(d dag.DAG) (a savedRequest) {
	if kept := d.Metadata().Get(requestKey); kept != "" {
		_ = kept.Decode(&a) // a value of another program is ignored
	}
	return a
}

// request returns the request for a conversation. If the conversation was imported from a request, it has the options of
// that request. Another API gets the settings that all APIs have.
func request(d dag.DAG, e endpoint) api.Request {
	t := d.Transcript()
	req := api.Request{System: t.System, Tools: t.Tools, Messages: t.Messages}
	if a := savedRequestOf(d); a.API == e.api {
		req.Options.Cache, req.Options.Body = a.Cache, content.JSON(a.Body)
	} else {
		req.Options.Body, req.Options.BodyAPI = content.JSON(a.Body), a.API
	}
	return req
}

// optionsFor returns the settings for requests to an API. For the API and model of the imported request, they are the
// settings of that request.
func optionsFor(d dag.DAG, e endpoint, named string) (endpointOptions, error) {
	model, err := modelOf(d, e, named)
	how := endpointOptions{model: model, server: e.server}
	if a := savedRequestOf(d); a.API == e.api && a.Model == model {
		how.prefill, how.audio = a.Prefill, true
	}
	return how, err
}

// withBody saves further members for request bodies in the metadata, in place of those of the imported request.
func withBody(d dag.DAG, e endpoint, model, members string) (dag.DAG, error) {
	if members == "" {
		return d, nil
	}

	var object map[string]json.RawMessage
	// null is valid JSON without an object: it leaves the map nil.
	if err := json.Unmarshal([]byte(members), &object); err != nil || object == nil {
		return d, fmt.Errorf("--body is not a JSON object: %q", members)
	}

	kept := savedRequestOf(d)
	// The settings of a request to another API do not apply to this one.
	if kept.API != e.api {
		kept = savedRequest{API: e.api, Model: model}
	}
	kept.Body = json.RawMessage(members)
	return d.WithMetadata(requestKey, kept), nil
}

// modelOf returns the model for requests: the named one, the imported request's, or the last response's, in this order.
func modelOf(d dag.DAG, e endpoint, named string) (string, error) {
	if named != "" {
		return named, nil
	}
	if a := savedRequestOf(d); a.API == e.api && a.Model != "" {
		return a.Model, nil
	}
	for _, n := range slices.Backward(d.Nodes()) {
		if m, ok := n.Message(); ok && m.Answer.API == e.api && m.Answer.Model != "" {
			return m.Answer.Model, nil
		}
	}
	return "", fmt.Errorf("the conversation names no model: name one with --model, such as %s", e.models)
}
