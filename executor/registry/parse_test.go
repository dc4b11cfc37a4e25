package registry

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
)

// goodCalls are calls, and what they say.
var goodCalls = []struct {
	name, call string
	want       executor.Call
}{
	{"as the API sends it", `{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\": 1.0}"}}`,
		executor.Call{Name: "f", ID: "c", Input: `{"a": 1.0}`}},
	{"with an object", `{"function":{"name":"f","arguments":{"a" : 1.0}}}`, executor.Call{Name: "f", Input: `{"a" : 1.0}`}},
	{"a piece of a stream", `{"index":3,"id":"c","type":"function","function":{"name":"f","arguments":""}}`,
		executor.Call{Name: "f", ID: "c", Input: "{}"}},
	{"without arguments", ` {"function" : {"name" : "f"}} `, executor.Call{Name: "f", Input: "{}"}},
	{"null for arguments", `{"id":null,"function":{"name":"f","arguments":null}}`, executor.Call{Name: "f", Input: "{}"}},
	{"null in a string", `{"function":{"name":"f","arguments":" null "}}`, executor.Call{Name: "f", Input: "{}"}},
	{"space for arguments", `{"function":{"name":"f","arguments":" \n"}}`, executor.Call{Name: "f", Input: "{}"}},
	{"escapes everywhere", `{"\u0066unction":{"n\u0061me":"\u0066\n","arguments":"\u007b\u007d"}}`,
		executor.Call{Name: "f\n", Input: "{}"}},
	{"JSON in arguments", `{"function":{"name":"f","arguments":"{\"name\":\"g\",\"function\":{\"name\":\"h\"}}"}}`,
		executor.Call{Name: "f", Input: `{"name":"g","function":{"name":"h"}}`}},
}

func TestCallOfTheChatCompletionsAPIIsRead(t *testing.T) {
	for _, c := range goodCalls {
		t.Run(c.name, func(t *testing.T) {
			data := []byte(c.call)
			call, err := parseCall(data)
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
	{"cut off", `{"function":{"name":"f"}`, "", "root", "it is not valid JSON: unexpected EOF"},
	{"two values", `{"function":{"name":"f"}}{}`, "", "root", "it is not valid JSON: more data after the value"},
	{"no UTF-8", "{\"name\":\"\xff\"}", "", "root", "it is not valid JSON: invalid UTF-8"},
	{"a lone surrogate", `{"name":"\ud800"}`, "", "root", "it is not valid JSON: invalid surrogate pair"},
	{"a list", `[{"function":{"name":"f"}}]`, "", "root", "it must be an object, is an array"},
	{"null", `null`, "", "root", "it must be an object, is null"},
	{"a number", `-1`, "", "root", "it must be an object, is a number"},
	{"a call in a string", `"{\"name\":\"f\"}"`, "", "root", "it must be an object, is a string"},
	{"false", "false", "", "root", "it must be an object, is a boolean"},
	{"an empty object", `{}`, "", "root", `it has no member "function"`},
	{"another API's call", `{"type":"tool_use","id":"c","name":"f","input":{}}`, "", "root", `it has no member "function"`},
	{"names in another case", `{"Function":{}}`, "", "root", `it has no member "function"`},
	{"a function twice", `{"function":{"name":"f"},"function":{"name":"g"}}`, "", "root", "duplicate object member name"},
	{"a name twice, escaped", `{"function":{"name":"f","n\u0061me":"g"}}`, "", "root", "duplicate object member name"},
	{"an argument twice", `{"function":{"name":"f","arguments":{"path":"a","path":"b"}}}`, "", "root", "duplicate object member name"},
	{"an argument twice in a string", `{"function":{"name":"f","arguments":"{\"path\":1,\"path\":2}"}}`,
		"f", "function.arguments", "duplicate object member name"},
	{"no name", `{"function":{"arguments":"{}"}}`, "", "function.name", "it is missing or empty"},
	{"a name that is null", `{"function":{"name":null}}`, "", "function.name", "it is missing or empty"},
	{"a name that is a number", `{"function":{"name":5}}`, "", "function.name", "it must be a string, is a number"},
	{"an id that is a number", `{"id":1,"function":{"name":"f"}}`, "f", "id", "it must be a string, is a number"},
	{"a function that is a string", `{"function":"f"}`, "", "function", "it must be an object, is a string"},
	{"arguments that are a list", `{"function":{"name":"f","arguments":[]}}`,
		"f", "function.arguments", "it must be an object, is an array"},
	{"arguments that are a number", `{"function":{"name":"f","arguments":0}}`,
		"f", "function.arguments", "it must be an object, is a number"},
	{"arguments that are false", `{"function":{"name":"f","arguments":false}}`,
		"f", "function.arguments", "it must be an object, is a boolean"},
	{"arguments that are cut off", `{"function":{"name":"f","arguments":"{\"a\":"}}`,
		"f", "function.arguments", "it is not valid JSON"},
	{"arguments quoted twice", `{"function":{"name":"f","arguments":"\"{}\""}}`,
		"f", "function.arguments", "it must be an object, is a string"},
	{"arguments and more", `{"function":{"name":"f","arguments":"{} {}"}}`, "f", "function.arguments", "more data after the value"},
}

func TestWhatIsNoCallIsRefusedWithTheReason(t *testing.T) {
	for _, c := range badCalls {
		t.Run(c.name, func(t *testing.T) {
			call, err := parseCall([]byte(c.call))
			require.Equal(t, c.tool, call.Name)
			var refused *callError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, c.path, refused.path)
			require.Contains(t, refused.reason, c.reason)
			require.Equal(t, "not a tool call that can be executed: "+refused.path+": "+refused.reason, err.Error())
		})
	}
}

func TestCallsOfAnySizeAreRead(t *testing.T) {
	const much = 4 << 20
	long := strings.Repeat("x", much)
	deep := strings.Repeat(`{"a":`, much/5)
	for name, call := range map[string]string{
		"brackets":                strings.Repeat("[", much),
		"objects":                 deep,
		"arguments":               `{"function":{"name":"f","arguments":` + deep,
		"closed":                  `{"function":{"name":"f","arguments":` + nestedObjects(20_000) + "}}",
		"in a string":             `{"function":{"name":"f","arguments":"` + strings.Repeat("[", much) + `"}}`,
		"a string without an end": `{"function":"` + long,
		"a long name twice":       `{"` + long + `":1,"` + long + `":1}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseCall([]byte(call))
			require.Error(t, err)
			require.Less(t, len(err.Error()), 1000)
		})
	}

	for _, input := range []string{`{"text":"` + long + `"}`, nestedObjects(5000)} {
		call, err := parseCall([]byte(`{"function":{"name":"` + strings.Repeat("n", much) + `","arguments":` + input + `}}`))
		require.NoError(t, err)
		require.Equal(t, content.JSON(input), call.Input)
	}
}

func nestedObjects(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }

func FuzzCall(f *testing.F) {
	for _, c := range goodCalls {
		f.Add([]byte(c.call))
	}
	for _, c := range badCalls {
		f.Add([]byte(c.call))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		before := string(data)
		call, err := parseCall(data)
		require.Equal(t, before, string(data))
		var refused *callError
		if errors.As(err, &refused) {
			require.NotEmpty(t, refused.reason)
			require.Less(t, len(err.Error()), 1200)
			for _, c := range err.Error() {
				require.True(t, unicode.IsPrint(c), "%q", err.Error())
			}
			return
		}

		// Written again, it is the same call.
		require.NoError(t, err)
		require.NotEmpty(t, call.Name)
		require.True(t, call.Input.IsObject())
		again, err := json.Marshal(map[string]any{
			"id": call.ID, "function": map[string]any{"name": call.Name, "arguments": string(call.Input)},
		})
		require.NoError(t, err)
		read, err := parseCall(again)
		require.NoError(t, err)
		require.Equal(t, call, read)
	})
}
