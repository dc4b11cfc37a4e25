package write_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/jsonx/write"
)

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func TestMembersAreWrittenInOrderWithCommas(t *testing.T) {
	dst := write.String([]byte{'{'}, "a", "")
	dst = write.OptString(write.OptString(dst, "left_out", ""), "b", "\"\n\xff")
	dst = write.OptInt(write.Int(dst, "c", 0), "left_out", 0)
	dst = write.OptInt(dst, "d", -time.Second)
	dst = write.OptTrue(write.OptTrue(dst, "left_out", false), "e", true)
	dst = append(write.Name(dst, "f"), '[')
	for _, s := range []string{"x", "[", ""} {
		dst = write.Quote(write.Comma(dst), s)
	}
	dst = append(dst, ']')

	type counts struct {
		N int `json:"n,omitzero"`
	}
	dst = write.OptValue(write.OptValue(dst, "left_out", counts{}), "g", counts{7})
	dst = append(append(write.Name(dst, "h"), '{'), '}')
	require.Equal(t, `{"a":"","b":"\"\n`+"\uFFFD"+`","c":0,"d":-1000000000,"e":true,"f":["x","[",""],"g":{"n":7},"h":{}`, string(dst))
	require.Equal(t, `"a":9223372036854775807`, string(write.Int(nil, "a", int64(math.MaxInt64))), "the beginning of a buffer needs no comma")
}

func TestJSONKeepsTheBytes(t *testing.T) {
	for _, j := range []string{
		"null", `{"a":1}`, `{"b" : 1.0,	"a":[ ]}`, "{\n}", "\r{}", "{}\n", " {}", "{} ", "{}\t", `{"cut`, "NaN", `{"a":1,"a":2}`, " ", "\n",
		`"\ud800"`, nested(256), nested(257), nested(9999), "plain text", `"` + "\u2028" + `"`, "1e400", "<&>",
	} {
		dst := append(write.JSON([]byte{'{'}, "input", j), '}')
		require.True(t, json.Valid(dst), "%s", dst)
		require.NotContains(t, string(dst), "\n")
		var read struct {
			Input     json.RawMessage `json:"input"`
			InputText string          `json:"input_text"`
		}
		require.NoError(t, json.Unmarshal(dst, &read))
		require.True(t, read.Input == nil || read.InputText == "", "%s", dst)
		require.Equal(t, j, write.Either[string]([]byte(read.Input), read.InputText))
	}
	require.Equal(t, "{", string(write.JSON([]byte{'{'}, "input", "")), "no value is no member")
	require.Equal(t, `{"a":1,"b_text":"{"`, string(write.JSON([]byte(`{"a":1`), "b", "{")))
}

func TestTheFormOfDigestsIsCanonical(t *testing.T) {
	canonical := write.Form{Canonical: true}
	for value, want := range map[string]string{
		"":                      "{",
		" {\"b\":1, \"a\":1e2}": `{"a":{"a":1e2,"b":1}`,
		"{":                     `{"a_text":"{"`,
		nested(257):             `{"a_text":"` + nested(257) + `"`,
	} {
		require.Equal(t, want, string(canonical.JSON([]byte{'{'}, "a", value)))
		require.Equal(t, string(write.JSON([]byte{'{'}, "a", value)), string(write.Form{}.JSON([]byte{'{'}, "a", value)))
	}
}
