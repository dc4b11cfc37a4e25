package main

import (
	"cmp"
	"net/http"
	"os"
	"slices"

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

// keyless is the transport to a server that only FILE names. It drops what the SDKs add from the environment: keys,
// tokens and headers of any name.
type keyless struct{ next http.RoundTripper }

func (k keyless) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name := range r.Header {
		switch name {
		case "Accept", "Accept-Encoding", "Anthropic-Beta", "Anthropic-Version", "Content-Type", "User-Agent":
		default:
			if value := r.Header.Get(name); value != noKey && value != "Bearer "+noKey {
				delete(r.Header, name)
			}
		}
	}
	return k.next.RoundTrip(r)
}

// withoutKeys returns a client like the given one, or like the SDKs' own for nil, over keyless.
func withoutKeys(client *http.Client) *http.Client {
	own := http.Client{}
	if client != nil {
		own = *client
	}
	if own.Transport == nil {
		own.Transport = http.DefaultTransport
	}
	own.Transport = keyless{own.Transport}
	return &own
}

// lacksKey reports whether requests are sent with noKey. names are the variables that may have a key.
func (how endpointOptions) lacksKey(names ...string) bool {
	inEnvironment := slices.ContainsFunc(names, func(name string) bool { return os.Getenv(name) != "" })
	return how.unnamed || how.needsNoKey() && !inEnvironment
}

// needsNoKey reports whether requests are sent without a key, if none is in the environment.
func (how endpointOptions) needsNoKey() bool { return how.baseURL != "" || how.keyless }

func anthropicOptions(how endpointOptions) *anthropic.Options {
	o := &anthropic.Options{NoStream: how.whole, Prefill: how.prefill}
	if how.baseURL != "" {
		o.SDK = append(o.SDK, sdkanthropic.WithBaseURL(how.baseURL))
	}
	if how.lacksKey("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN") {
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
	case how.lacksKey("OPENAI_API_KEY"):
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
	if how.lacksKey("GEMINI_API_KEY", "GOOGLE_API_KEY") {
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
