package main

import (
	"os"

	sdkanthropic "github.com/anthropics/anthropic-sdk-go/option"
	sdkopenai "github.com/openai/openai-go/v3/option"
	"google.golang.org/genai"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/gemini"
	"github.com/plait-dev/plait/api/openai"
)

// noKey is the key for a server of one's own, which wants none; the SDKs make no request without.
const noKey = "none"

func dialAnthropic(model string, c connection) api.Provider {
	o := &anthropic.Options{NoStream: c.whole}
	if c.baseURL != "" {
		o.SDK = append(o.SDK, sdkanthropic.WithBaseURL(c.baseURL))
		if os.Getenv("ANTHROPIC_API_KEY") == "" && os.Getenv("ANTHROPIC_AUTH_TOKEN") == "" {
			o.SDK = append(o.SDK, sdkanthropic.WithAPIKey(noKey))
		}
	}
	return anthropic.New(model, o)
}

func dialChat(model string, c connection) api.Provider { return openai.NewChat(model, openAI(c)) }

func dialResponses(model string, c connection) api.Provider {
	return openai.NewResponses(model, openAI(c))
}

func openAI(c connection) *openai.Options {
	o := &openai.Options{NoStream: c.whole}
	if c.baseURL != "" {
		o.SDK = append(o.SDK, sdkopenai.WithBaseURL(c.baseURL))
		if os.Getenv("OPENAI_API_KEY") == "" {
			o.SDK = append(o.SDK, sdkopenai.WithAPIKey(noKey))
		}
	}
	return o
}

func dialGemini(model string, c connection) api.Provider {
	o := &gemini.Options{NoStream: c.whole}
	if c.baseURL != "" {
		o.SDK = &genai.ClientConfig{HTTPOptions: genai.HTTPOptions{BaseURL: c.baseURL}}
		if os.Getenv("GEMINI_API_KEY") == "" && os.Getenv("GOOGLE_API_KEY") == "" {
			o.SDK.APIKey, o.SDK.Backend = noKey, genai.BackendGeminiAPI
		}
	}
	return gemini.New(model, o)
}

// importGemini is gemini.Import, whose bodies do not name the model.
func importGemini(body []byte) (api.Request, string, error) {
	req, err := gemini.Import(body)
	return req, "", err
}
