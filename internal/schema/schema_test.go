package schema_test

import (
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/schema"
)

// problems returns the problems of j.
func problems(t *testing.T, s *schema.Schema, j content.JSON, c schema.Check) []string {
	found, err := s.Problems(t.Context(), j, c)
	require.NoError(t, err)
	return found
}

func TestSchemaThatNeverEndsIsRefused(t *testing.T) {
	double := ""
	for i := range 22 {
		double += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	for text, says := range map[string]string{
		`{"type":"object","allOf":[{"$ref":"#"}]}`: "refers to itself",
		`{"type":"object","$ref":"#"}`:             "refers to itself",
		`{"$ref":"#/$defs/a%20b","$defs":{"a b":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a%20b"}}}}`:           "refers to itself",
		`{"$ref":"#x","$defs":{"a":{"$anchor":"x","if":{"$ref":"#x"}}}}`:                                                           "refers to itself",
		`{"$dynamicAnchor":"x","oneOf":[{"$ref":"#x"}]}`:                                                                           "refers to itself",
		`{"$id":"https://a.example/r","properties":{"p":{"dependentSchemas":{"k":{"$ref":"https://a.example/r#/properties/p"}}}}}`: "refers to itself",
		`{"$ref":"#/$defs/d0","$defs":{` + double + `"d22":{}}}`:                                                                   "more than 10000",
		`[]`:         "not a JSON object",
		`{"type":7}`: "its schema",
	} {
		_, err := schema.Parse(content.JSON(text))
		require.ErrorContains(t, err, says, text)
	}
	for _, text := range []content.JSON{
		`{"type":"object","properties":{"next":{"$ref":"#"}}}`,
		`{"type":"object","properties":{"all":{"type":"array","items":{"anyOf":[{"$ref":"#"},{"type":"string"}]}}}}`,
		`{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"type":"object"}}}`,
		`{"$id":"https://a.example/r","allOf":[{"$ref":"#b"}],"$defs":{"b":{"$anchor":"b","properties":{"x":{"$ref":"https://a.example/r"}}}}}`,
		`{"allOf":[{"$id":"https://a.example/b"}],"unevaluatedProperties":false,"$dynamicRef":"#x","$dynamicAnchor":"x"}`, // not checked
	} {
		s, err := schema.Parse(text)
		require.NoError(t, err, text)
		require.Empty(t, problems(t, s, "{}", schema.Check{}), text)
	}
}

type (
	recursive struct {
		Next *recursive `json:"next"`
	}
	unlisted string
	stamped  struct {
		time.Time
		X int
	}
)

func (unlisted) Enum() []any { panic("no values") }

func TestInferRefusesWhatCannotBeDecoded(t *testing.T) {
	for says, of := range map[string]reflect.Type{
		"cycle":      reflect.TypeFor[recursive](),
		"chan int":   reflect.TypeFor[chan int](),
		"field E of": reflect.TypeFor[struct{ E error }](),
		"no values":  reflect.TypeFor[unlisted](),
		"option string": reflect.TypeFor[struct {
			N int `json:"n,string"`
		}](),
	} {
		_, err := schema.Infer(of)
		require.ErrorContains(t, err, says, "%s", of)
	}
	require.True(t, schema.OwnForm(reflect.TypeFor[stamped]()))
	require.False(t, schema.OwnForm(reflect.TypeFor[struct{ X int }]()))
}

func TestTypeIsThatOfEveryValue(t *testing.T) {
	for want, of := range map[string][]reflect.Type{
		"object":  {reflect.TypeFor[struct{}](), reflect.TypeFor[*struct{ A int }](), reflect.TypeFor[map[string]any]()},
		"array":   {reflect.TypeFor[[]int](), reflect.TypeFor[[2]string]()},
		"string":  {reflect.TypeFor[string](), reflect.TypeFor[time.Time](), reflect.TypeFor[[]byte](), reflect.TypeFor[time.Duration]()},
		"integer": {reflect.TypeFor[int8]()},
		"":        {reflect.TypeFor[any](), reflect.TypeFor[stamped]()},
	} {
		for _, of := range of {
			s, err := schema.Infer(of)
			require.NoError(t, err)
			require.Equal(t, want, s.Type(), "%s", of)
		}
	}
}

func TestMemberPutsASchemaIntoAnObject(t *testing.T) {
	inner, err := schema.Infer(reflect.TypeFor[[]int]())
	require.NoError(t, err)
	s, err := inner.Member("answer")
	require.NoError(t, err)
	require.Empty(t, problems(t, s, `{"answer":[1]}`, schema.Check{}))
	require.Equal(t, []string{"answer[1]: must be integer, is string"}, problems(t, s, `{"answer":[1,"x"]}`, schema.Check{}))
	require.Equal(t, []string{"answer: is required", "other: is new"}, problems(t, s, `{"other":1}`, schema.Check{Unknown: "is new"}))
	require.Empty(t, problems(t, inner, `[1]`, schema.Check{}), "the schema inside goes on to work alone")
}

func TestProblemsOfValuesThatAreHardToRead(t *testing.T) {
	s, err := schema.Parse(`{"type":"object","properties":{"s":{"type":"string"}}}`)
	require.NoError(t, err)
	for j, says := range map[content.JSON]string{
		`{"s":18446744073709551615}`: "s: must be string, is integer",
		`{"s":1e400}`:                "root: ",
		`{"s":`:                      "root: ",
		"":                           "root: ",
		`{"s":"a","s":"b"}`:          "root: ",
		"\"\xff\"":                   "root: ",
		content.JSON(strings.Repeat(`{"x":`, 20_000)):                                         "root: ",
		content.JSON(`{"s":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + `}`): "s: must be string, is array",
	} {
		problems := problems(t, s, j, schema.Check{})
		require.Len(t, problems, 1, "%.40s", j)
		require.Contains(t, problems[0], says, "%.40s", j)
	}
}

func TestNullStandsForWhatIsNotRequired(t *testing.T) {
	s, err := schema.Infer(reflect.TypeFor[struct {
		A int            `json:"a"`
		B *int           `json:"b"`
		C map[string]any `json:"c,omitempty"`
	}]())
	require.NoError(t, err)
	require.Empty(t, problems(t, s, `{"a":1,"b":null,"c":{"x":null}}`, schema.Check{Nulls: true}))
	require.NotEmpty(t, problems(t, s, `{"a":1,"b":null}`, schema.Check{}))
	require.NotEmpty(t, problems(t, s, `{"a":null}`, schema.Check{Nulls: true}))
}

func TestDecodeIsStrict(t *testing.T) {
	var v struct {
		A int           `json:"a"`
		D time.Duration `json:"d"`
	}
	require.NoError(t, schema.Decode(`{"a":1,"d":"90s"}`, &v))
	require.Equal(t, 90*time.Second, v.D)
	for _, j := range []content.JSON{`{"A":1}`, `{"a":1,"x":2}`, `{"a":1,"a":2}`, `{"d":90}`, `{"d":"soon"}`, `{"a":1.5}`, "{"} {
		require.Error(t, schema.Decode(j, &v), j)
	}
}

// FuzzProblems checks any value against any schema: it ends, without a panic.
func FuzzProblems(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"type":"integer","maximum":3}},"required":["a"]}`, `{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"not":{}}}}`,
		`{"items":{"enum":[1,"x"]},"minItems":2}`, `{"$dynamicRef":"#x","$dynamicAnchor":"x"}`, `{"patternProperties":{"^(a+)+$":{"minLength":1}}}`,
	} {
		f.Add(s, `{"a":4}`)
		f.Add(s, `[1,2,{"aaaaaaaaaaaaaaaaaaaaa":""}]`)
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		if s, err := schema.Parse(content.JSON(text)); err == nil {
			problems(t, s, content.JSON(value), schema.Check{Nulls: true})
			_, _ = s.JSON()
		}
	})
}

func TestSchemaThatAllowsAnythingIsAnObject(t *testing.T) {
	type args struct {
		A any                `json:"a"`
		B stdjson.RawMessage `json:"b"`
		C []any              `json:"c"`
		D map[string]any     `json:"d"`
		E []map[string]any   `json:"e"`
	}
	made, err := schema.Infer(reflect.TypeFor[args]())
	require.NoError(t, err)
	text, err := made.JSON()
	require.NoError(t, err)
	require.Equal(t, `{"type":"object","properties":{"a":{},"b":{},"c":{"type":"array","items":{}},"d":{"type":"object","additionalProperties":true},`+
		`"e":{"type":"array","items":{"type":"object","additionalProperties":true}}},"required":["a","b","c","d","e"],"additionalProperties":false}`, string(text))

	again, err := schema.Parse(text)
	require.NoError(t, err)
	require.Empty(t, problems(t, again, `{"a":1,"b":[],"c":[null],"d":{"x":{}},"e":[{}]}`, schema.Check{}))
}

func TestObjectsReplacesTrueWhereASchemaStands(t *testing.T) {
	for in, want := range map[content.JSON]content.JSON{
		`true`:  `true`,
		`false`: `false`,
		`{"type":"object","additionalProperties":true}`:                         `{"type":"object","additionalProperties":true}`,
		`{"properties":{"true":true,"x":false}}`:                                `{"properties":{"true":{},"x":false}}`,
		`{"items":true,"uniqueItems":true,"default":true}`:                      `{"items":{},"uniqueItems":true,"default":true}`,
		`{"anyOf":[true,{"not":true},{"enum":[true]}],"const":true}`:            `{"anyOf":[{},{"not":{}},{"enum":[true]}],"const":true}`,
		`{"$defs":{"a":{"items":[true,1]}},"additionalProperties":{"if":true}}`: `{"$defs":{"a":{"items":[{},1]}},"additionalProperties":{"if":{}}}`,
		`{"properties":true,"anyOf":7,"$defs":[true]}`:                          `{"properties":true,"anyOf":7,"$defs":[true]}`,
	} {
		require.Equal(t, want, schema.Objects(in))
		require.Equal(t, want, schema.Objects(want))
	}
}
