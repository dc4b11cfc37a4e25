package fake_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/internal/testkit/fixture"
)

// ask posts a body with every header that any of the fakes wants.
func ask(t *testing.T, url, body string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer none")
	res, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, res.Header, string(data)
}

type cassette struct {
	Exchanges []struct {
		Request *struct {
			Path, Body string
		}
		Response struct {
			Status int
			Body   string
		}
	}
}

// recorded calls fn for each recorded exchange with a known request and with part in its path. It reads a folder of the
// traffic, and the conversations with several providers.
func recorded(t *testing.T, folder, part string, fn func(name, path, body string, status int, response string)) {
	t.Helper()
	root := fixture.Path(t, "cassettes")
	for _, dir := range []string{folder, "cross-provider"} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.json"))
		require.NoError(t, err)
		for _, file := range files {
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			var c cassette
			require.NoError(t, json.Unmarshal(data, &c))
			for i, e := range c.Exchanges {
				if e.Request != nil && strings.Contains(e.Request.Path, part) {
					fn(fmt.Sprintf("%s/%s#%d", dir, filepath.Base(file), i), e.Request.Path, e.Request.Body, e.Response.Status, e.Response.Body)
				}
			}
		}
	}
}

// acceptsRecorded requires check to accept every recorded request the API accepted. The exceptions have their reasons;
// check must refuse them.
func acceptsRecorded(t *testing.T, folder, part string, exceptions map[string]string, check func(path string, body []byte) error) {
	t.Helper()
	accepted, excepted := 0, 0
	recorded(t, folder, part, func(name, path, body string, status int, _ string) {
		if status != 200 {
			return
		}
		err := check(path, []byte(body))
		if reason, ok := exceptions[name]; ok {
			require.Error(t, err, "%s is listed as an exception (%s), but accepted", name, reason)
			excepted++
			return
		}
		assert.NoError(t, err, name)
		accepted++
	})
	require.Equal(t, len(exceptions), excepted, "exceptions that were not met")
	t.Logf("%d recorded requests accepted, %d listed exceptions", accepted, excepted)
}

// refusesRecorded requires check to refuse every recorded request the API refused, with the same text. Unknowable lists
// the refusals no check of a body can know, with their reasons; check must accept these.
func refusesRecorded(t *testing.T, folder, part string, unknowable map[string]string, check func(path string, body []byte) error) {
	t.Helper()
	refused, elsewhere := 0, 0
	recorded(t, folder, part, func(name, path, body string, status int, response string) {
		if status != 400 {
			return
		}
		if reason, ok := unknowable[name]; ok {
			require.NoError(t, check(path, []byte(body)), "%s is listed as one that cannot be known (%s), but refused", name, reason)
			elsewhere++
			return
		}
		var refusal *api.Error
		if assert.ErrorAs(t, check(path, []byte(body)), &refusal, name+": "+response) {
			var said struct{ Error struct{ Message string } }
			require.NoError(t, json.Unmarshal([]byte(response), &said), name)
			assert.Equal(t, said.Error.Message, refusal.Message, name)
			refused++
		}
	})
	require.Equal(t, len(unknowable), elsewhere, "listed refusals that were not met")
	t.Logf("%d recorded refusals refused in the API's own words, %d cannot be known", refused, elsewhere)
}

// refusalCase is a body that breaks only one rule, with the API's error text.
type refusalCase struct{ rule, body, says string }

// refusesEach checks that each body is refused in the words given, with status 400.
func refusesEach(t *testing.T, cases []refusalCase, check func(body []byte) error) {
	t.Helper()
	for _, test := range cases {
		t.Run(test.rule, func(t *testing.T) {
			err := check([]byte(test.body))
			var refusal *api.Error
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, test.says, refusal.Message)
			require.Equal(t, 400, refusal.Status)
			require.ErrorIs(t, err, api.ErrInvalidRequest)
			require.Contains(t, refusal.Body, `"error"`)
		})
	}
}

// neverPanics is the fuzz test of a check: it answers, and answers the same again.
func neverPanics(f *testing.F, cases []refusalCase, check func(body []byte) error) {
	for _, test := range cases {
		if len(test.body) < 10_000 {
			f.Add([]byte(test.body))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) { require.Equal(t, check(body), check(body)) })
}

// theirs matches the parts of an error text that depend on the request: IDs, names and positions.
var theirs = regexp.MustCompile(`'rs_\w+'|: \w+$|default_api:\w+|position \d+`)

// requireObservedTexts checks that the fake of an API has the text of each refusal recorded without its request. Normal
// removes the parts of a text that depend on the request. Files with except in their names are left out, unless except
// is empty.
func requireObservedTexts(t *testing.T, folder string, cases []refusalCase, normal func(string) string, except string) {
	t.Helper()
	known := map[string]bool{}
	for _, test := range cases {
		known[normal(test.says)] = true
	}

	files, err := filepath.Glob(fixture.Path(t, "cassettes", folder) + "/observed--400-*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		if except != "" && strings.Contains(file, except) {
			continue
		}
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var c cassette
		require.NoError(t, json.Unmarshal(data, &c))
		var said struct{ Error struct{ Message string } }
		require.NoError(t, json.Unmarshal([]byte(c.Exchanges[0].Response.Body), &said))
		require.True(t, known[normal(said.Error.Message)], said.Error.Message)
	}
}

func TestFakesRefuseWithTheErrorTextsOfTheAPIs(t *testing.T) {
	withoutIDs := func(text string) string { return theirs.ReplaceAllString(text, "…") }
	requireObservedTexts(t, "openai-chat", chatRefusals, withoutIDs, "")
	requireObservedTexts(t, "openai-responses", responsesRefusals, withoutIDs, "")
	requireObservedTexts(t, "gemini", geminiRefusals, withoutIDs, "")

	withoutPositions := func(text string) string {
		return named.ReplaceAllString(places.ReplaceAllString(text, ".N"), ": ID. Each")
	}
	// Only the API knows the thinking that it sent.
	requireObservedTexts(t, "anthropic", refusals, withoutPositions, "thinking-modified")
}

// TestChecksEndOnHostileBodies checks bodies of great depth, and with many items.
func TestChecksEndOnHostileBodies(t *testing.T) {
	const n = 2_000
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 4_000) + "1" + strings.Repeat("}}", 4_000)
	list := strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)
	many := func(one string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.ReplaceAll(one, "#", strconv.Itoa(i)) + ",")
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	hostile := func(check func([]byte) error, bodies ...string) {
		for i, body := range bodies {
			require.Error(t, check([]byte(body)), i)
		}
	}
	hostile(fake.CheckOpenAIChat, list, chat(list), chat(many(chatHi)+","+chatCall), chat(chatHi, tools(chatTool("f", deep))),
		chat(chatHi, many(`"m#":1`)), chat(chatHi, tools(many(chatTool("f#", emptyObject)))),
		chat(chatHi+`,{"role":"assistant","tool_calls":[`+many(`{"id":"#","type":"function","function":{"name":"f","arguments":""}}`)+`]}`))
	hostile(fake.CheckOpenAIResponses, list, responses(list), responses(many(swap(itemCall, `"fc_1","call_id":"a"`, `"fc_#","call_id":"#"`))),
		responses(itemHi, tools(responsesTool("f", deep))), responses(many(itemSaid)))
	hostile(checkGemini3, list, gemini(list), gemini(gHi, functions(function("f", deep))), gemini(gHi, functions(many(function("f#", `{"type":1}`)))),
		gemini(gHi+","+said("model", many(gCall))+","+said("user", many(gAnswer))+","+gHello))
}
