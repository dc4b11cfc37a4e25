package executor_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
)

type (
	Inner struct {
		Street string `json:"street" jsonschema:"with the number"`
		Zip    *int   `json:"zip"`
	}
	Base struct {
		Verbose bool `json:"verbose,omitempty"`
	}
	Level     int
	Recursive struct {
		Next *Recursive `json:"next,omitempty"`
	}
	Named struct {
		Base `json:"base"`
	}
	hidden struct {
		Depth int `json:"depth"`
	}
)

func (Level) Enum() []any { return []any{1, 2, 3} }

// definition returns what a tool that takes an In declares.
func definition[In any]() executor.Tool {
	return executor.Func("t", "", func(context.Context, In) (string, error) { return "", nil })
}

func TestSchemaIsInferredFromTheType(t *testing.T) {
	object := func(properties, required string) string {
		if required != "" {
			required = `,"required":[` + required + `]`
		}
		return `{"type":"object","properties":{` + properties + `}` + required + `,"additionalProperties":false}`
	}
	for name, test := range map[string]struct {
		tool executor.Tool
		want string
	}{
		"nothing":     {definition[struct{}](), object("", "")},
		"a pointer":   {definition[*Base](), object(`"verbose":{"type":"boolean"}`, "")},
		"description": {definition[Forecast](), object(`"city":{"type":"string","description":"the city's name"}`, `"city"`)},
		"optional": {definition[struct {
			A string  `json:"a,omitempty"`
			B int     `json:"b,omitzero"`
			C *string `json:"c"`
			D bool    `json:"d"`
			E string  `json:"-"`
			F string
			g string
		}](), object(`"a":{"type":"string"},"b":{"type":"integer"},"c":{"type":"string"},"d":{"type":"boolean"},"F":{"type":"string"}`, `"d","F"`)},
		"numbers": {definition[struct {
			A int8    `json:"a"`
			B uint    `json:"b"`
			C float64 `json:"c"`
		}](), object(`"a":{"type":"integer","minimum":-128,"maximum":127},"b":{"type":"integer","minimum":0},"c":{"type":"number"}`, `"a","b","c"`)},
		"nested": {definition[struct {
			Home Inner `json:"home"`
		}](), object(`"home":`+object(`"street":{"type":"string","description":"with the number"},"zip":{"type":"integer"}`, `"street"`), `"home"`)},
		"slices and arrays": {definition[struct {
			A []string    `json:"a"`
			B [2]float64  `json:"b"`
			C [][]Inner   `json:"c,omitempty"`
			D []*[]string `json:"d,omitempty"`
		}](), object(`"a":{"type":"array","items":{"type":"string"}},"b":{"type":"array","items":{"type":"number"},"minItems":2,"maxItems":2},`+
			`"c":{"type":"array","items":{"type":"array","items":`+object(`"street":{"type":"string","description":"with the number"},"zip":{"type":"integer"}`, `"street"`)+`}},`+
			`"d":{"type":"array","items":{"type":"array","items":{"type":"string"}}}`, `"a","b"`)},
		"maps": {definition[struct {
			A map[string]int      `json:"a"`
			B map[string][]string `json:"b"`
		}](), object(`"a":{"type":"object","additionalProperties":{"type":"integer"}},`+
			`"b":{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"}}}`, `"a","b"`)},
		"a map itself": {definition[map[string]bool](), `{"type":"object","additionalProperties":{"type":"boolean"}}`},
		"times": {definition[struct {
			A time.Time     `json:"a"`
			B *time.Time    `json:"b"`
			C time.Duration `json:"c"`
		}](), object(`"a":{"type":"string","format":"date-time"},"b":{"type":"string","format":"date-time"},`+
			`"c":{"type":"string","description":"a duration, such as \"90s\" or \"1h30m\""}`, `"a","c"`)},
		"embedded": {definition[struct {
			Base
			hidden
			*Inner
		}](), object(`"verbose":{"type":"boolean"},"depth":{"type":"integer"},"street":{"type":"string","description":"with the number"},"zip":{"type":"integer"}`, `"depth","street"`)},
		"enum by type": {definition[struct {
			A Unit    `json:"a"`
			B []Level `json:"b" jsonschema:"how deep"`
		}](), object(`"a":{"type":"string","enum":["celsius","fahrenheit"]},`+
			`"b":{"type":"array","description":"how deep","items":{"type":"integer","enum":[1,2,3]}}`, `"a","b"`)},
		"enum by tag": {definition[struct {
			A string            `json:"a" enum:"x,y"`
			B []int             `json:"b" enum:"1,2"`
			C map[string]string `json:"c" enum:"on,off"`
			D *string           `json:"d" enum:"only"`
		}](), object(`"a":{"type":"string","enum":["x","y"]},"b":{"type":"array","items":{"type":"integer","enum":[1,2]}},`+
			`"c":{"type":"object","additionalProperties":{"type":"string","enum":["on","off"]}},"d":{"type":"string","enum":["only"]}`, `"a","b","c"`)},
		"types with a text form of their own": {definition[struct {
			A uuid.UUID       `json:"a"`
			B netip.Addr      `json:"b"`
			C []byte          `json:"c"`
			D json.RawMessage `json:"d"`
			E any             `json:"e"`
		}](), object(`"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string","contentEncoding":"base64"},"d":{},"e":{}`, `"a","b","c","d","e"`)},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, dag.New().Tools(test.tool).Err())
			require.JSONEq(t, test.want, string(test.tool.Definition().Schema))
			require.Equal(t, test.tool.Definition(), test.tool.Definition())
		})
	}
}

func TestSchemaKeepsTheOrderOfFields(t *testing.T) {
	schema := string(definition[struct {
		Zebra, Apple, Mango string
	}]().Definition().Schema)
	require.Less(t, strings.Index(schema, "Zebra"), strings.Index(schema, "Apple"))
	require.Less(t, strings.Index(schema, "Apple"), strings.Index(schema, "Mango"))
}

func TestTypeWithoutASchemaIsTheToolsErr(t *testing.T) {
	for name, tool := range map[string]executor.Tool{
		"recursive":        definition[Recursive](),
		"a channel":        definition[struct{ C chan int }](),
		"a function":       definition[struct{ F func() }](),
		"no object":        definition[string](),
		"anything":         definition[any](),
		"a list":           definition[[]string](),
		"an embedded name": definition[Named](),
		"an enum of other type": definition[struct {
			N int `enum:"one,two"`
		}](),
		"a tag that is reserved": definition[struct {
			N int `jsonschema:"required=true"`
		}](),
		"no function":             executor.Func[struct{}, string]("t", "", nil),
		"bytes as result":         executor.Func("t", "", func(context.Context, struct{}) ([]byte, error) { return nil, nil }),
		"a channel as result":     executor.Func("t", "", func(context.Context, struct{}) (chan int, error) { return nil, nil }),
		"a name no API takes":     executor.Func("two words", "", func(context.Context, struct{}) (string, error) { return "", nil }),
		"wrapped":                 executor.WithTimeout(definition[Recursive](), time.Second),
		"bound to no schema":      executor.NewTool(content.Tool{Name: "t"}, func(context.Context, executor.Call) (executor.Result, error) { return executor.Result{}, nil }),
		"bound to a wrong schema": executor.NewTool(content.Tool{Name: "t", Schema: `{"type":7}`}, func(context.Context, executor.Call) (executor.Result, error) { return executor.Result{}, nil }),
		"bound to nothing":        executor.NewTool(content.Tool{Name: "t", Schema: `{"type":"object"}`}, nil),
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, dag.New().Tools(tool).Err(), content.ErrTool)
			if name == "recursive" || name == "wrapped" {
				require.ErrorContains(t, dag.New().Tools(tool).Err(), "cycle")
			}
			if name != "a name no API takes" {
				_, err := tool.Call(t.Context(), executor.Call{})
				require.ErrorIs(t, err, content.ErrTool)
			}
		})
	}
}

type order struct {
	Item   string             `json:"item"`
	Count  int8               `json:"count"`
	Unit   Unit               `json:"unit,omitempty"`
	Tags   []string           `json:"tags,omitempty"`
	To     *Inner             `json:"to"`
	Within time.Duration      `json:"within,omitzero"`
	At     time.Time          `json:"at,omitzero"`
	Each   [2]int             `json:"each,omitzero"`
	Note   map[string]float64 `json:"note,omitempty"`
}

func TestArgumentsAreCheckedBeforeTheCall(t *testing.T) {
	ran := false
	tool := executor.Func("order", "", func(_ context.Context, in order) (order, error) { ran = true; return in, nil })
	for name, test := range map[string]struct {
		input    content.JSON
		problems []string // none: it is called
	}{
		"right":             {`{"item":"a","count":2,"unit":"celsius","tags":["x"],"to":{"street":"b","zip":1},"within":"90s","at":"2026-01-02T03:04:05Z","each":[1,2],"note":{"a":1.5}}`, nil},
		"null for optional": {`{"item":"a","count":2,"unit":null,"tags":null,"to":null,"within":null,"at":null,"each":null,"note":null}`, nil},
		"null deeper":       {`{"item":"a","count":2,"to":{"street":"b","zip":null}}`, nil},
		"space around":      {" \n{\"item\":\"a\",\"count\":2} ", nil},
		"empty":             {"", []string{"item: is required", "count: is required"}},
		"null for required": {`{"item":null,"count":2}`, []string{"item: must be string, is null"}},
		"several at once": {`{"count":"two","unit":"kelvin","colour":"red","to":{"zip":"x"},"tags":["a",1,null]}`, []string{
			"item: is required", "colour: is not an argument of this tool", "count: must be integer, is string",
			"tags[1]: must be string, is integer", "tags[2]: must be string, is null",
			"to.street: is required", "to.zip: must be integer, is string", `unit: must be one of "celsius", "fahrenheit"`,
		}},
		"out of range":   {`{"item":"a","count":300}`, []string{"count: must be at most 127"}},
		"below range":    {`{"item":"a","count":-300}`, []string{"count: must be at least -128"}},
		"a fraction":     {`{"item":"a","count":1.5}`, []string{"count: must be integer, is number"}},
		"too many":       {`{"item":"a","count":1,"each":[1,2,3]}`, []string{"each: must have at most 2 items"}},
		"too few":        {`{"item":"a","count":1,"each":[1]}`, []string{"each: must have at least 2 items"}},
		"in a map":       {`{"item":"a","count":1,"note":{"x":"y"}}`, []string{"note.x: must be number, is string"}},
		"no object":      {`["item"]`, []string{"root: must be object, is array"}},
		"null":           {` null `, []string{"item: is required", "count: is required"}},
		"another case":   {`{"Item":"a","count":1}`, []string{"item: is required", "Item: is not an argument of this tool"}},
		"not a time":     {`{"item":"a","count":1,"at":"yesterday"}`, []string{"root: "}},
		"not a duration": {`{"item":"a","count":1,"within":"long"}`, []string{"root: "}},
		"cut off":        {`{"item":"a","cou`, []string{"root: not valid JSON"}},
		"a name twice":   {`{"item":"a","item":"b","count":1}`, []string{"root: not valid JSON"}},
	} {
		t.Run(name, func(t *testing.T) {
			ran = false
			_, err := tool.Call(t.Context(), executor.Call{Name: "order", Input: test.input})
			require.Equal(t, test.problems == nil, ran)
			if test.problems == nil {
				require.NoError(t, err)
				return
			}
			head, received, _ := strings.Cut(err.Error(), "\n\nReceived arguments:\n")
			lines := strings.Split(head, "\n")
			require.Equal(t, `Validation failed for tool "order":`, lines[0])
			require.Len(t, lines[1:], len(test.problems), err.Error())
			for i, want := range test.problems {
				require.True(t, strings.HasPrefix(lines[i+1], "  - "+want), "%q is not %q", lines[i+1], want)
			}
			if strings.TrimSpace(string(test.input)) != "" && !strings.Contains(string(test.input), " null ") {
				require.Equal(t, string(test.input), received)
			}

			d, err := executor.ExecuteTools(t.Context(), ask(tool).Assistant("", apitest.Use("order", test.input)))
			require.NoError(t, err)
			require.Contains(t, outcomes(t, d)[0], "error: Validation failed for tool \"order\":\n  - ", "the phase says the same")
			require.False(t, ran)
		})
	}
}

func TestArgumentsArriveAsTheyWereWritten(t *testing.T) {
	var got order
	tool := executor.Func("order", "", func(_ context.Context, in order) (string, error) { got = in; return "", nil })
	_, err := tool.Call(t.Context(), executor.Call{Input: `{"item":"ä \u00e4","count":-3,"to":{"street":"s","zip":7},"within":"1h30m","at":"2026-01-02T03:04:05+01:00","each":[1,2]}`})
	require.NoError(t, err)
	seven := 7
	require.Equal(t, "ä ä", got.Item)
	require.Equal(t, &Inner{Street: "s", Zip: &seven}, got.To)
	require.Equal(t, 90*time.Minute, got.Within)
	require.True(t, time.Date(2026, 1, 2, 2, 4, 5, 0, time.UTC).Equal(got.At))
	require.Equal(t, [2]int{1, 2}, got.Each)
}

func TestBoundToolChecksItsSchema(t *testing.T) {
	var got executor.Call
	tool := executor.NewTool(
		content.Tool{Name: "pick", Schema: `{"type":"object","properties":{"n":{"type":"integer","multipleOf":5}},"required":["n"]}`},
		func(_ context.Context, c executor.Call) (executor.Result, error) {
			got = c
			return executor.ResultOf(c.ID)
		},
	)
	d, err := executor.ExecuteTools(t.Context(), ask(tool).Assistant("",
		content.ToolUse{ID: "a", Name: "pick", Input: `{"n": 10, "more": true}`},
		content.ToolUse{ID: "b", Name: "pick", Input: `{"n": 7}`},
		content.ToolUse{ID: "c", Name: "pick", Input: ``},
	))
	require.NoError(t, err)
	said := outcomes(t, d)
	require.Equal(t, "a", said[0])
	require.Equal(t, "a", got.ID)
	require.Equal(t, executor.Call{Name: "pick", Input: `{"n": 10, "more": true}`, Message: got.Message, ID: "a"}, got)
	require.Contains(t, said[1], "  - n: must be a multiple of 5")
	require.Contains(t, said[2], "  - n: is required")
}

func TestWrapperOfAProgramsOwnIsNotBypassed(t *testing.T) {
	logged := &logging{Tool: executor.WithTimeout(fast, time.Second)}
	d, err := executor.ExecuteTools(t.Context(), ask(logged).Assistant("", call("fast")))
	require.NoError(t, err)
	require.Equal(t, []string{"logged fast"}, outcomes(t, d))
}

// logging wraps a tool.
type logging struct{ executor.Tool }

func (l *logging) Unwrap() executor.Tool { return l.Tool }

func (l *logging) Call(ctx context.Context, c executor.Call) (executor.Result, error) {
	r, err := l.Tool.Call(ctx, c)
	r.Content = content.Words("logged " + r.Content.Text())
	return r, err
}

// errOf is what a tool says against being declared.
func errOf(t executor.Tool) error { return t.(interface{ Err() error }).Err() }

func bind(schema string) executor.Tool {
	return executor.NewTool(content.Tool{Name: "t", Schema: content.JSON(schema)},
		func(context.Context, executor.Call) (executor.Result, error) { return executor.Result{}, nil })
}

func TestSchemaThatNeverEndsIsAnErrorOfTheTool(t *testing.T) {
	require.ErrorContains(t, errOf(bind(`{"type":"object","allOf":[{"$ref":"#"}]}`)), "refers to itself")
	tool := bind(`{"type":"object","properties":{"next":{"$ref":"#"}}}`)
	require.NoError(t, errOf(tool))
	_, err := tool.Call(t.Context(), executor.Call{Name: "t", Input: "{}"})
	require.NoError(t, err)
}

func TestNullMeansNoArguments(t *testing.T) {
	require.Equal(t, content.JSON("{}"), apitest.Use("t", nil).Input)
	tool := executor.Func("t", "", func(context.Context, struct{}) (string, error) { return "done", nil })
	r, err := tool.Call(t.Context(), executor.Call{Name: "t", Input: " null "})
	require.NoError(t, err)
	require.Equal(t, content.Words("done"), r.Content)
	d, err := executor.ExecuteTools(t.Context(), dag.New().Tools(tool).User("Go.").Assistant("", content.ToolUse{ID: "1", Name: "t", Input: "null"}))
	require.NoError(t, err)
	require.False(t, results(t, d)[0].IsError)
}

func TestResultThatIsNotUTF8IsRepaired(t *testing.T) {
	r, err := executor.ResultOf(struct{ Name string }{"a\xffb"})
	require.NoError(t, err)
	require.Equal(t, content.Words("{\"Name\":\"a\uFFFDb\"}"), r.Content)
}

func TestFuncResultsOfOtherTypes(t *testing.T) {
	for _, v := range []any{&executor.Result{Content: content.Words("a")}, []content.Text{{Text: "a"}}} {
		r, err := executor.ResultOf(v)
		require.NoError(t, err)
		require.Equal(t, content.Words("a"), r.Content)
	}
	_, err := executor.ResultOf([]byte("a"))
	require.ErrorContains(t, err, "[]byte")
}

func TestTimeoutOfANilToolIsAnErrorOfTheTool(t *testing.T) {
	require.ErrorIs(t, dag.New().Tools(executor.WithTimeout(nil, 1)).Err(), content.ErrTool)
}

func TestArgumentTypeThatCannotBeDecodedIsAnErrorOfTheTool(t *testing.T) {
	for says, tool := range map[string]executor.Tool{
		"field E of": definition[struct{ E error }](),
		"field B of": definition[struct {
			A int
			B int `json:"A"`
		}](),
		"option string": definition[struct {
			N int `json:"n,string"`
		}](),
		`json:"-,"`: definition[struct {
			N int `json:"-,"` //lint:ignore SA5008 it is what is refused
		}](),
		"unexported struct": definition[struct{ *buried }](),
		"no values":         definition[struct{ B unlisted }](),
		"of its own": definition[struct {
			time.Time
			X int
		}](),
	} {
		require.ErrorContains(t, errOf(tool), says)
	}
	require.Contains(t, string(definition[struct{ S shade }]().Definition().Schema), `["dark","light"]`)
	require.Contains(t, string(definition[struct {
		S string `enum:"a, b"`
	}]().Definition().Schema), `["a","b"]`)
}

func TestLargeIntegerIsReportedAsInteger(t *testing.T) {
	_, err := bind(`{"type":"object","properties":{"s":{"type":"string"}}}`).Call(t.Context(), executor.Call{Input: `{"s":18446744073709551615}`})
	require.ErrorContains(t, err, "is integer")
}

type (
	shade    string
	unlisted string
	buried   struct{ X int }
)

func (*shade) Enum() []any { return []any{"dark", "light"} }

func (unlisted) Enum() []any { panic("no values") }
