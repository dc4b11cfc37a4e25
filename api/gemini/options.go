package gemini

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/plait-dev/plait/api"
	"google.golang.org/genai"
)

// API is the name of the Gemini API, also on Vertex AI, in blocks, definitions, answers and errors.
const API = "gemini"

// Options are the options of a [Provider]. Nil is the same as the zero value. Of those in api.Options,
//
//   - Thinking is a thinkingConfig: ThinkOff a budget of 0, ThinkAuto one of -1, and a word a thinkingLevel; for models before
//     Gemini 3, which know no levels, it is a budget. What the model thinks is shown, but for ThinkOff. Some models cannot do
//     without thinking, and refuse ThinkOff.
//   - Of StopSequences, the first five are sent.
//   - Output is a responseJsonSchema, reduced to what the API takes. Models before Gemini 3 take none
//     beside tools: it is left out then, and noted.
//   - Metadata is the labels of a request on Vertex AI, where SDK.Backend says so. The Gemini API has none.
//   - OneCall cannot be asked for.
//   - Cache: the API caches by itself; CacheLong, CacheOff and other policies cannot be asked for, and are noted.
//   - Body is merged into the request member by member, and so are its "generationConfig" and "toolConfig"; "contents",
//     "systemInstruction" and "tools" are left out of it. With "cachedContent" the API takes neither system prompts nor tools,
//     because the cached content holds them: they are left out, and noted.
type Options struct {
	api.Options
	// NoStream asks for the whole answer at once. Defaults to false.
	NoStream bool
	// SDK is the configuration of the official SDK's client: a key or credentials, the backend, a project and location, an HTTP
	// client, and in HTTPOptions a base URL and headers. It is completed by what the environment says (GEMINI_API_KEY,
	// GOOGLE_GENAI_USE_VERTEXAI and others). Its RetryOptions, ExtraBody and ExtrasRequestProvider have no effect. Defaults to
	// nil: the environment alone.
	SDK *genai.ClientConfig
}

// over returns the options for one request.
func (o *Options) over(request api.Options) Options {
	var c Options
	if o != nil {
		c = *o
	}
	c.Options = request.Over(c.Options)
	return c
}

// vertex reports whether the options themselves say that requests go to Vertex AI.
func (o *Options) vertex() bool {
	return o.SDK != nil && (o.SDK.Backend == genai.BackendVertexAI || o.SDK.Backend == genai.BackendEnterprise)
}

var generationInName = regexp.MustCompile(`gemini-(\d{1,3})\b`)

// firstSigned is the first generation of models that want a signature on calls, and that know levels of thinking.
const firstSigned = 3

// generationOf is the generation of a model by its name; 0 when the name does not say. A name such as "gemini-flash-latest" stands
// for a model of the present.
func generationOf(model string) int {
	if m := generationInName.FindStringSubmatch(model); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	if strings.Contains(model, "gemini-") && strings.HasSuffix(model, "-latest") {
		return firstSigned
	}
	return 0
}
