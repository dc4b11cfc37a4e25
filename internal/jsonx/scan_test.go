package jsonx

import (
	"strings"
	"testing"

	json "github.com/goccy/go-json/v2"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
)

// FuzzMembers compares both ways of reading an object.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` { } `, `{"a":1}`, "\t{ \"a\" : -1.5e+3 , \"b\":[ ] ,\"\":{} }\n", `{"a\"b\\":"c\\\"d\\","\u00e9":"{[,:]}"}`, `{"a":{"b":[{"c":"}"},[1,[2]],null]},"d":true}`,
		`{"a":"","b":{"":""}}`, `{"a":1} {}`, `[1]`, `{"a":1,"a":2}`, `{"a":"` + strings.Repeat(`\\`, 99) + `"}`, `"{}"`, ``, `{`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		want, failure := readMembers(content.JSON(s))
		got, err := Members(content.JSON(s))
		require.Equal(t, failure == nil, err == nil)
		require.Equal(t, want, got)
	})
}

// FuzzText compares what is read at once with what a decoder reads.
func FuzzText(f *testing.F) {
	for _, seed := range []string{`""`, `"a"`, `"`, `"a`, `"\""`, `"é😀"`, `"\u0041"`, "\"\n\"", "\"\xff\"", `"a" `, `7`, ``, `"a"b"`, `"\"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var want string
		failure := json.Unmarshal([]byte(s), &want, Lenient)
		got, ok := Text(content.JSON(s))
		require.Equal(t, failure == nil && strings.HasPrefix(s, `"`), ok)
		if ok {
			require.Equal(t, want, got)
		}
	})
}

func TestWithAddsOnlyWhatIsNotThere(t *testing.T) {
	list := []Member{{"a", "1"}, {"b", "2"}}
	require.Equal(t, []Member{{"a", "1"}, {"b", "2"}, {"c", "4"}}, With(list, []Member{{"b", "3"}, {"c", "4"}}))
	require.Equal(t, list, With(list, nil))
	require.Equal(t, list, With(nil, list))
	require.Equal(t, []Member{{"a", "1"}, {"b", "2"}}, list[:2:2])
}

func BenchmarkMembers(b *testing.B) {
	const j = content.JSON(`{"id":"fc_0604981435bbceda00691e2fcecc308195a7af","status":"completed","action":{"type":"search","queries":["a","b"]}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Members(j); err != nil {
			b.Fatal(err)
		}
	}
}
