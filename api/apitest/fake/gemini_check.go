package fake

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/internal/pattern"
)

// CheckGemini returns nil for a request body acceptable to the Gemini API for a model, such as "gemini-3-pro".
// Otherwise it returns an *[api.Error] with status 400 and the API's own error text, if it is known. It checks these
// rules, observed at the API:
//
//   - Function calls are in a content of the model, after a user's content. The next content has one response for each,
//     matched by ID or else by name. No other content has responses.
//   - Models from Gemini 3 on: the first function call of each step of the current turn has a thought signature.
//   - Every content has parts, and every part has one kind of data. The first and the last content are the user's.
//   - Bytes are base64, of an accepted type, and images are images.
//   - Function names are well formed and unique. Schemas use only known keywords. A function config comes with
//     functions.
//   - Numbers are in their ranges. A thinking budget and a thinking level exclude each other. So do a cached content
//     and tools or a system instruction.
//   - There are no members unknown to the API.
//
// If models not named above differ, the strictest behavior observed counts.
func CheckGemini(model string, body []byte) error {
	c := geminiCheck{model: strings.TrimPrefix(model, "models/"), functions: map[string]bool{}}
	c.request(body)
	if c.err == nil {
		return nil
	}
	return c.err
}

// geminiCheck is the state of a check. Only the first failure counts.
type geminiCheck struct {
	model     string
	err       *api.Error
	functions map[string]bool // the names of the declared functions
	served    bool            // the tools include one run by the API itself
}

// geminiRule checks one value. It is never null.
type geminiRule func(c *geminiCheck, path string, v jsontext.Value)

// geminiMembers holds the members of a message, by their names in the protocol buffer.
type geminiMembers map[string]geminiRule

var (
	fromGemini3   = regexp.MustCompile(`^gemini-([3-9]|[1-9][0-9])`)
	beforeGemini3 = regexp.MustCompile(`^gemini-[12]\b`)
)

func (c *geminiCheck) fail(format string, args ...any) {
	if c.err == nil {
		c.err = refuseGemini(http.StatusBadRequest, "INVALID_ARGUMENT", fmt.Sprintf(format, args...))
	}
}

// field fails the check for a field with an invalid value.
func (c *geminiCheck) field(path, format string, args ...any) {
	c.fail("* GenerateContentRequest.%s: %s\n", path, fmt.Sprintf(format, args...))
}

// value fails the check for a value of the wrong type.
func (c *geminiCheck) value(path, kind string, v jsontext.Value) {
	parent, name := path, path
	if i := strings.LastIndexByte(path, '.'); i >= 0 {
		parent, name = path[:i], path[i+1:]
	}

	// The API refuses a list in the place of a single value with a text of its own, which names the parent.
	if v.Kind() == '[' {
		at := ""
		if parent != path {
			at = fmt.Sprintf(" at '%s'", parent)
		}
		c.fail(`Invalid JSON payload received. Unknown name "%s"%s: Proto field is not repeating, cannot start list.`,
			name, at)
		return
	}
	c.fail("Invalid value at '%s' (%s), %s", path, kind, shortly(v))
}

// message reads an object and returns its members by their names in the protocol buffer, without null members. Each
// member must be known and pass its rule.
func (c *geminiCheck) message(path, kind string, v jsontext.Value, known geminiMembers) object {
	if v.Kind() != '{' {
		c.value(path, "type.googleapis.com/google.ai.generativelanguage.v1beta."+kind, v)
		return object{}
	}

	named := withoutNulls(v)
	o := object{}

	// In alphabetical order: the same body must fail the same way each time.
	for _, name := range slices.Sorted(maps.Keys(named)) {
		field := snake(name)
		rule, ok := known[field]
		if !ok {
			at := ""
			if path != "" {
				at = fmt.Sprintf(" at '%s'", path)
			}
			c.fail(`Invalid JSON payload received. Unknown name "%s"%s: Cannot find field.`, name, at)
			continue
		}

		o[field] = named[name]
		if rule != nil {
			rule(c, within(path, field), named[name])
		}
	}
	return o
}

// snake returns a member's name in lower case with underscores. The API accepts both forms.
func snake(name string) string {
	var b strings.Builder
	for _, r := range name {
		if 'A' <= r && r <= 'Z' {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// repeated reads a list. Any other value counts as a list with one item.
func repeated(v jsontext.Value) []jsontext.Value {
	switch v.Kind() {
	case jsontext.KindInvalid, 'n':
		return nil
	case '[':
		var list []jsontext.Value
		_ = json.Unmarshal(v, &list) // the body was valid
		return list
	}
	return []jsontext.Value{v}
}

// The rules shared by many members.

func gString(c *geminiCheck, path string, v jsontext.Value) {
	if v.Kind() != '"' {
		c.value(path, "TYPE_STRING", v)
	}
}

func gBool(c *geminiCheck, path string, v jsontext.Value) {
	if v.Kind() != 't' && v.Kind() != 'f' {
		c.value(path, "TYPE_BOOL", v)
	}
}

// gBytes accepts base64 in either alphabet.
func gBytes(c *geminiCheck, path string, v jsontext.Value) {
	gString(c, path, v)
	if _, err := geminiBytes(text(v)); err != nil {
		c.fail("Invalid value at '%s' (TYPE_BYTES), Base64 decoding failed for %s", path, shortly(v))
	}
}

func geminiBytes(data string) ([]byte, error) {
	data = strings.TrimRight(strings.NewReplacer("-", "+", "_", "/").Replace(data), "=")
	return base64.RawStdEncoding.DecodeString(data)
}

// gStruct accepts any object.
func gStruct(c *geminiCheck, path string, v jsontext.Value) {
	if v.Kind() != '{' {
		c.value(path, "type.googleapis.com/google.protobuf.Struct", v)
	}
}

// geminiNumber matches a number in JSON. Package strconv accepts more, such as hexadecimal digits.
var geminiNumber = pattern.Of(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// gNumber accepts a number from low to high. Message is the format of the error text.
func gNumber(kind string, low, high float64, message string) geminiRule {
	return func(c *geminiCheck, path string, v jsontext.Value) {
		digits := strings.Trim(string(v), `"`) // a number may be written as a string
		n, _ := strconv.ParseFloat(digits, 64) // infinite for a number beyond float64

		// An integer may be written as 1.0 or 1e2, too. A float may be one of three words; none is in a range.
		valid := geminiNumber().MatchString(digits)
		if kind == "TYPE_INT32" {
			valid = valid && n == math.Trunc(n)
		} else {
			valid = valid || slices.Contains([]string{`"NaN"`, `"Infinity"`, `"-Infinity"`}, string(v))
		}

		switch {
		case !valid:
			c.value(path, kind, v)
		case math.IsNaN(n) || n < low || n > high:
			_, name, _ := strings.Cut(path, ".")
			c.field(path, message, name)
		}
	}
}

// gEnum accepts a value of an enumeration.
func gEnum(kind string, known ...string) geminiRule {
	return func(c *geminiCheck, path string, v jsontext.Value) {
		if v.Kind() != '"' || !slices.Contains(known, strings.ToUpper(text(v))) {
			c.value(path, "type.googleapis.com/google.ai.generativelanguage.v1beta."+kind, v)
		}
	}
}

// gList accepts a list if all its values pass the rule.
func gList(rule geminiRule) geminiRule {
	return func(c *geminiCheck, path string, v jsontext.Value) {
		for i, item := range repeated(v) {
			rule(c, fmt.Sprintf("%s[%d]", path, i), item)
		}
	}
}

// gMessage accepts an object with the known members.
func gMessage(kind string, known geminiMembers) geminiRule {
	return func(c *geminiCheck, path string, v jsontext.Value) { c.message(path, kind, v, known) }
}

var geminiRequest = geminiMembers{
	"contents": nil, "system_instruction": nil, "tools": nil, "tool_config": nil, "generation_config": nil,
	"cached_content": gString, "model": gString, "labels": gStruct, "service_tier": gString, "store": gBool,
	"safety_settings": gList(gMessage("SafetySetting", geminiMembers{
		"category": gEnum("HarmCategory", "HARM_CATEGORY_UNSPECIFIED", "HARM_CATEGORY_HARASSMENT", "HARM_CATEGORY_HATE_SPEECH",
			"HARM_CATEGORY_SEXUALLY_EXPLICIT", "HARM_CATEGORY_DANGEROUS_CONTENT", "HARM_CATEGORY_CIVIC_INTEGRITY", "HARM_CATEGORY_JAILBREAK"),
		"threshold": gEnum("SafetySetting.HarmBlockThreshold", "HARM_BLOCK_THRESHOLD_UNSPECIFIED", "BLOCK_LOW_AND_ABOVE",
			"BLOCK_MEDIUM_AND_ABOVE", "BLOCK_ONLY_HIGH", "BLOCK_NONE", "OFF"),
		"method": gString,
	})),
}

func (c *geminiCheck) request(body []byte) {
	v := jsontext.Value(body)
	if !v.IsValid() {
		c.fail("Invalid JSON payload received. Expected a value.")
		return
	}
	if v.Kind() != '{' {
		c.fail("Invalid JSON payload received. Root element must be a message.")
		return
	}

	// Only the first failure counts: this order decides about the reported one. The tool config and the generation
	// config are checked against the tools, so the tools come before them.
	o := c.message("", "GenerateContentRequest", v, geminiRequest)
	c.system(o["system_instruction"])
	c.checkTools(o["tools"])
	c.toolConfig(o["tool_config"])
	c.generation(o)
	if o["cached_content"] != nil && (o["system_instruction"] != nil || o["tools"] != nil || o["tool_config"] != nil) {
		c.fail("CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.")
	}

	contents := c.contents(o["contents"])
	c.turns(contents)

	// Models before Gemini 3 accept calls without a signature.
	if fromGemini3.MatchString(c.model) {
		c.signed(contents)
	}
}

func (c *geminiCheck) system(v jsontext.Value) {
	if v == nil {
		return
	}

	const path = "system_instruction"
	o := c.message(path, "Content", v, geminiMembers{"role": gString, "parts": nil})

	parts := repeated(o["parts"])
	if len(parts) == 0 {
		c.field(path+".parts", "contents.parts must not be empty.")
	}
	for i, v := range parts {
		c.part(fmt.Sprintf("%s.parts[%d]", path, i), v)
	}
}

var geminiGeneration = geminiMembers{
	"response_json_schema": nil, "response_schema": nil, "thinking_config": nil, "speech_config": nil, "image_config": nil,
	"routing_config": nil, "model_selection_config": nil, "response_format": nil,
	"candidate_count":   gNumber("TYPE_INT32", 1, 8, "%s must be in the range [1, 8]."),
	"max_output_tokens": gNumber("TYPE_INT32", 1, 1<<31-1, "%s must be positive."),
	"temperature":       gNumber("TYPE_FLOAT", 0, 2, "%s must be in the range [0.0, 2.0]."),
	"top_p":             gNumber("TYPE_FLOAT", 0, 1, "%s must be in the range [0.0, 1.0]."),
	"top_k":             gNumber("TYPE_FLOAT", 1, 1<<31-1, "%s must be positive."),
	"seed":              gNumber("TYPE_INT32", -1<<31, 1<<31-1, "%s must be in the range of a 32-bit integer."),
	"logprobs":          gNumber("TYPE_INT32", 0, 20, "%s must be in the range [0, 20]."),
	"presence_penalty":  gNumber("TYPE_FLOAT", -2, 2, "%s must be in the range [-2.0, 2.0]."),
	"frequency_penalty": gNumber("TYPE_FLOAT", -2, 2, "%s must be in the range [-2.0, 2.0]."),
	"response_logprobs": gBool, "enable_affective_dialog": gBool, "audio_timestamp": gBool, "enable_enhanced_civic_answers": gBool,
	"response_mime_type": gString,
	"stop_sequences":     gList(gString),
	"media_resolution":   gString,
	"response_modalities": gList(gEnum("GenerationConfig.Modality", "MODALITY_UNSPECIFIED", "TEXT", "IMAGE", "AUDIO",
		"VIDEO")),
}

// generation checks the generation config, and its relation to the tools.
func (c *geminiCheck) generation(request object) {
	if request["generation_config"] == nil {
		return
	}

	const path = "generation_config"
	o := c.message(path, "GenerationConfig", request["generation_config"], geminiGeneration)

	if n := len(repeated(o["stop_sequences"])); n > 5 {
		c.field(path+".stop_sequences", "the number of stop_sequences must not exceed 5.")
	}

	c.thinking(o["thinking_config"])

	// The form of the response: a schema needs the media type of JSON or of an enum.
	mime := text(o["response_mime_type"])
	if o["response_mime_type"] != nil &&
		!slices.Contains([]string{"text/plain", "application/json", "application/xml", "application/yaml",
			"text/x.enum"}, mime) {
		c.field(path+".response_mime_type",
			"allowed mimetypes are `text/plain`, `application/json`, `application/xml`, `application/yaml` and `text/x.enum`.")
	}

	if o["response_schema"] != nil && o["response_json_schema"] != nil {
		c.field(path, "response_schema and response_json_schema cannot be set together.")
	}
	if (o["response_schema"] != nil || o["response_json_schema"] != nil) && mime != "application/json" &&
		mime != "text/x.enum" {
		c.field(path+".response_mime_type",
			"response_mime_type must be `application/json` or `text/x.enum` when a response schema is set.")
	}

	// Only response_schema is in the API's own form. A response_json_schema may have any keyword.
	if o["response_schema"] != nil {
		c.schema(path+".response_schema", o["response_schema"], 0)
	}

	// Gemini 3 accepts JSON output beside functions.
	if mime == "application/json" && len(c.functions) > 0 && beforeGemini3.MatchString(c.model) {
		c.fail("Function calling with a response mime type: 'application/json' is unsupported")
	}
}

func (c *geminiCheck) thinking(v jsontext.Value) {
	if v == nil {
		return
	}
	o := c.message("generation_config.thinking_config", "ThinkingConfig", v, geminiMembers{"include_thoughts": gBool,
		"thinking_budget": gNumber("TYPE_INT32", -1, 1<<31-1, "%s must not be negative."),
		"thinking_level": gEnum("ThinkingConfig.ThinkingLevel", "THINKING_LEVEL_UNSPECIFIED", "MINIMAL", "LOW",
			"MEDIUM", "HIGH")})

	switch {
	case o["thinking_budget"] != nil && o["thinking_level"] != nil:
		c.fail("You can only set only one of thinking budget and thinking level.")
	case o["thinking_level"] != nil && beforeGemini3.MatchString(c.model):
		c.fail("thinking_level is not supported by this model")
	}
}
