package dialect_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/schema"
)

// A schema is sent with what the API knows of it, and what was left out is told.
func ExampleTarget_Tool() {
	def := content.Tool{Name: "find", Schema: `{"type":"object","properties":{"id":{"type":"string","contentEncoding":"base64"}},"minProperties":1,"if":{}}`}
	fit, why, ok := targetOf("gemini").Tool(def)
	fmt.Println(fit.Schema, ok)
	fmt.Println(why)
	// Output:
	// {"type":"object","properties":{"id":{"type":"string"}},"minProperties":1} true
	// its schema is sent without contentEncoding, if
}

func TestSchemasAreReduced(t *testing.T) {
	for schema, want := range map[content.JSON]struct {
		gemini  content.JSON
		dropped []string
		top     content.JSON // for OpenAI
	}{
		`{"type":"object"}`:                         {`{"type":"object"}`, nil, `{"type":"object"}`},
		` { "type" : "object" , "properties":{} } `: {` { "type" : "object" , "properties":{} } `, nil, ` { "type" : "object" , "properties":{} } `},
		`{"type":"object","not":{},"properties":{"not":{"not":{"type":"string"},"enum":[1.0]}}}`: {
			`{"type":"object","properties":{"not":{"enum":[1.0]}}}`, []string{"not"}, `{"type":"object","properties":{"not":{"not":{"type":"string"},"enum":[1.0]}}}`},
		`{"type":"object","anyOf":[{"if":{}},true]}`:                                    {`{"type":"object","anyOf":[{},{}]}`, []string{"if"}, `{"type":"object"}`},
		`{"type":"object","properties":{"if":{"default":{"if":1},"const":{"then":2}}}}`: {`{"type":"object","properties":{"if":{"default":{"if":1},"const":{"then":2}}}}`, nil, `{"type":"object","properties":{"if":{"default":{"if":1},"const":{"then":2}}}}`},
		`{"type":"object","properties":{"a":{"items":[{"x":1}],"prefixItems":[{"x":1},{"type":"string"}]}}}`: {
			`{"type":"object","properties":{"a":{"items":[{}],"prefixItems":[{},{"type":"string"}]}}}`, []string{"x"},
			`{"type":"object","properties":{"a":{"items":[{"x":1}],"prefixItems":[{"x":1},{"type":"string"}]}}}`},
		`{"type":"object","additionalProperties":{"format":"uri","contentMediaType":"a/b"}}`: {
			`{"type":"object","additionalProperties":{"format":"uri"}}`, []string{"contentMediaType"}, `{"type":"object","additionalProperties":{"format":"uri","contentMediaType":"a/b"}}`},
		`{"type":"object","$ref":"#/definitions/a","definitions":{"a":{"properties":{"b":{"$ref":"#/definitions/a~1\u0062"}},"if":{}}}}`: {
			`{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"properties":{"b":{"$ref":"#/$defs/a~1b"}}}}}`, []string{"if"},
			`{"type":"object","$ref":"#/definitions/a","definitions":{"a":{"properties":{"b":{"$ref":"#/definitions/a~1\u0062"}},"if":{}}}}`},
		`{"type":"object","$defs":{},"definitions":{"a":{}},"properties":{"$ref":{"type":"string"},"definitions":{}}}`: {
			`{"type":"object","$defs":{},"properties":{"$ref":{"type":"string"},"definitions":{}}}`, []string{"definitions"},
			`{"type":"object","$defs":{},"definitions":{"a":{}},"properties":{"$ref":{"type":"string"},"definitions":{}}}`},
		`{"type":"object","$ref":"#/definitions/a"}`: {
			`{"type":"object","$ref":"#/definitions/a"}`, nil, `{"type":"object","$ref":"#/definitions/a"}`},
		`{"properties":{"a":{"anyOf":[ {"type":"string"} , {} ]},"b": { "items":[ ]} }}`: {
			`{"properties":{"a":{"anyOf":[ {"type":"string"} , {} ]},"b": { "items":[ ]} }}`, nil,
			`{"properties":{"a":{"anyOf":[ {"type":"string"} , {} ]},"b": { "items":[ ]} }}`},
		`{"type":"object","patternProperties":{"^x":{}},"additionalProperties":false}`: {
			`{"type":"object"}`, []string{"patternProperties", "additionalProperties"}, `{"type":"object","patternProperties":{"^x":{}},"additionalProperties":false}`},
		`{"type":"object","properties":[],"anyOf":{},"items":7}`: {`{"type":"object","properties":[],"anyOf":{},"items":7}`, nil, `{"type":"object","properties":[],"items":7}`},
	} {
		got, dropped := targetOf("gemini").Form(schema)
		require.Equal(t, want.gemini, got)
		require.Equal(t, want.dropped, dropped, schema)
		got, _ = targetOf("openai-chat").Form(schema)
		require.Equal(t, want.top, got)
	}
}

func TestToolsThatAreNoneOfTheAPIsAreLeftOut(t *testing.T) {
	server := content.Tool{Name: "web_search", Extra: content.Extra{API: "anthropic", JSON: `{"type":"web_search_20250305"}`}}
	for name, target := range allTargets() {
		fit, why, ok := target.Tool(server)
		require.Equal(t, name == "anthropic", ok)
		require.Equal(t, ok, why == "")
		require.Equal(t, server, fit)
		for _, def := range []content.Tool{
			{}, {Name: "two words", Schema: `{"type":"object"}`}, {Name: "f"}, {Name: "f", Schema: "{"}, {Name: "f", Schema: `{"type":"array"}`}, {Name: "f", Schema: "true"},
		} {
			_, why, ok := target.Tool(def)
			require.False(t, ok)
			require.NotEmpty(t, why)
		}
	}
}

func TestDeepSchemasEnd(t *testing.T) {
	for _, open := range []string{`{"type":"object","properties":{"a":`, `{"type":"object","anyOf":[{"items":`, `{"type":"object","additionalProperties":`} {
		closing := strings.NewReplacer(`{`, "}", `[`, "]").Replace(strings.Map(func(c rune) rune {
			if c == '{' || c == '[' {
				return c
			}
			return -1
		}, open))
		runes := []rune(closing)
		slices.Reverse(runes)
		deep := content.JSON(strings.Repeat(open, 2000) + "{}" + strings.Repeat(string(runes), 2000))
		require.True(t, deep.Valid())
		for _, target := range allTargets() {
			got, dropped := target.Form(deep)
			require.True(t, got.Valid())
			require.LessOrEqual(t, jsonx.Depth(got), 400)
			require.NotEmpty(t, dropped)
		}
	}
}

func TestNotesAboutDroppedBlocksAreShort(t *testing.T) {
	var members []string
	for i := range 10_000 {
		members = append(members, fmt.Sprintf(`"x-%d":1`, i))
	}
	members = append(members, `"`+strings.Repeat("y", 1<<20)+`\u001b":1`)
	_, dropped := targetOf("gemini").Form(content.JSON("{" + strings.Join(members, ",") + "}"))
	require.Len(t, dropped, 21)
	require.Equal(t, "and others", dropped[20])
	_, dropped = targetOf("gemini").Form(content.JSON("{" + members[len(members)-1] + "}"))
	require.Less(t, len(dropped[0]), 200)
	requireShown(t, dropped[0])
}

// judged finds keywords that turn "more" into "less", and those that say where a reference leads.
var judged = regexp.MustCompile(`oneOf|not|"\$|\\|if|definitions`)

// FuzzForm reduces any schema: what comes out is a schema with what the target takes, allows what the original allows, and is
// not reduced again.
func FuzzForm(f *testing.F) {
	for _, seed := range []string{
		`{"type":"object","properties":{"a":{"if":{},"enum":[1]}},"oneOf":[{"required":["a"]}]}`, `{"definitions":{"a":{}},"$ref":"#/definitions/a"}`,
		`{"items":[{"not":{}}]}`, `{"type":"object","patternProperties":{"a":{}},"additionalProperties":false,"anyOf":[{"contains":1},{"minLength":2}]}`, `{"a":1,"a":2}`, `true`, `[]`, `{"properties":{"\u0024ref":{"$ref":"x"}}}`, `{"minProperties":1,"type":["object","null"]}`,
	} {
		f.Add(seed, `{"a":1}`)
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		j := content.JSON(text)
		if !j.IsObject() || jsonx.Depth(j) > 90 {
			return // content.Tool refuses the schema
		}
		whole, err := schema.Parse(j)
		for name, target := range allTargets() {
			got, dropped := target.Form(j)
			require.True(t, got.IsObject(), name)
			again, more := target.Form(got)
			require.Equal(t, got, again, name)
			require.Empty(t, more, name)
			if len(dropped) == 0 && !strings.Contains(text, "definitions") {
				require.Equal(t, j, got, name)
			}
			reduced, broken := schema.Parse(got)
			if err != nil || broken != nil || judged.MatchString(text) || !valid(t, whole, value) {
				continue
			}
			require.True(t, valid(t, reduced, value), name)
		}
	})
}

func valid(t *testing.T, s *schema.Schema, value string) bool {
	problems, err := s.Problems(t.Context(), content.JSON(value), schema.Check{})
	require.NoError(t, err)
	return len(problems) == 0
}

func TestAToolWhoseSchemaIsNoneIsLeftOut(t *testing.T) {
	for schema, says := range map[content.JSON]string{
		`{"type":"object","properties":0}`:                                       "properties is no object",
		`{"type":"object","properties":{"a":null}}`:                              "a schema is neither an object nor a boolean",
		`{"type":"object","properties":{"a":{"type":"array","items":"string"}}}`: "a schema is neither an object nor a boolean",
		`{"type":"object","properties":{"a":{"anyOf":{}}}}`:                      "anyOf is no list",
		`{"type":"object","additionalProperties":"no"}`:                          "a schema is neither an object nor a boolean",
	} {
		_, why, ok := targetOf("openai-chat").Tool(content.Tool{Name: "f", Schema: schema})
		require.False(t, ok, schema)
		require.Equal(t, "its schema: "+says, why)
	}
	_, why, ok := targetOf("openai-chat").Tool(content.Tool{Name: "f", Schema: `{"type":"object","properties":{"a":true,"b":{"items":false,"anyOf":[true]}}}`})
	require.True(t, ok)
	require.Empty(t, why)
}
