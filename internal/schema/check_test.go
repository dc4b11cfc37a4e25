package schema_test

import (
	"context"
	stdjson "encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/schema"
	"github.com/plait-dev/plait/internal/testkit/growthtest"
	_ "github.com/plait-dev/plait/internal/testkit/quick"
	"github.com/plait-dev/plait/internal/testkit/seedtest"
	"github.com/plait-dev/plait/internal/testkit/tooltest"
)

func parse(t testing.TB, text content.JSON) *schema.Schema {
	t.Helper()
	s, err := schema.Parse(text)
	require.NoError(t, err, "%.300s", text)
	return s
}

// requireVerdict compares the verdict about a value with that of the library.
func requireVerdict(t *testing.T, text, j content.JSON) {
	t.Helper()
	s, err := schema.Parse(text)
	var value any
	unchecked := strings.Contains(string(text), "unevaluated") || strings.Contains(string(text), "$dynamicRef")
	if err != nil || unchecked || j.Decode(&value) != nil {
		return
	}
	var tree jsonschema.Schema
	require.NoError(t, stdjson.Unmarshal([]byte(text), &tree))
	library, err := tree.Resolve(nil)
	require.NoError(t, err)

	found, err := s.Problems(t.Context(), j, schema.Check{Unknown: "is unknown"})
	require.NoError(t, err)
	if err := library.Validate(value); err == nil {
		require.Empty(t, found, "%s\n%s", text, j)
	} else {
		require.NotEmpty(t, found, "%s\n%s\n%v", text, j, err)
		require.NotEqual(t, []string{"root: does not fit the schema"}, found, "%s\n%s\n%v", text, j, err)
	}
}

// maker makes random schemas and values of few words, so that they fit one another now and then.
type maker struct{ *rand.Rand }

func (m maker) one(all ...string) string { return all[m.IntN(len(all))] }

func (m maker) name() string { return m.one("a", "b", "c") }

func (m maker) value(depth int) string {
	switch kind := m.IntN(8); {
	case depth > 0 && kind < 3:
		members := []string{}
		for _, name := range []string{"a", "b", "c"} {
			if m.IntN(2) == 0 {
				members = append(members, fmt.Sprintf("%q:%s", name, m.value(depth-1)))
			}
		}
		return "{" + strings.Join(members, ",") + "}"
	case depth > 0 && kind < 5:
		return "[" + m.list(m.IntN(4), func() string { return m.value(depth - 1) }) + "]"
	}
	return m.one("0", "-0", "1", "1.0", "2", "1.5", "-3", "1e3", `"a"`, `"b"`, `"ab"`, `"äé"`, `""`, "null", "true", "false")
}

func (m maker) list(n int, one func() string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = one()
	}
	return strings.Join(all, ",")
}

func (m maker) schema(depth int) string {
	if depth == 0 || m.IntN(8) == 0 {
		return m.one("true", "false", "{}", `{"type":"object"}`, `{"type":"integer"}`, `{"type":["string","null"]}`,
			`{"$ref":"#/$defs/a"}`, `{"$ref":"#/$defs/b"}`, `{"$ref":"#/$defs/b"}`, `{"$ref":"#"}`, `{"$ref":"#x"}`, `{"$ref":"#y"}`)
	}
	below := func() string { return m.schema(depth - 1) }
	number := func() string { return m.one("0", "1", "2") }
	members := func(one func() string) string { return fmt.Sprintf(`{%q:%s}`, m.name(), one()) }

	keywords := map[string]string{}
	for range 1 + m.IntN(3) {
		switch name := m.one(
			"type", "enum", "const", "multipleOf", "minimum", "exclusiveMaximum", "maximum", "exclusiveMinimum", "minLength", "maxLength",
			"pattern", "prefixItems", "items", "minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains",
			"minProperties", "maxProperties", "required", "dependentRequired", "properties", "properties", "properties",
			"patternProperties", "additionalProperties", "propertyNames", "allOf", "anyOf", "anyOf", "oneOf",
			"not", "if", "then", "else", "dependentSchemas", "$ref", "dependencies", "additionalItems", "tuple",
		); name {
		case "type":
			keywords[name] = m.one(`"object"`, `"array"`, `"number"`, `"integer"`, `"string"`, `"null"`, `["object","array"]`, `["number","boolean"]`, `[]`)
		case "enum":
			keywords[name] = "[" + m.list(1+m.IntN(4), func() string { return m.value(1) }) + "]"
		case "const":
			keywords[name] = m.value(1)
		case "pattern":
			keywords[name] = m.one(`"^a"`, `"b$"`, `"^.{2}$"`, `"[äa]{0,3}b?"`)
		case "patternProperties":
			keywords[name] = fmt.Sprintf(`{%s:%s,"c":%s}`, m.one(`"^a"`, `"[ab]"`), below(), below())
		case "uniqueItems":
			keywords[name] = "true"
		case "required":
			keywords[name] = fmt.Sprintf(`[%q]`, m.name())
		case "dependentRequired":
			keywords[name] = fmt.Sprintf(`{%q:[%q]}`, m.name(), m.name())
		case "dependencies":
			keywords[name] = fmt.Sprintf(`{"a":["b"],"c":%s}`, below())
		case "properties", "dependentSchemas":
			keywords[name] = members(below)
		case "allOf", "anyOf", "oneOf", "prefixItems":
			keywords[name] = "[" + m.list(1+m.IntN(3), below) + "]"
		case "tuple":
			keywords["items"] = "[" + m.list(1+m.IntN(3), below) + "]"
		case "$ref":
			keywords[name] = m.one(`"#/$defs/a"`, `"#/$defs/b"`, `"#x"`)
		case "items", "contains", "not", "if", "then", "else", "additionalProperties", "propertyNames", "additionalItems":
			keywords[name] = below()
		default: // numbers
			keywords[name] = number()
		}
	}
	return object(keywords)
}

func object(keywords map[string]string) string {
	raw := map[string]stdjson.RawMessage{}
	for name, value := range keywords {
		raw[name] = stdjson.RawMessage(value)
	}
	text, err := stdjson.Marshal(raw)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// document returns a schema with definitions. All references lead into them.
func (m maker) document() content.JSON {
	def := func(extra string) string {
		s := m.schema(2)
		if strings.HasPrefix(s, `{"`) {
			return "{" + extra + s[1:]
		}
		return "{" + strings.TrimSuffix(extra, ",") + "}"
	}
	s := m.schema(3)
	if !strings.HasPrefix(s, `{"`) {
		s = `{"properties":{"a":` + s + `}}`
	}
	version := m.one("", "", `"$schema":"http://json-schema.org/draft-07/schema#",`, `"$schema":"https://json-schema.org/draft/2020-12/schema",`)
	return content.JSON(`{` + version + `"$defs":{"a":` + def(`"$anchor":"x",`) + `,"b":` + def(`"$dynamicAnchor":"y",`) + `},` + s[1:])
}

func TestVerdictsAreThoseOfTheLibrary(t *testing.T) {
	first := seedtest.First(t)
	parsed, fitting, all := 0, 0, 0
	rounds := seedtest.Rounds(250, 50_000)
	for round := range uint64(rounds) {
		m := maker{rand.New(rand.NewPCG(first, round))}
		text := m.document()
		s, err := schema.Parse(text)
		if err != nil {
			continue
		}
		parsed++
		for range 4 {
			j := content.JSON(m.value(3))
			requireVerdict(t, text, j)
			all++
			if len(problems(t, s, j, schema.Check{})) == 0 {
				fitting++
			}
		}
	}
	require.Greater(t, parsed, rounds/4, "most random schemas are refused: the test compares too little")
	require.Greater(t, fitting, all/10)
	require.Less(t, fitting, all*9/10)
}

// FuzzVerdicts compares any verdict with that of the library. Values are short: the library may take exponential time.
func FuzzVerdicts(f *testing.F) {
	for round := range uint64(50) {
		m := maker{rand.New(rand.NewPCG(7, round))}
		f.Add(string(m.document()), m.value(3))
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		if len(text) < 2000 && len(value) < 100 && strings.Count(value, "{")+strings.Count(value, "[") < 8 {
			requireVerdict(t, content.JSON(text), content.JSON(value))
		}
	})
}

func TestArgumentsOfAnyDepthAreCheckedInTime(t *testing.T) {
	s := parse(t, tooltest.Exponential)
	for _, depth := range []int{40, 400, 4000, 9_990} {
		found := problems(t, s, tooltest.Nested(depth), schema.Check{})
		require.Len(t, found, 1, "depth %d", depth)
		require.Contains(t, found[0], "a: fits none of 2 alternatives (")
		require.Less(t, len(found[0]), 1000)
	}
}

func TestGrowthOfChecks(t *testing.T) {
	check := func(text content.JSON, value func(n int) content.JSON) func(testing.TB, int) func() {
		return func(t testing.TB, n int) func() {
			s, j := parse(t, text), value(n)
			return func() {
				if _, err := s.Problems(context.Background(), j, schema.Check{}); err != nil {
					panic(err)
				}
			}
		}
	}
	repeat := func(before, each, after string) func(int) content.JSON {
		return func(n int) content.JSON {
			return content.JSON(before + strings.TrimSuffix(strings.Repeat(each, n), ",") + after)
		}
	}
	growthtest.Run(t, []growthtest.Case{
		{Name: "a schema that refers to itself in many ways", Growth: growthtest.Linear, Setup: check(tooltest.Exponential, tooltest.Nested), Fixed: true, Small: 400, Large: 4000},
		{Name: "a tree that fits", Growth: growthtest.Linear, Fixed: true, Small: 400, Large: 4000, Setup: check(
			`{"anyOf":[{"const":null},{"const":1},{"type":"object","properties":{"a":{"$ref":"#"}}}]}`, tooltest.Nested)},
		{Name: "equal items", Growth: growthtest.Linear, Setup: check(`{"uniqueItems":true}`, func(n int) content.JSON {
			list := make([]int, n)
			for i := range list {
				list[i] = i
			}
			j, _ := content.ToJSON(list)
			return j
		})},
		{Name: "unknown members", Growth: growthtest.Linear, Setup: check(`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"additionalProperties":true}}}`,
			func(n int) content.JSON {
				members := map[string]int{}
				for i := range n {
					members[fmt.Sprint(i)] = i
				}
				j, _ := content.ToJSON(members)
				return j
			})},
		{Name: "many problems", Growth: growthtest.Linear, Setup: check(`{"items":{"type":"string"}}`, repeat("[", "1,", "]"))},
	})
}

// wide is a schema of many alternatives for each element. The check of a long list takes too many steps.
func wide() content.JSON {
	return content.JSON(`{"type":"object","properties":{"a":{"items":{"anyOf":[` + strings.Repeat(`{"type":"object","required":["b"]},`, 5000) + `{}]}}}}`)
}

func longList() content.JSON { return content.JSON(`{"a":[1` + strings.Repeat(",1", 20_000) + `]}`) }

func TestCheckEndsAtItsLimitOfSteps(t *testing.T) {
	big := `{"x":` + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + `}`
	text := strings.Repeat("x", 1<<20)
	for name, c := range map[string][2]content.JSON{
		"many alternatives":  {wide(), content.JSON(strings.ReplaceAll(string(longList()), "1", "{}"))},
		"a huge expression":  {content.JSON(`{"pattern":"` + strings.Repeat("x{0,1000}", 50) + `y"}`), content.JSON(`"` + text + `"`)},
		"equal items inside": {`{"uniqueItems":true,"items":{"$ref":"#"}}`, content.JSON(strings.Repeat("[", 9000) + "1" + strings.Repeat("]", 9000))},
		"a chain of references": {
			content.JSON(`{"$ref":"#/$defs/0","$defs":{` + chain(5000) + `"5000":{"properties":{"a":{"$ref":"#"}}}}}`), tooltest.Nested(9000)},
		"a large enum": {content.JSON(`{"items":{"enum":[[],[` + strings.Repeat("1,", 50_000) + `1]]}}`), content.JSON(`[[]` + strings.Repeat(`,[]`, 50_000) + `]`)},
		"many patterns": {content.JSON(`{"items":{"patternProperties":{` + patterns(2000) + `"z":false}}}`),
			content.JSON(`[{"x":1}` + strings.Repeat(`,{"x":1}`, 50_000) + `]`)},
	} {
		found := problems(t, parse(t, c[0]), c[1], schema.Check{})
		require.NotEmpty(t, found, name)
		require.Regexp(t, `^root: is too complex to check: the check needs more than \d+ steps$`, found[0], name)
	}

	// The limits leave room for large values.
	require.Empty(t, problems(t, parse(t, `{"properties":{"x":{"items":{"$ref":"#/properties/x"}}}}`), content.JSON(big), schema.Check{}))
	require.Empty(t, problems(t, parse(t, `{"items":{"type":"integer","minimum":0}}`),
		content.JSON("[1"+strings.Repeat(",1", 256<<10)+"]"), schema.Check{}))
}

func chain(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d":{"$ref":"#/$defs/%d"},`, i, i+1)
	}
	return b.String()
}

func patterns(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"y%d":true,`, i)
	}
	return b.String()
}

// ending is a context that ends when it is asked for the n-th time.
type ending struct {
	context.Context
	n int
}

func (e *ending) Err() error {
	if e.n--; e.n <= 0 {
		return context.DeadlineExceeded
	}
	return nil
}

func TestCheckEndsWithItsContext(t *testing.T) {
	for name, c := range map[string][2]content.JSON{
		"many alternatives": {wide(), longList()},
		"an expression":     {`{"properties":{"a":{"pattern":"(a|b|c)*d"}}}`, content.JSON(`{"a":"` + strings.Repeat("abc", 100_000) + `"}`)},
		"equal items":       {`{"properties":{"a":{"uniqueItems":true}}}`, longList()},
		"a long list":       {`{"properties":{"a":{"items":{"type":"integer"}}}}`, longList()},
	} {
		s, ctx := parse(t, c[0]), &ending{t.Context(), 2}
		found, err := s.Problems(ctx, c[1], schema.Check{})
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
		require.NotContains(t, strings.Join(found, ""), "steps", name)
		require.Equal(t, 0, ctx.n, "%s: the check goes on after the context has ended", name)
	}

	// A short check is over before anybody could end it.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	found, err := parse(t, `{"type":"object"}`).Problems(ctx, "{}", schema.Check{})
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestSchemaBeyondALimitIsRefused(t *testing.T) {
	long := strings.Repeat("x", 500_000)
	for name, c := range map[string][2]string{
		"long":                  {`{"title":"` + strings.Repeat("x", 1<<20) + `"}`, "more than 1048576 bytes"},
		"deep":                  {strings.Repeat(`{"not":`, 300) + "{}" + strings.Repeat("}", 300), "nests deeper than 200"},
		"long names around":     {`{"properties":{"` + long + `":{"anyOf":[` + strings.Repeat("{},", 1000) + `{}]}}}`, "names around its subschemas are too long"},
		"large expressions":     {`{"anyOf":[` + strings.Repeat(`{"pattern":"(x{0,900}){1}"},`, 2000) + `{}]}`, "regular expressions are too large"},
		"an expression":         {`{"patternProperties":{"(":{}}}`, "missing closing"},
		"two of one anchor":     {`{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}`, `the anchor "x"`},
		"a reference to no end": {`{"$ref":"#/not"}`, `no schema for the reference "#/not"`},
		"another document":      {`{"$ref":"https://a.example/x"}`, "https://a.example/x"},
		"a document inside":     {`{"$ref":"#/properties/a","properties":{"a":{"$id":"https://a.example/"}}}`, "without an $id inside"},
		"a cycle in draft 7": {
			`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#a","definitions":{"a":{"$id":"#a","allOf":[{"$ref":"#a"}]}}}`, "refers to itself"},
	} {
		_, err := schema.Parse(content.JSON(c[0]))
		require.ErrorContains(t, err, c[1], name)
	}

	s := parse(t, `{"$schema":"https://json-schema.org/draft/2019-09/schema"}`)
	require.Equal(t, []string{`root: cannot be checked: the version "https://json-schema.org/draft/2019-09/schema" of its schema is unknown`},
		problems(t, s, "{}", schema.Check{}))
}

func TestProblemsNameThePlaceAndTheRule(t *testing.T) {
	for _, c := range []struct {
		schema, value content.JSON
		want          []string
	}{
		{`{"properties":{"a":{"pattern":"^x"},"b":{"minLength":2}}}`, `{"a":"y","b":"é"}`,
			[]string{`a: must match the regular expression "^x"`, "b: must have at least 2 characters, has 1"}},
		{`{"items":{"type":["string","null"]}}`, `["a",1]`, []string{"[1]: must be string or null, is integer"}},
		{`{"properties":{"n":{"const":5},"m":{"multipleOf":5},"o":{"exclusiveMinimum":1}}}`, `{"n":1,"m":1,"o":1}`,
			[]string{"m: must be a multiple of 5", "n: must be 5", "o: must be greater than 1"}},
		{`{"anyOf":[{"type":"string"},{"required":["b"]},{"properties":{"a":{"oneOf":[{"type":"null"}]}}}]}`, `{"a":{}}`, []string{
			"root: fits none of 3 alternatives (root: must be string, is object | b: is required | a: fits none of 1 alternatives (root: must be null, is object))"}},
		{`{"oneOf":[{"type":"object"},{},{"type":"null"}]}`, `{}`, []string{"root: must fit one alternative, fits the alternatives 1 and 2"}},
		{`{"not":{"type":"object"}}`, `{}`, []string{`root: must not fit the schema of its "not"`}},
		{`{"properties":{"a":false},"dependentRequired":{"a":["b"]},"propertyNames":{"maxLength":1}}`, `{"a":1,"cc":2}`, []string{
			"b: is required beside a", "a: is not allowed", "cc: its name is not allowed: root: must have at most 1 characters, has 2"}},
		{`{"uniqueItems":true}`, `[1,2,1.0]`, []string{"root: must not have equal items"}},
		{`{"contains":{"type":"null"}}`, `[1]`, []string{`root: must have at least 1 items that fit its "contains", has 0`}},
		{`{"properties":{"a":true},"additionalProperties":false}`, `{"a":1,"b":2}`, []string{"b: is new"}},
		{`{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"minProperties":1}}`, `{"a":1}`, []string{"b: is required"}},
		{`{"prefixItems":[{"type":"null"}],"items":false}`, `[1,2]`, []string{"[0]: must be null, is integer", "[1]: is not allowed"}},
	} {
		require.Equal(t, c.want, problems(t, parse(t, c.schema), c.value, schema.Check{Unknown: "is new"}), string(c.schema))
	}

	require.Len(t, problems(t, parse(t, `{"items":false}`), longList()[5:len(longList())-1], schema.Check{}), 100)
}
