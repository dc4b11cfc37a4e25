package main

import (
	"cmp"
	"os"

	sdkanthropic "github.com/anthropics/anthropic-sdk-go/option"
	sdkopenai "github.com/openai/openai-go/v3/option"
	"google.golang.org/genai"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/gemini"
	"github.com/plait-dev/plait/api/openai"
)

// noKey is the API key for a server of the user's own. It needs none, but without a key the SDKs send no request.
const noKey = "none"

// needsNoKey reports whether requests are sent without a key, if none is in the environment.
func (how endpointOptions) needsNoKey() bool { return how.baseURL != "" || how.keyless }

func anthropicOptions(how endpointOptions) *anthropic.Options {
	o := &anthropic.Options{NoStream: how.whole, Prefill: how.prefill}
	if how.baseURL != "" {
		o.SDK = append(o.SDK, sdkanthropic.WithBaseURL(how.baseURL))
	}
	if how.needsNoKey() && os.Getenv("ANTHROPIC_API_KEY") == "" && os.Getenv("ANTHROPIC_AUTH_TOKEN") == "" {
		o.SDK = append(o.SDK, sdkanthropic.WithAPIKey(noKey))
	}
	if how.client != nil {
		o.SDK = append(o.SDK, sdkanthropic.WithHTTPClient(how.client))
	}
	return o
}

func openAIOptions(how endpointOptions) *openai.Options {
	o := &openai.Options{NoStream: how.whole, Audio: how.audio}
	if how.server != nil {
		o.Server = how.server.Server
	}
	if how.baseURL != "" {
		o.SDK = append(o.SDK, sdkopenai.WithBaseURL(how.baseURL))
	}

	// Another provider on the network must not get the key of OpenAI.
	switch {
	case how.server != nil && how.server.Key != "":
		o.SDK = append(o.SDK, sdkopenai.WithAPIKey(cmp.Or(os.Getenv(how.server.Key), noKey)))
	case how.needsNoKey() && os.Getenv("OPENAI_API_KEY") == "":
		o.SDK = append(o.SDK, sdkopenai.WithAPIKey(noKey))
	}
	if how.client != nil {
		o.SDK = append(o.SDK, sdkopenai.WithHTTPClient(how.client))
	}
	return o
}

func geminiOptions(how endpointOptions) *gemini.Options {
	o := &gemini.Options{NoStream: how.whole}
	if !how.needsNoKey() && how.client == nil {
		return o
	}

	o.SDK = &genai.ClientConfig{HTTPOptions: genai.HTTPOptions{BaseURL: how.baseURL}, HTTPClient: how.client}
	if how.needsNoKey() && os.Getenv("GEMINI_API_KEY") == "" && os.Getenv("GOOGLE_API_KEY") == "" {
		o.SDK.APIKey, o.SDK.Backend = noKey, genai.BackendGeminiAPI
	}
	return o
}

func dialAnthropic(how endpointOptions) api.Provider {
	return anthropic.New(how.model, anthropicOptions(how))
}

func dialChat(how endpointOptions) api.Provider { return openai.NewChat(how.model, openAIOptions(how)) }

func dialResponses(how endpointOptions) api.Provider {
	return openai.NewResponses(how.model, openAIOptions(how))
}

func dialGemini(how endpointOptions) api.Provider { return gemini.New(how.model, geminiOptions(how)) }

// importGemini is gemini.Import, without a model: bodies for Gemini do not name it.
func importGemini(body []byte) (api.Request, string, error) {
	req, err := gemini.Import(body)
	return req, "", err
}
