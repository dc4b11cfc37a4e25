package registry

import (
	"encoding/json"
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

// badCalls are what is refused, the tool's name if it can be read, and what is said of it.
var badCalls = []struct{ name, call, tool, reason string }{
	{"nothing", "", "", "EOF"},
	{"no JSON", "f(1)", "", "invalid character '('"},
	{"cut off", `{"function":{"name":"f"}`, "", "unexpected EOF"},
	{"two values", `{"function":{"name":"f"}}{}`, "", "invalid character '{'"},
	{"a lone surrogate", `{"name":"\ud800"}`, "", "invalid surrogate pair"},
	{"a list", `[{"function":{"name":"f"}}]`, "", "cannot unmarshal"},
	{"null", `null`, "", "function.name is missing"},
	{"another API's call", `{"type":"tool_use","id":"c","name":"f","input":{}}`, "", "function.name is missing"},
	{"names in another case", `{"Function":{"name":"f"}}`, "", "function.name is missing"},
	{"a name twice, escaped", `{"function":{"name":"f","n\u0061me":"g"}}`, "", "duplicate object member name"},
	{"an argument twice", `{"function":{"name":"f","arguments":{"path":"a","path":"b"}}}`, "", "duplicate object member name"},
	{"an argument twice in a string", `{"function":{"name":"f","arguments":"{\"path\":1,\"path\":2}"}}`, "f", "not a JSON object"},
	{"a name that is a number", `{"function":{"name":5}}`, "", "cannot unmarshal"},
	{"arguments that are a list", `{"function":{"name":"f","arguments":[]}}`, "f", "not a JSON object"},
	{"arguments that are cut off", `{"function":{"name":"f","arguments":"{\"a\":"}}`, "f", "not a JSON object"},
	{"arguments quoted twice", `{"function":{"name":"f","arguments":"\"{}\""}}`, "f", "not a JSON object"},
	{"arguments and more", `{"function":{"name":"f","arguments":"{} {}"}}`, "f", "not a JSON object"},
}

func TestWhatIsNoCallIsRefusedWithTheReason(t *testing.T) {
	for _, c := range badCalls {
		t.Run(c.name, func(t *testing.T) {
			call, err := parseCall([]byte(c.call))
			require.Equal(t, c.tool, call.Name)
			require.ErrorContains(t, err, "not a tool call that can be executed: ")
			require.ErrorContains(t, err, c.reason)
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
		if err != nil {
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
