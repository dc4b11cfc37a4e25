package content_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/stretchr/testify/require"
)

func nested(n int) content.JSON {
	return content.JSON(strings.Repeat("[", n) + strings.Repeat("]", n))
}

func TestCanonical(t *testing.T) {
	for from, want := range map[content.JSON]content.JSON{
		"":                                "null",
		"null":                            "null",
		" {\"b\" : 1,\n\"a\":2} ":         `{"a":2,"b":1}`,
		`{"a":{"d":1,"c":2},"B":3}`:       `{"B":3,"a":{"c":2,"d":1}}`,
		`[1,1.0,1e2,1E+2,100,-0,0.10]`:    `[1,1.0,1e2,1E+2,100,-0,0.10]`,
		`[12345678901234567890123,1e400]`: `[12345678901234567890123,1e400]`,
		`"\u0041\u00e9\/\u000a\u001F\ud83d\ude00"`:   `"Aé/\n\u001f😀"`,
		`"<&>` + "\u2028" + `"`:                      `"<&>` + "\u2028" + `"`,
		`{"\u20ac":1,"\r":2,"1":3,"\ud83d\ude00":4}`: `{"\r":2,"1":3,"€":1,"😀":4}`,
		`{"a":1`:           `"{\"a\":1"`,
		`{"a":1,"a":2}`:    `"{\"a\":1,\"a\":2}"`,
		`"\ud800"`:         `"\"\\ud800\""`,
		"NaN":              `"NaN"`,
		"\"\xff\"":         "\"\\\"\uFFFD\\\"\"",
		nested(256):        nested(256),
		nested(257):        `"` + nested(257) + `"`,
		"[" + nested(256):  `"[` + nested(256) + `"`,
		"x" + nested(9000): `"x` + nested(9000) + `"`,
	} {
		require.Equal(t, want, from.Canonical(), "%.80s", from)
		if jsonx.Depth(from) < 200 {
			require.Equal(t, from.Canonical(), from.Canonical().Canonical(), "%.80s", from)
		}
		require.True(t, from.Canonical().Valid())
	}
	j := content.JSON(`{"b":1,"a":2}`)
	_ = j.Canonical()
	require.Equal(t, content.JSON(`{"b":1,"a":2}`), j)
}

func TestDepthCountsBracketsOutsideStrings(t *testing.T) {
	for j, want := range map[content.JSON]int{
		"":                             0,
		"1":                            0,
		`"[[["`:                        0,
		`["[[[", {"a":[]}]`:            3,
		`["\"[[["]`:                    1,
		`["\\",[[]]]`:                  3,
		`["\\\"",[[]],"\\\\"]`:         3,
		`["unended [[[`:                1,
		`]]]][`:                        0,
		`[[`:                           2,
		`"\`:                           0,
		`{"a":"\\"}`:                   1,
		`["\\\\\\\"[[[[","\\\\\\",[]]`: 2,
	} {
		require.Equal(t, want, jsonx.Depth(j), "%s", j)
	}
	require.Equal(t, 5_000_000, jsonx.Depth(content.JSON(strings.Repeat("[", 5_000_000))))
}

func TestInputKeepsItsBytesInASavedFile(t *testing.T) {
	for _, j := range []content.JSON{
		"null", `{"a":1}`, `{"b" : 1.0,	"a":[ ]}`, "{\n}", "\r{}", "{}\n", " {}", "{} ", "{}\t", `{"cut`, "NaN", `{"a":1,"a":2}`, " ", "\n",
		`"\ud800"`, nested(256), nested(257), nested(9999), "plain text", `"` + "\u2028" + `"`, "1e400", "<&>",
	} {
		use := of(t, content.ToolUse{Name: "f", Input: j})
		require.True(t, json.Valid(use.Append(nil)), "%s", use)
		require.NotContains(t, use.String(), "\n")
		var blocks content.Blocks
		require.NoError(t, blocks.UnmarshalJSON(use.Append(nil)))
		require.Equal(t, j, blocks.ToolUses()[0].Input)
	}
}

func TestJSONInsideAValueIsEncodedAsItIs(t *testing.T) {
	j, err := content.ToJSON(map[string]any{"args": content.JSON(`{"b":1.0,"a":2}`), "none": content.JSON("")})
	require.NoError(t, err)
	require.Equal(t, content.JSON(`{"args":{"b":1.0,"a":2},"none":null}`), j)
	_, err = content.ToJSON(content.JSON("{"))
	require.ErrorIs(t, err, content.ErrJSON)

	var back struct{ Args, None, Text content.JSON }
	require.NoError(t, json.Unmarshal([]byte(`{"Args":{"b":1.0,"a":2},"None":null,"Text":"x"}`), &back))
	require.Equal(t, []content.JSON{`{"b":1.0,"a":2}`, "", `"x"`}, []content.JSON{back.Args, back.None, back.Text})
}

func TestToJSON(t *testing.T) {
	j, err := content.ToJSON(map[string]any{"b": "<&>\u2028", "a": []int{1}, "c": "\xff"})
	require.NoError(t, err)
	require.Equal(t, content.JSON("{\"a\":[1],\"b\":\"<&>\u2028\",\"c\":\"\uFFFD\"}"), j)
	require.True(t, j.Valid())
	for _, v := range []any{math.NaN(), math.Inf(1), make(chan int), func() {}, json.RawMessage("{")} {
		_, err := content.ToJSON(v)
		require.ErrorIs(t, err, content.ErrJSON, "%T", v)
	}
}

func TestDecodeStoresNothingFromBrokenJSON(t *testing.T) {
	type target struct{ A, B int }
	for _, j := range []content.JSON{`{"A":1,"B":`, `{"A":1,"A":2}`, "", "NaN", `{"A":1} x`} {
		var v target
		require.ErrorIs(t, j.Decode(&v), content.ErrJSON)
		require.Zero(t, v, "%s", j)
	}
	var v target
	require.NoError(t, content.JSON(`{"A":1,"b":2}`).Decode(&v))
	require.Equal(t, target{A: 1}, v, "names match exactly")
	require.Error(t, content.JSON(`{"A":"x"}`).Decode(&v))
}

func TestValid(t *testing.T) {
	for j, want := range map[content.JSON]bool{
		"": false, "{}": true, " [1] ": true, "{}{}": false, `{"a":1,"a":1}`: false, "\"\xff\"": false, `"\ud800"`: false,
		"01": false, "+1": false, "nul": false, "'a'": false, nested(10_000): true, nested(10_001): false,
	} {
		require.Equal(t, want, j.Valid(), "%.40s", j)
	}
	require.True(t, content.JSON("\n {}").IsObject())
	require.False(t, content.JSON("{").IsObject())
	require.False(t, content.JSON("[]").IsObject())
}
