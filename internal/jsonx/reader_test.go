package jsonx

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	json "github.com/goccy/go-json/v2"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
)

const sample = ` {"name":"x","n":-7,"big":1e3,"on":true,"off":false,"in":{"a/b":{"~":[1]}},"list":[{"i":0}, {"i":1} ],"raw":{"k": 1},"cut_text":"{" } `

func TestReaderReturnsMembersByName(t *testing.T) {
	r := Read(sample, 4)
	require.Equal(t, "x", r.Text("name"))
	require.Equal(t, "else", r.OptText("none", "else"))
	require.Equal(t, -7, r.Int("n"))
	require.Zero(t, r.OptInt64("none"))
	require.Equal(t, 1000.0, r.Number("big"))
	require.True(t, r.Flag("on"))
	require.False(t, r.Flag("off"))
	require.False(t, r.Flag("none"))
	require.Equal(t, content.JSON("[1]"), r.Object("in").Object("a/b").Value("~"))
	require.Equal(t, content.JSON(`{"k": 1}`), r.JSON("raw"))
	require.Equal(t, content.JSON("{"), r.JSON("cut"))
	require.Empty(t, r.JSON("none"))
	require.Len(t, r.Members(), 9)

	require.Equal(t, []string{"a", ""}, Read(`{"at":["a", ""]}`, 2).Texts("at"))
	require.Empty(t, Read(`{"at":[]}`, 2).Texts("at"))

	require.Nil(t, r.Err())
}

func TestReaderReportsTheFirstErrorWithItsPath(t *testing.T) {
	for want, read := range map[string]func(Reader){
		"none: it is missing":             func(r Reader) { r.Text("none") },
		"on: it is no list":               func(r Reader) { r.Texts("on") },
		"list: it is no string":           func(r Reader) { r.Texts("list") },
		"n: it is no string":              func(r Reader) { r.Text("n"); r.Text("none") },
		"big: it is no integer that fits": func(r Reader) { r.Int("big") },
		"name: it is no number that fits": func(r Reader) { r.Number("name") },
		"n: it is neither true nor false": func(r Reader) { r.Flag("n") },
		"list: it is no JSON object":      func(r Reader) { r.Object("list") },
		"in/a~1b/c: it is missing":        func(r Reader) { r.Object("in").Object("a/b").Value("c") },
		"in/a~1b: of a kind":              func(r Reader) { r.Object("in").Object("a/b").Refuse(errors.New("of a kind")) },
		"big: it does not belong there":   func(r Reader) { r.Only("name", "n") },
		"in: it is odd": func(r Reader) {
			r.Object("in").Named()(func(_ string, in Reader) bool { r.Object("in").Refuse(errors.New("it is odd")); return true })
		},
		"in/a~1b/~0: it is no JSON object": func(r Reader) { r.Object("in").Object("a/b").Named()(func(string, Reader) bool { return true }) },
	} {
		r := Read(sample, 4)
		read(r)
		require.EqualError(t, r.Err(), want)
	}

	both := Read(`{"a":1,"a_text":"1"}`, 1)
	both.JSON("a")
	require.EqualError(t, both.Err(), "a: it is there twice, also as a string")
	require.ErrorIs(t, Read(`{}`, 1).missing(), ErrAbsent)
}

func (r Reader) missing() error {
	r.Value("a")
	return r.Err()
}

func TestReaderRefusesWhatIsNoObject(t *testing.T) {
	for text, want := range map[content.JSON]string{
		"": "it is not valid JSON: EOF", "[]": "it is no JSON object", `"x"`: "it is no JSON object",
		"{":                   "it is not valid JSON: unexpected EOF, after byte 1",
		`{"a":1}{}`:           "it is not valid JSON: there is more after its end",
		`{"a":{"b":1,"b":1}}`: `a/b: it is not valid JSON: duplicate object member name, after byte 12`,
		`{"a":{"b":[0,1,}]}}`: "a/b: it is not valid JSON: invalid character",
		"{\"a\":\"\xff\"}":    "a: it is not valid JSON: invalid UTF-8, after byte 6",
		`{"a":[[[]]]}`:        "it nests 4 deep; the limit is 3",
		content.JSON(strings.Repeat(`{"a":`, 1_000_000)): "it nests 1000000 deep; the limit is 3",
	} {
		r := Read(text, 3)
		require.ErrorContains(t, r.Err(), want)
		require.Empty(t, r.Members())
		before := r.Err()
		r.Object("a").Text("b") // reading goes on without a panic
		require.Equal(t, before, r.Err())
	}
}

// FuzzReader reads every member in every way. The path of an error must lead to the value that is refused.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		sample, `{}`, `{"a":[{"b":[{"c":null},7]}]}`, `{"a/b~":{"\u00e9":{"":1}}}`, `{"a":1,"a":2}`, `[1]`, `{"a":`, ``,
		strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70),
	} {
		for n := range 3 {
			f.Add(seed, 3*n)
		}
	}
	f.Fuzz(func(t *testing.T, text string, n int) {
		const limit = 64
		r := Read(content.JSON(text), limit)
		j := content.JSON(text)
		if !j.IsObject() || Depth(j) > limit {
			require.NotNil(t, r.Err())
			readAll(r, &n)
			return
		}
		require.Nil(t, r.Err())

		refused := readAll(r, &n)
		if r.Err() == nil {
			return
		}
		var whole any
		require.NoError(t, json.Unmarshal([]byte(text), &whole))
		found, ok := lookup(whole, r.Err().Path)
		require.True(t, ok, "%s has no %q", text, r.Err().Path)
		if refused != "" && errors.Is(r.Err(), errFuzz) {
			var want any
			require.NoError(t, json.Unmarshal([]byte(refused), &want))
			require.Equal(t, want, found, "%s at %q", text, r.Err().Path)
		}
	})
}

var errFuzz = errors.New("refused by the test")

// readAll reads the members of r and below, and refuses member number n. It returns the value of that member.
func readAll(r Reader, n *int) content.JSON {
	for _, m := range r.Members() {
		if m.Name == "" {
			continue // its path is that of the object around it
		}
		if *n--; *n == 0 {
			r.Fail(m.Name, errFuzz)
			return m.Value
		}

		switch m.Value[0] {
		case '{':
			if refused := readAll(r.Object(m.Name), n); refused != "" {
				return refused
			}
		default:
			typed := Reader{list: r.list, first: &failure{}}
			typed.Text(m.Name)
			typed.Int(m.Name)
			typed.Number(m.Name)
			typed.Flag(m.Name)
			typed.JSON(m.Name)
		}
	}
	return ""
}

// lookup returns the value at a path.
func lookup(v any, path string) (any, bool) {
	if path == "" {
		return v, true
	}
	for name := range strings.SplitSeq(path, "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch within := v.(type) {
		case map[string]any:
			inner, ok := within[name]
			if !ok {
				return nil, false
			}
			v = inner
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(within) {
				return nil, false
			}
			v = within[i]
		default:
			return nil, false
		}
	}
	return v, true
}
