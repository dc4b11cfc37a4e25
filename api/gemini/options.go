package gemini

import (
	"strconv"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/batch"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/internal/pattern"
	"google.golang.org/genai"
)

// API is the name of the Gemini API, also on Vertex AI, in blocks, definitions, responses and errors.
const API = "gemini"

// Options are the options of [New]. Nil is the same as the zero value. Of those in api.Options,
//
//   - Thinking is a thinkingConfig: ThinkOff is a budget of 0, ThinkAuto a budget of -1, and a level a thinkingLevel.
//     Models before Gemini 3 have no levels: a level is sent to them as a budget. Thinking is shown, except with
//     ThinkOff. Some models cannot work without thinking, and refuse ThinkOff.
//   - Of StopSequences, the first five are sent.
//   - Output is a responseJsonSchema, reduced to the keywords accepted by the API. Models before Gemini 3 accept none
//     next to tools: it is left out then, and noted.
//   - OneCall is not supported.
//   - Cache: the API caches by itself. CacheLong, CacheOff and other policies are not supported, and noted.
//   - Body is merged into the request member by member, and so are its "generationConfig" and "toolConfig". Its
//     "contents", "systemInstruction" and "tools" are left out. With "cachedContent" the API accepts neither system
//     prompts nor tools, because the cached content holds them: they are left out, and noted.
type Options struct {
	api.Options
	// NoStream requests the whole response at once. Defaults to false.
	NoStream bool
	// Batches sends each request in a batch, at half the price: see package batch. Responses are then not streamed, and
	// Idle does not apply. Prices of an agent are those of batches: see api.Prices.Times. Vertex AI is not supported.
	// Defaults to nil.
	Batches *batch.Batches
	// SDK is the configuration of the official SDK's client: a key or credentials, the backend, a project and location,
	// an HTTP client, and in HTTPOptions a base URL and headers. The environment completes it (GEMINI_API_KEY,
	// GOOGLE_GENAI_USE_VERTEXAI and others). Its RetryOptions, ExtraBody and ExtrasRequestProvider have no effect.
	// Defaults to nil: the environment alone.
	SDK *genai.ClientConfig
}

// over returns the options for one request, and notes about them. Those of the request take precedence.
func (o *Options) over(request api.Options) (Options, []api.RepairNote) {
	var c Options
	if o != nil {
		c = *o
	}
	var notes []api.RepairNote
	c.Options, notes = dialect.Target{API: API}.Options(request, c.Options)
	if c.Batches != nil {
		c.NoStream, c.Idle = true, -1
	}
	return c, notes
}

// vertex reports whether the options select Vertex AI. The environment may do so too, but Body must not depend on it.
func (o *Options) vertex() bool {
	return o.SDK != nil && (o.SDK.Backend == genai.BackendVertexAI || o.SDK.Backend == genai.BackendEnterprise)
}

var generationInName = pattern.Of(`gemini-(\d{1,3})\b`)

// firstSigned is the first generation of models to require a signature on calls, and to have levels of thinking.
const firstSigned = 3

// generationOf returns the generation of a model by its name; 0 if the name has none. A name such as
// "gemini-flash-latest" counts as a current model.
func generationOf(model string) int {
	if m := generationInName().FindStringSubmatch(model); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	if strings.Contains(model, "gemini-") && strings.HasSuffix(model, "-latest") {
		return firstSigned
	}
	return 0
}
