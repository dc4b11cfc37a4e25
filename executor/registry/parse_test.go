package registry_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/registry"
)

// goodCalls are calls in every shape, and what they say.
var goodCalls = []struct {
	name, call string
	want       executor.Call
}{
	{"Chat Completions", `{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\": 1.0}"}}`,
		executor.Call{Name: "f", ID: "c", Input: `{"a": 1.0}`}},
	{"Chat Completions, with an object", `{"function":{"name":"f","arguments":{"a" : 1.0}}}`,
		executor.Call{Name: "f", Input: `{"a" : 1.0}`}},
	{"a piece of a stream", `{"index":3,"id":"c","type":"function","function":{"name":"f","arguments":""}}`,
		executor.Call{Name: "f", ID: "c", Input: "{}"}},
	{"Responses", `{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{\"a\":1}","status":"completed"}`,
		executor.Call{Name: "f", ID: "c", Input: `{"a":1}`}},
	{"Anthropic", `{"type":"tool_use","id":"c","name":"f","input":{"a":1},"caller":{"type":"direct"}}`,
		executor.Call{Name: "f", ID: "c", Input: `{"a":1}`}},
	{"Gemini", `{"functionCall":{"name":"f","args":{"a":1},"id":"c"},"thoughtSignature":"xx"}`,
		executor.Call{Name: "f", ID: "c", Input: `{"a":1}`}},
	{"Gemini, without arguments", `{"functionCall":{"name":"f"},"thoughtSignature":"xx"}`, executor.Call{Name: "f", Input: "{}"}},
	{"Gemini, with nulls", `{"text":null,"functionCall":{"id":null,"name":"f","args":{}},"function":null,"type":null}`,
		executor.Call{Name: "f", Input: "{}"}},
	{"MCP", `{"name":"f","arguments":{"a":1},"_meta":{}}`, executor.Call{Name: "f", Input: `{"a":1}`}},
	{"a flat function", `{"type":"function","name":"f","arguments":"{}"}`, executor.Call{Name: "f", Input: "{}"}},
	{"LangChain", `{"name":"f","args":{"a":1},"id":"c","type":"tool_call"}`, executor.Call{Name: "f", ID: "c", Input: `{"a":1}`}},
	{"a name and arguments", `{"name":"f","args":{"a":1}}`, executor.Call{Name: "f", Input: `{"a":1}`}},
	{"a name and an input", `{"name":"f","input":{"a":1}}`, executor.Call{Name: "f", Input: `{"a":1}`}},
	{"a name", ` {"name" : "f"} `, executor.Call{Name: "f", Input: "{}"}},
	{"a name and an id", `{"call_id":"c","name":"f"}`, executor.Call{Name: "f", ID: "c", Input: "{}"}},
	{"null for arguments", `{"function":{"name":"f","arguments":null}}`, executor.Call{Name: "f", Input: "{}"}},
	{"null in a string", `{"function":{"name":"f","arguments":" null "}}`, executor.Call{Name: "f", Input: "{}"}},
	{"space for arguments", `{"function":{"name":"f","arguments":" \n"}}`, executor.Call{Name: "f", Input: "{}"}},
	{"escapes everywhere", `{"\u0066unction":{"n\u0061me":"\u0066\n","arguments":"\u007b\u007d"}}`,
		executor.Call{Name: "f\n", Input: "{}"}},
	{"two shapes that agree",
		`{"id":"c","name":"f","args":{"a":1,"b":[]},"function":{"name":"f","arguments":"{ \"b\":[], \"a\":1 }"}}`,
		executor.Call{Name: "f", ID: "c", Input: `{ "b":[], "a":1 }`}},
	{"three members that agree", `{"name":"f","args":{},"input":{},"arguments":"{}"}`, executor.Call{Name: "f", Input: "{}"}},
	{"JSON in arguments", `{"name":"f","arguments":"{\"name\":\"g\",\"function\":{\"name\":\"h\"}}"}`,
		executor.Call{Name: "f", Input: `{"name":"g","function":{"name":"h"}}`}},
}

func TestParseCallReadsEveryShape(t *testing.T) {
	for _, c := range goodCalls {
		t.Run(c.name, func(t *testing.T) {
			data := []byte(c.call)
			call, err := registry.ParseCall(data)
			clear(data)
			require.NoError(t, err)
			require.Equal(t, c.want, call)
		})
	}
}

// badCalls are what is refused, and what is said of it.
var badCalls = []struct{ name, call, tool, path, reason string }{
	{"nothing", "", "", "root", "it is not valid JSON: it is empty"},
	{"space", " \n", "", "root", "it is not valid JSON: it is empty"},
	{"no JSON", "f(1)", "", "root", "it is not valid JSON: invalid character '('"},
	{"cut off", `{"name":"f"`, "", "root", "it is not valid JSON: unexpected EOF"},
	{"two values", `{"name":"f"}{"name":"g"}`, "", "root", "it is not valid JSON: more data after the value"},
	{"no UTF-8", "{\"name\":\"\xff\"}", "", "root", "it is not valid JSON: invalid UTF-8"},
	{"a lone surrogate", `{"name":"\ud800"}`, "", "root", "it is not valid JSON: invalid surrogate pair"},
	{"a list", `[{"name":"f"}]`, "", "root", "it must be an object, is an array"},
	{"null", `null`, "", "root", "it must be an object, is null"},
	{"a number", `-1`, "", "root", "it must be an object, is a number"},
	{"a call in a string", `"{\"name\":\"f\"}"`, "", "root", "it must be an object, is a string"},
	{"false", "false", "", "root", "it must be an object, is a boolean"},
	{"an empty object", `{}`, "", "root", "it has none of the members function, functionCall and name"},
	{"another object", `{"role":"user","content":"hi"}`, "", "root", "it has none of the members function, functionCall and name"},
	{"names in another case", `{"Name":"f","Function":{}}`, "", "root", "it has none of the members"},
	{"a name twice", `{"name":"f","name":"f"}`, "", "root", `duplicate object member name "name"`},
	{"a name twice, escaped", `{"name":"f","n\u0061me":"g"}`, "", "root", "duplicate object member name"},
	{"a function twice", `{"function":{"name":"f"},"function":{"name":"g"}}`, "", "root", "duplicate object member name"},
	{"an argument twice", `{"name":"f","args":{"path":"a","path":"b"}}`, "", "root", "duplicate object member name"},
	{"an argument twice in a string", `{"name":"f","arguments":"{\"path\":1,\"path\":2}"}`,
		"f", "arguments", "duplicate object member name"},
	{"no name", `{"function":{"arguments":"{}"}}`, "", "function.name", "it is missing or empty"},
	{"no name, but arguments", `{"args":{}}`, "", "name", "it is missing or empty"},
	{"an empty name", `{"name":""}`, "", "name", "it is missing or empty"},
	{"a name that is null", `{"function":{"name":null}}`, "", "function.name", "it is missing or empty"},
	{"a name that is a number", `{"name":5}`, "", "name", "it must be a string, is a number"},
	{"a name that is an object", `{"functionCall":{"name":{}}}`, "", "functionCall.name", "it must be a string, is an object"},
	{"an id that is a number", `{"id":1,"name":"f"}`, "f", "id", "it must be a string, is a number"},
	{"a call_id that is a list", `{"call_id":[],"name":"f"}`, "f", "call_id", "it must be a string, is an array"},
	{"a type that is a number", `{"type":1,"name":"f"}`, "", "type", "it must be a string, is a number"},
	{"a provider's own call", `{"type":"server_tool_use","id":"c","name":"f","input":{}}`,
		"", "type", `"server_tool_use" is none of`},
	{"a hostile type", `{"type":"\u001b[2J\n","name":"f"}`, "", "type", `"\x1b[2J\n" is none of`},
	{"a function that is a string", `{"function":"f"}`, "", "function", "it must be an object, is a string"},
	{"a functionCall that is a list", `{"functionCall":[]}`, "", "functionCall", "it must be an object, is an array"},
	{"arguments that are a list", `{"function":{"name":"f","arguments":[]}}`,
		"f", "function.arguments", "it must be an object, is an array"},
	{"arguments that are a number", `{"name":"f","arguments":0}`, "f", "arguments", "it must be an object, is a number"},
	{"arguments that are false", `{"name":"f","arguments":false}`, "f", "arguments", "it must be an object, is a boolean"},
	{"arguments that are cut off", `{"function":{"name":"f","arguments":"{\"a\":"}}`,
		"f", "function.arguments", "it is not valid JSON"},
	{"arguments quoted twice", `{"name":"f","arguments":"\"{}\""}`, "f", "arguments", "it must be an object, is a string"},
	{"arguments and more", `{"name":"f","arguments":"{} {}"}`, "f", "arguments", "more data after the value"},
	{"an input in a string", `{"type":"tool_use","name":"f","input":"{}"}`, "f", "input", "it must be an object, is a string"},
	{"args in a string", `{"functionCall":{"name":"f","args":"{}"}}`, "f", "functionCall.args", "it must be an object, is a string"},
	{"another shape's arguments", `{"type":"tool_use","name":"f","arguments":"{}"}`,
		"", "arguments", "a tool_use has no such member"},
	{"another shape's function", `{"type":"tool_use","function":{"name":"f"}}`, "", "function", "a tool_use has no such member"},
	{"another shape's functionCall", `{"type":"function","functionCall":{"name":"f"}}`,
		"", "functionCall", "a function has no such member"},
	{"arguments of a name nobody knows", `{"name":"f","parameters":{"a":1}}`,
		"f", "parameters", "a call without arguments cannot have this member"},
	{"a definition", `{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}`,
		"f", "function.parameters", "a call without arguments"},
	{"arguments still to come", `{"functionCall":{"name":"f","willContinue":true}}`,
		"f", "functionCall.willContinue", "a call without arguments"},
	{"a hostile member", `{"name":"f","\u001b\n\u202e":1}`, "f", `\x1b\n\u202e`, "a call without arguments"},
	{"a member without a name", `{"name":"f","":1}`, "f", `""`, "a call without arguments"},
	{"two names", `{"name":"f","args":{},"function":{"name":"g","arguments":"{}"}}`,
		"", "root", "it can be read as two different calls"},
	{"two arguments", `{"name":"f","args":{"a":1},"arguments":{"a":2}}`, "", "root", "it can be read as two different calls"},
	{"two ids", `{"id":"x","function":{"name":"f"},"functionCall":{"name":"f","id":"y"}}`, "", "root", "two different calls"},
	{"one call with arguments, one without", `{"name":"f","function":{"name":"f","arguments":"{\"a\":1}"}}`,
		"", "root", "two different calls"},
	{"arguments beside a function", `{"function":{"name":"f","arguments":"{}"},"arguments":"{}"}`,
		"", "name", "it is missing or empty"},
	{"a number with another text", `{"name":"f","args":{"a":1},"input":{"a":1.0}}`, "", "root", "two different calls"},
}

func TestParseCallRefusesWhatIsNoCallOrTwo(t *testing.T) {
	for _, c := range badCalls {
		t.Run(c.name, func(t *testing.T) {
			call, err := registry.ParseCall([]byte(c.call))
			require.Equal(t, executor.Call{}, call)
			require.ErrorIs(t, err, registry.ErrCall)
			var refused *registry.CallError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, c.tool, refused.Tool)
			require.Equal(t, c.path, refused.Path)
			require.Contains(t, refused.Reason, c.reason)
			require.Equal(t, "not a tool call that can be executed: "+refused.Path+": "+refused.Reason, err.Error())
		})
	}
}

func TestParseCallBearsInputsOfAnySize(t *testing.T) {
	const much = 4 << 20
	long := strings.Repeat("x", much)
	deep := strings.Repeat(`{"a":`, much/5)
	for name, call := range map[string]string{
		"brackets":                     strings.Repeat("[", much),
		"objects":                      deep,
		"arguments":                    `{"name":"f","args":` + deep,
		"closed":                       `{"name":"f","args":` + nestedObjects(20_000) + "}",
		"in a string":                  `{"name":"f","arguments":"` + strings.Repeat("[", much) + `"}`,
		"a string without an end":      `{"name":"` + strings.Repeat("x", much),
		"a long type":                  `{"name":"f","type":"` + strings.Repeat("x", much) + `"}`,
		"a long member":                `{"name":"f","` + strings.Repeat("\\n", much) + `":1}`,
		"a long name twice":            `{"` + long + `":1,"` + long + `":1}`,
		"a long name twice, arguments": `{"name":"f","args":{"` + long + `":1,"` + long + `":1}}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := registry.ParseCall([]byte(call))
			require.ErrorIs(t, err, registry.ErrCall)
			require.Less(t, len(err.Error()), 1000)
		})
	}
	input := `{"text":"` + long + `"}`
	call, err := registry.ParseCall([]byte(`{"name":"` + strings.Repeat("n", much) + `","arguments":` + input + `}`))
	require.NoError(t, err)
	require.Equal(t, content.JSON(input), call.Input)
	nested := nestedObjects(5000)
	call, err = registry.ParseCall([]byte(`{"name":"f","args":` + nested + `,"input":` + nested + `}`))
	require.NoError(t, err)
	require.Equal(t, content.JSON(nested), call.Input)
}

func nestedObjects(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }

func FuzzParseCall(f *testing.F) {
	for _, c := range goodCalls {
		f.Add([]byte(c.call))
	}
	for _, c := range badCalls {
		f.Add([]byte(c.call))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := string(data)
		call, err := registry.ParseCall(data)
		require.Equal(t, before, string(data))
		if err != nil {
			requireRefused(t, err)
			return
		}
		require.NotEmpty(t, call.Name)
		require.True(t, call.Input.IsObject())
		require.Zero(t, call.Index)
		call.Input = content.JSON(strings.TrimSpace(string(call.Input))) // space around a value is no part of it
		for _, again := range written(t, call) {
			read, err := registry.ParseCall([]byte(again))
			require.NoError(t, err, "%s", again)
			require.Equal(t, call, read, "%s", again)
		}
	})
}

// requireRefused fails unless err says what is wrong, in few and printable words.
func requireRefused(t *testing.T, err error) {
	t.Helper()
	var refused *registry.CallError
	require.ErrorAs(t, err, &refused)
	require.True(t, errors.Is(err, registry.ErrCall))
	require.NotEmpty(t, refused.Path)
	require.NotEmpty(t, refused.Reason)
	require.Less(t, len(err.Error()), 1200)
	for _, c := range err.Error() {
		require.True(t, unicode.IsPrint(c), "%q", err.Error())
	}
}

// written is the call in every shape.
func written(t *testing.T, call executor.Call) []string {
	t.Helper()
	quote := func(s string) string {
		b, err := json.Marshal(s)
		require.NoError(t, err)
		return string(b)
	}
	id, name, input, text := quote(call.ID), quote(call.Name), string(call.Input), quote(string(call.Input))
	return []string{
		fmt.Sprintf(`{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}`, id, name, text),
		fmt.Sprintf(`{"id":%s,"function":{"name":%s,"arguments":%s}}`, id, name, input),
		fmt.Sprintf(`{"type":"function_call","call_id":%s,"name":%s,"arguments":%s}`, id, name, text),
		fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":%s}`, id, name, input),
		fmt.Sprintf(`{"functionCall":{"id":%s,"name":%s,"args":%s}}`, id, name, input),
		fmt.Sprintf(`{"id":%s,"name":%s,"args":%s}`, id, name, input),
		fmt.Sprintf(`{"id":%s,"name":%s,"arguments":%s,"function":{"name":%s,"arguments":%s}}`, id, name, text, name, text),
	}
}
