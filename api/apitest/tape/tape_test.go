package tape_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest/tape"
	"github.com/plait-dev/plait/content"
)

// A tape is recorded once, with a real key, and then answers without the network.
func ExampleOpen() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"text":"Hello."}`)
	}))
	dir, err := os.MkdirTemp("", "tape")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "hello.json")

	ask := func(mode tape.Mode, key, body string) {
		recording, err := tape.Open(path, &tape.Options{Mode: mode})
		if err != nil {
			fmt.Println(err)
			return
		}
		req, _ := http.NewRequest("POST", server.URL+"/v1/messages", strings.NewReader(body))
		req.Header.Set("x-api-key", key)
		if res, err := recording.Client().Do(req); err == nil {
			answer, err := io.ReadAll(res.Body)
			fmt.Println(mode, string(answer), err)
		}
		if err := recording.Close(); err != nil {
			fmt.Println(strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""))
		}
	}
	ask(tape.Record, "sk-secret-1", `{"say":"Hi"}`)
	server.Close()
	ask(tape.Play, "none", `{ "say": "Hi" }`)
	ask(tape.Play, "none", `{"say":"Ho"}`)
	file, err := os.ReadFile(path)
	fmt.Println(strings.Contains(string(file), "secret"), err)
	// Output:
	// record {"text":"Hello."} <nil>
	// play {"text":"Hello."} <nil>
	// hello.json: not on the tape: POST /v1/messages: the nearest is recording 1 of 1: body.say: it was "Hi", and is "Ho"
	// hello.json: left on the tape: 1 of 1 recordings, the first of them POST /v1/messages
	// false <nil>
}

// In a test, a tape needs one line; the provider is given recording.Client().
func ExampleNew() {
	t := &exampleT{} // a test has its *testing.T
	defer t.end()

	recording := tape.New(t, "testdata/weather.json", nil)
	key := "none"
	if recording.Recording() {
		key = os.Getenv("WEATHER_KEY")
	}
	req, _ := http.NewRequest("GET", "http://weather.example/tokyo", nil)
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := recording.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	fmt.Println(string(body), err)
	// Output: {"celsius":22} <nil>
}

// exampleT is as much of a test as a tape needs.
type exampleT struct {
	testing.TB
	cleanup func()
}

func (t *exampleT) Helper()           {}
func (t *exampleT) Cleanup(fn func()) { t.cleanup = fn }
func (t *exampleT) Error(args ...any) { fmt.Println(args...) }
func (t *exampleT) Fatal(args ...any) { panic(fmt.Sprint(args...)) }
func (t *exampleT) end()              { t.cleanup() }

// roundTrip answers requests in place of a network.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// answers answers each request with the body, in one piece.
func answers(body string) roundTrip {
	return func(req *http.Request) (*http.Response, error) {
		return response(req, io.NopCloser(strings.NewReader(body))), nil
	}
}

func response(req *http.Request, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}, "Date": {"now"}}, Body: body, ContentLength: -1, Request: req}
}

// taped records the requests with their responses, and returns the path of the tape.
func taped(t *testing.T, o tape.Options, requests ...*http.Request) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "new", "tape.json")
	o.Mode = tape.Record
	recording, err := tape.Open(path, &o)
	require.NoError(t, err)
	for _, req := range requests {
		res, err := recording.RoundTrip(req)
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, res.Body)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
	}
	require.NoError(t, recording.Close())
	require.NoError(t, recording.Close(), "a second time does nothing")
	return path
}

func played(t *testing.T, path string, o tape.Options) *tape.Tape {
	t.Helper()
	o.Mode = tape.Play
	recording, err := tape.Open(path, &o)
	require.NoError(t, err)
	return recording
}

func asks(url, body string) *http.Request {
	req, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	return req
}

func answerOf(t *testing.T, recording *tape.Tape, req *http.Request) (string, error) {
	t.Helper()
	res, err := recording.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}

func fileOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestTapeAnswersByteForByte(t *testing.T) {
	for _, body := range []string{
		"", "{}", `{"a":1.0,"b":"\u003c<\/","c":12345678901234567890,"d":1e2}`, "{\n  \"a\": 1\n}\n", `{"a":1,"a":2}`, "event: x\ndata: {\"a\":1}\n\n",
		"data: 1\r\n\r\ndata: 2", "\n", "\n\n", "a\n\nb", "\x00\x01", "\xff\xfe", "é", strings.Repeat("[", 2000), " {}", `"\ud800"`, `null`, "\u2028",
	} {
		path := taped(t, tape.Options{Next: answers(body)}, asks("http://a.example/x", "{}"))
		recording := played(t, path, tape.Options{})
		got, err := answerOf(t, recording, asks("http://b.example/x", "{}"))
		require.NoError(t, err)
		require.Equal(t, body, got)
		require.NoError(t, recording.Close())
		require.True(t, content.JSON(fileOf(t, path)).Valid() || strings.Contains(body, `"a":1,"a"`))
	}
}

func TestTapeIsTheSameWhenItIsRecordedOfATape(t *testing.T) {
	requests := func() []*http.Request {
		return []*http.Request{asks("https://u:p@a.example/x?b=2&a=1&key=secret-key-1", `{"b":1,"a":[1.0]}`), asks("https://a.example/y", "\xff"), asks("https://a.example/z", "")}
	}
	first := taped(t, tape.Options{Next: answers("data: 1\n\n")}, requests()...)
	player := played(t, first, tape.Options{})
	second := taped(t, tape.Options{Next: player}, requests()...)
	require.NoError(t, player.Close())
	require.Equal(t, fileOf(t, first), fileOf(t, second))
	require.NotContains(t, fileOf(t, first), "now", "headers that mean nothing are not recorded")
}

func TestTapeHoldsNoSecret(t *testing.T) {
	const named = `quo"ted/sécret<1>`
	body := `{"echo":"sk-ant-0123456789","org":"org-abcdefgh1","nested":"{\"k\":\"quo\\\"ted/sécret<1>\"}","again":"quo\"ted\/s\u00e9cret\u003c1\u003e",` +
		`"hidden":"\u0073k-ant-0123456789","session":"c00kie-value","project":"acme-prod-77","other":"REDACTE"}`
	req := asks("https://me:pass-word-1@a.example/v1/projects/my-project-1/models?key=AIzaSyD-123456&alt=sse&X-Amz-Signature=abcdef0123456789&q="+
		"quo%22ted%2Fs%C3%A9cret%3C1%3E", body)
	for name, value := range map[string]string{
		"Authorization": "Bearer bearer-0123456789", "X-Api-Key": "sk-ant-0123456789", "Api-Key": "azure-0123456789", "X-Goog-Api-Key": "goog-0123456789",
		"Cookie": "sid=c00kie-value; theme=dark", "Openai-Organization": "org-abcdefgh1", "Openai-Project": "proj_0123456789",
		"X-Goog-User-Project": "acme-prod-77", "Anthropic-Version": "2023-06-01", "X-My-Own": "own-value", "Anthropic-Beta": "sk-ant-0123456789",
	} {
		req.Header.Set(name, value)
	}
	next := roundTrip(func(req *http.Request) (*http.Response, error) {
		res := response(req, io.NopCloser(strings.NewReader("data: "+body+"\n\n"+"data: set-1234567 resp-org-12\n")))
		res.Header.Set("Set-Cookie", "sid=set-1234567; HttpOnly")
		res.Header.Set("Anthropic-Organization-Id", "resp-org-12")
		res.Header.Set("Request-Id", "req_sk-ant-0123456789")
		return res, nil
	})
	path := taped(t, tape.Options{Next: next, Secrets: []string{named, ""}}, req)
	file := fileOf(t, path)
	for _, secret := range []string{
		"bearer-0123456789", "sk-ant-0123456789", "k-ant-0123", "azure-0123456789", "goog-0123456789", "c00kie-value", "org-abcdefgh1", "proj_0123456789", "acme-prod-77",
		"AIzaSyD", "abcdef0123456789", "my-project-1", "pass-word-1", "me:", "own-value", "set-1234567", "resp-org-12", "cret", "ted/",
	} {
		require.NotContains(t, file, secret)
	}
	require.Contains(t, file, "2023-06-01")
	require.Contains(t, file, "alt=sse")
	require.Contains(t, file, "REDACTED")

	other := req.Clone(t.Context())
	other.Header = http.Header{"X-Api-Key": {"sk-ant-9876543210"}}
	other.URL.User = nil
	query := other.URL.Query()
	query.Set("key", "another")
	other.URL.RawQuery = query.Encode()
	other.Body = io.NopCloser(strings.NewReader(strings.NewReplacer("sk-ant-0123456789", "sk-ant-9876543210", `\u0073k-ant-0123456789`, "sk-ant-9876543210",
		"org-abcdefgh1", "REDACTED", "c00kie-value", "REDACTED", "acme-prod-77", "REDACTED").Replace(body)))
	recording := played(t, path, tape.Options{Secrets: []string{named}})
	_, err := answerOf(t, recording, other)
	require.NoError(t, err, "another key makes no other request")
	require.NoError(t, recording.Close())
}

func TestTapeFindsSecretsHoweverTheyAreEscaped(t *testing.T) {
	const secret = `a"b/c d<é+1`
	for how, text := range map[string]string{
		"as it is": secret, "JSON": `a\"b/c d<é+1`, "JSON in JSON": `a\\\"b/c d<é+1`, "JSON for HTML": `a\"b/c d\u003cé+1`, "a query": `a%22b%2Fc+d%3C%C3%A9%2B1`,
		"a path": `a%22b%2Fc%20d%3C%C3%A9+1`,
	} {
		path := taped(t, tape.Options{Next: answers("[" + text + "]"), Secrets: []string{secret}}, asks("http://a.example/", ""))
		require.Contains(t, fileOf(t, path), "[REDACTED]", how)
	}
	path := taped(t, tape.Options{Next: answers(`a\/b pass-word-1`), Secrets: []string{"a/b"}}, asks("http://me:pass-word-1@a.example/", ""))
	require.Contains(t, fileOf(t, path), `"REDACTED REDACTED"`)
}

// escapeForms has the legal forms of each character of a secret in a string of JSON, in a URL, and in JSON in JSON.
var escapeForms = map[string][][]string{
	"JSON": {
		{"a", `\u0061`}, {`\"`, `\u0022`}, {"/", `\/`, `\u002f`, `\u002F`}, {`\\`, `\u005c`, `\u005C`}, {`\n`, `\u000a`, `\u000A`},
		{" ", `\u0020`}, {"é", `\u00e9`, `\u00E9`}, {"😀", `\ud83d\ude00`, `\uD83D\uDE00`, `\ud83D\uDe00`}, {"%", `\u0025`}, {"9", `\u0039`},
	},
	"URL": {
		{"a", "%61"}, {`%22`}, {"/", "%2f", "%2F"}, {"%5c", "%5C"}, {"%0a", "%0A"}, {"%20", "+"}, {"%c3%a9", "%C3%A9", "%c3%A9"},
		{"%f0%9f%98%80", "%F0%9F%98%80"}, {"%25"}, {"9", "%39"},
	},
	"JSON in JSON": {
		{"a", `\\u0061`, `\u005cu0061`}, {`\\\"`, `\\\u0022`, `\u005c\u0022`, `\\u0022`}, {"/", `\\/`, `\\\/`, `\\u002F`}, {`\\\\`, `\\u005c`},
		{`\\n`, `\u005cn`, `\\u000A`}, {" "}, {"é", `\u00e9`, `\\u00E9`}, {"😀", `\ud83d\ude00`, `\\uD83D\\uDE00`}, {"%"}, {"9"},
	},
	"URL in JSON": {
		{"a", `\u0061`, `\u00256\u0031`}, {"%22", `\u002522`}, {`\/`, "%2f"}, {"%5C"}, {"%0A"}, {"+", `\u002b`}, {"%C3%A9"}, {"%F0%9F%98%80"}, {"%25"}, {"9"},
	},
}

func TestTapeFindsSecretsInMixedEscapes(t *testing.T) {
	const secret = "a\"/\\\n é😀%9"
	for kind, forms := range escapeForms {
		for n := range 4 {
			var text strings.Builder
			for i, form := range forms {
				text.WriteString(form[(n+i)%len(form)])
			}
			for _, around := range []string{`{"k":"x%s\\","n":[1.0]}`, `{"k":"%s`, "data: {\"k\":\"\\\"%s\"}\n\n", "%[1]s %[1]s"} {
				body := fmt.Sprintf(around, text.String())
				path := taped(t, tape.Options{Next: answers(body), Secrets: []string{secret}}, asks("http://a.example/", body))
				recording := played(t, path, tape.Options{Secrets: []string{secret}})
				got, err := answerOf(t, recording, asks("http://a.example/", body))
				require.NoError(t, err)
				require.Equal(t, fmt.Sprintf(around, "REDACTED"), got, "%s: %s", kind, body)
				require.NoError(t, recording.Close())
			}
		}
	}
}

func TestTapeReplacesOverlappingSecretsOnce(t *testing.T) {
	secrets := []string{"key-1234", "sk-key-1234-main", "main-5678", "key-1234"}
	path := taped(t, tape.Options{Next: answers(`\u002 %zz %4 sk-key-1234-main-5678 key-1234key-1234 \`), Secrets: secrets}, asks("http://a.example/", ""))
	require.Contains(t, fileOf(t, path), `"\\u002 %zz %4 REDACTED REDACTEDREDACTED \\"`)
}

func TestTapeThatWouldHoldASecretIsNotWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape.json")
	require.NoError(t, os.WriteFile(path, []byte("before"), 0o600))
	recording, err := tape.Open(path, &tape.Options{Mode: tape.Record, Next: answers("x"), Secrets: []string{"plait_tape"}})
	require.NoError(t, err)
	_, err = answerOf(t, recording, asks("http://a.example/", ""))
	require.NoError(t, err)
	require.ErrorIs(t, recording.Close(), tape.ErrUnusable)
	require.Equal(t, "before", fileOf(t, path))
}

func TestTapeRefusesWhatItCannotLookInto(t *testing.T) {
	var squeezed bytes.Buffer
	w := gzip.NewWriter(&squeezed)
	_, _ = io.WriteString(w, "secret")
	require.NoError(t, w.Close())
	next := roundTrip(func(req *http.Request) (*http.Response, error) {
		require.Empty(t, req.Header.Get("Accept-Encoding"))
		res := response(req, io.NopCloser(&squeezed))
		res.Header.Set("Content-Encoding", "gzip")
		return res, nil
	})
	path := filepath.Join(t.TempDir(), "tape.json")
	recording, err := tape.Open(path, &tape.Options{Mode: tape.Record, Next: next})
	require.NoError(t, err)
	req := asks("http://a.example/", "")
	req.Header.Set("Accept-Encoding", "gzip")
	_, err = recording.RoundTrip(req)
	require.ErrorIs(t, err, tape.ErrUnusable)
	require.Equal(t, "gzip", req.Header.Get("Accept-Encoding"), "the request itself is not changed")
	req.Header.Set("Content-Encoding", "gzip")
	_, err = recording.RoundTrip(req)
	require.ErrorIs(t, err, tape.ErrUnusable)
	require.ErrorContains(t, recording.Close(), "nothing was recorded")
	require.NoFileExists(t, path)

	_, err = tape.Open(path, &tape.Options{Header: []string{"X-Secret-Thing"}})
	require.ErrorIs(t, err, tape.ErrUnusable)
}

func TestTapeOfAnySizeIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"plait_tape":1}`), 0o600))
	require.NoError(t, os.Truncate(path, 1<<40)) // a gap takes no space on the disk
	_, err := tape.Open(path, nil)
	require.ErrorIs(t, err, tape.ErrUnusable)
	require.ErrorContains(t, err, "has more than 1073741824 bytes")
}

func TestTapeKeepsFurtherHeaders(t *testing.T) {
	next := roundTrip(func(req *http.Request) (*http.Response, error) {
		res := response(req, http.NoBody)
		res.Header.Set("X-Ratelimit-Remaining-Tokens", "12")
		return res, nil
	})
	path := taped(t, tape.Options{Next: next, Header: []string{"x-ratelimit-remaining-tokens"}}, asks("http://a.example/", ""))
	recording := played(t, path, tape.Options{})
	res, err := recording.RoundTrip(asks("http://a.example/", ""))
	require.NoError(t, err)
	require.Equal(t, "12", res.Header.Get("X-Ratelimit-Remaining-Tokens"))
	require.Equal(t, "200 OK", res.Status)
	require.NoError(t, recording.Close())
}

func TestTapeErrorNamesTheMissingRequest(t *testing.T) {
	path := taped(t, tape.Options{Next: answers("ok")},
		asks("http://a.example/v1", `{"model":"a","messages":[{"role":"user","text":"Hi"}]}`),
		asks("http://a.example/v1", `{"model":"a","messages":[{"role":"user","text":"Hi"},{"role":"assistant","text":"Ho"}],"n":1.0}`),
		asks("http://a.example/v2", `words`),
	)
	for _, test := range []struct{ method, url, body, says string }{
		{"POST", "http://a.example/v1", `{"model":"b","messages":[]}`, `recording 1 of 3: body.messages: it had 1 items, and has 0`},
		{"POST", "http://a.example/v1", `{"model":"b","messages":[{"role":"user","text":"Hi"}]}`, `recording 1 of 3: body.model: it was "a", and is "b"`},
		{"POST", "http://a.example/v1", `{"messages":[{"role":"user","text":"Hi"}]}`, `recording 1 of 3: body.model: it was "a", and is not there any more`},
		{"POST", "http://a.example/v1", `{"model":"a","messages":[{"role":"user","text":"Hi"}],"temperature":1}`, `recording 1 of 3: body.temperature: it was not there, and is 1`},
		{"POST", "http://a.example/v1", `{"n":1,"model":"a","messages":[{"role":"user","text":"Hi"},{"role":"assistant","text":"Ho"}]}`, `recording 2 of 3: body.n: it was 1.0, and is 1`},
		{"POST", "http://a.example/v1", `{"n":1.0,"model":"a","messages":[{"text":"Hi","role":"user"},{"role":"assistant","text":"Ho"}]}`, `it is recording 2 of 3, and recording 1 comes next`},
		{"POST", "http://a.example/v1", `{"model":`, `body: it was`},
		{"POST", "http://a.example/v3", `{}`, `recording 1 of 3: URL: it was /v1, and is /v3`},
		{"GET", "http://a.example/v1", ``, `recording 1 of 3: method: it was POST, and is GET`},
		{"POST", "http://a.example/v2", `wards`, `recording 3 of 3: body: it was words, and is wards`},
		{"POST", "http://a.example/v1?x=1", `{}`, `URL: it was /v1, and is /v1?x=1`},
	} {
		recording := played(t, path, tape.Options{})
		req := asks(test.url, test.body)
		req.Method = test.method
		_, err := answerOf(t, recording, req)
		require.ErrorIs(t, err, tape.ErrMissing)
		require.ErrorContains(t, err, test.says)
		require.False(t, api.Retryable(err))
		var failure *api.Error
		require.ErrorAs(t, err, &failure)
		closed := recording.Close()
		require.ErrorIs(t, closed, tape.ErrMissing)
		require.ErrorIs(t, closed, tape.ErrUnused)
	}
	recording := played(t, path, tape.Options{AnyOrder: true})
	for _, req := range []*http.Request{asks("http://a.example/v2", "words"), asks("http://a.example/v1", `{"messages":[{"role":"user","text":"Hi"}],"model":"a"}`)} {
		_, err := answerOf(t, recording, req)
		require.NoError(t, err)
	}
	require.ErrorContains(t, recording.Close(), "left on the tape: 1 of 3 recordings, the first of them POST /v1")
	_, err := answerOf(t, recordedOnce(t), asks("http://a.example/v1", "{}"))
	require.ErrorContains(t, err, "all 1 recordings were played")
}

// recordedOnce is a tape whose one recording was played.
func recordedOnce(t *testing.T) *tape.Tape {
	t.Helper()
	recording := played(t, taped(t, tape.Options{Next: answers("ok")}, asks("http://a.example/v1", "{}")), tape.Options{})
	_, err := answerOf(t, recording, asks("http://a.example/v1", "{}"))
	require.NoError(t, err)
	return recording
}

// pieces is a body that returns one piece for each Read.
type pieces struct{ left []string }

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.left[0])
	p.left = p.left[1:]
	return n, nil
}

func (p *pieces) Close() error { return nil }

func TestTapeOfAResponseThatWasLeftBreaksOffThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape.json")
	next := roundTrip(func(req *http.Request) (*http.Response, error) {
		return response(req, &pieces{[]string{"one ", "two ", "three "}}), nil
	})
	recording, err := tape.Open(path, &tape.Options{Mode: tape.Record, Next: next})
	require.NoError(t, err)
	res, err := recording.RoundTrip(asks("http://a.example/", ""))
	require.NoError(t, err)
	for range 2 {
		_, err = res.Body.Read(make([]byte, 100))
		require.NoError(t, err)
	}
	require.NoError(t, res.Body.Close())
	require.NoError(t, recording.Close())

	recording = played(t, path, tape.Options{})
	got, err := answerOf(t, recording, asks("http://a.example/", ""))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, "one two ", got)
	require.NoError(t, recording.Close())
}

func TestTapeStreamsWhileItRecords(t *testing.T) {
	recording, err := tape.Open(filepath.Join(t.TempDir(), "tape.json"), &tape.Options{Mode: tape.Record, Next: roundTrip(
		func(req *http.Request) (*http.Response, error) {
			return response(req, &pieces{[]string{"a", "b"}}), nil
		})})
	require.NoError(t, err)
	res, err := recording.RoundTrip(asks("http://a.example/", ""))
	require.NoError(t, err)
	n, err := res.Body.Read(make([]byte, 100))
	require.NoError(t, err)
	require.Equal(t, 1, n, "the first piece comes before the second is read")
	require.NoError(t, recording.Close(), "also while a response is being read")
	_, err = io.ReadAll(res.Body)
	require.NoError(t, err)
	_, err = recording.RoundTrip(asks("http://a.example/", ""))
	require.ErrorIs(t, err, tape.ErrUnusable)
}

func TestTapeBoundsBodies(t *testing.T) {
	recording, err := tape.Open(filepath.Join(t.TempDir(), "tape.json"), &tape.Options{Mode: tape.Record, Next: roundTrip(
		func(req *http.Request) (*http.Response, error) { return response(req, io.NopCloser(endless{})), nil })})
	require.NoError(t, err)
	res, err := recording.RoundTrip(asks("http://a.example/", ""))
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, res.Body)
	require.ErrorIs(t, err, tape.ErrUnusable)
	_, err = recording.RoundTrip(&http.Request{URL: res.Request.URL, Body: io.NopCloser(endless{})})
	require.ErrorIs(t, err, tape.ErrUnusable)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestTapeDoesNotRecordFailures(t *testing.T) {
	broken := errors.New("connection refused")
	calls := 0
	path := taped(t, tape.Options{Next: roundTrip(func(req *http.Request) (*http.Response, error) {
		if calls++; calls == 1 {
			return answers("ok")(req)
		}
		return nil, broken
	})}, asks("http://a.example/1", ""))
	recording, err := tape.Open(path, &tape.Options{Mode: tape.Record, Next: roundTrip(func(req *http.Request) (*http.Response, error) {
		return nil, broken
	})})
	require.NoError(t, err)
	_, err = recording.RoundTrip(asks("http://a.example/", ""))
	require.ErrorIs(t, err, broken)
	require.Error(t, recording.Close())
	require.Contains(t, fileOf(t, path), "/1", "the file that was there is kept")
}

func TestTapeForRequestsAtTheSameTime(t *testing.T) {
	echo := roundTrip(func(req *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(req.Body)
		return response(req, io.NopCloser(strings.NewReader("you said "+string(body)))), err
	})
	all := func(recording *tape.Tape) {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				body := fmt.Sprintf(`{"n":%d}`, i)
				res, err := recording.Client().Do(asks("http://a.example/", body))
				if err != nil {
					t.Error(err)
					return
				}
				defer res.Body.Close()
				if got, err := io.ReadAll(res.Body); err != nil || string(got) != "you said "+body {
					t.Errorf("%s, %v", got, err)
				}
			})
		}
		wg.Wait()
	}
	var files []string
	for range 2 {
		path := filepath.Join(t.TempDir(), "tape.json")
		recording, err := tape.Open(path, &tape.Options{Mode: tape.Record, Next: echo, AnyOrder: true})
		require.NoError(t, err)
		all(recording)
		require.NoError(t, recording.Close())
		all2 := played(t, path, tape.Options{AnyOrder: true})
		all(all2)
		require.NoError(t, all2.Close())
		files = append(files, fileOf(t, path))
	}
	require.Equal(t, files[0], files[1], "in which order they came does not show")
}

func TestTapeHonoursTheContext(t *testing.T) {
	path := taped(t, tape.Options{Next: answers("one two")}, asks("http://a.example/", ""))
	recording := played(t, path, tape.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	res, err := recording.RoundTrip(asks("http://a.example/", "").WithContext(ctx))
	require.NoError(t, err)
	cancel()
	_, err = res.Body.Read(make([]byte, 1))
	require.ErrorIs(t, err, context.Canceled)
	_, err = recording.RoundTrip(asks("http://a.example/", "").WithContext(ctx))
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, res.Body.Close())
	require.NoError(t, recording.Close())
}

func TestTapeIsRecordedOnlyWhenItIsAskedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape.json")
	for _, test := range []struct{ record, ci, says string }{
		{"", "", "PLAIT_RECORD=1"}, {"0", "", "PLAIT_RECORD=1"}, {"false", "1", "PLAIT_RECORD=1"}, {"", "true", "PLAIT_RECORD=1"},
		{"1", "true", "so is CI"}, {"yes", "", "not 1 to record"}, {"1", "", ""}, {"true", "", ""},
	} {
		t.Setenv("PLAIT_RECORD", test.record)
		t.Setenv("CI", test.ci)
		recording, err := tape.Open(path, nil)
		if test.says == "" {
			require.NoError(t, err)
			require.True(t, recording.Recording())
			continue
		}
		require.ErrorIs(t, err, tape.ErrUnusable)
		require.ErrorContains(t, err, test.says)
	}
	t.Setenv("CI", "true")
	recording, err := tape.Open(path, &tape.Options{Mode: tape.Record})
	require.NoError(t, err, "who says so, records everywhere")
	require.True(t, recording.Recording())
}

func TestFileThatIsNoTape(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tape.json")
	for text, says := range map[string]string{
		"":                                 "",
		"[]":                               "",
		`{"plait_tape":2,"recordings":[]}`: "version is 2",
		`{"plait_tape":1,"tracks":[]}`:     "tracks",
		`{"recordings":[]}`:                "version is 0",
		`{"plait_tape":1,"recordings":[{"request":{"method":"GET","url":"/"},"response":{"status":0}}]}`:                         "recording 1: its status is 0",
		`{"plait_tape":1,"recordings":[{"request":{"method":"GET","url":"/"},"response":{"status":200,"body":{"base64":"!"}}}]}`: "recording 1",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := tape.Open(path, &tape.Options{Mode: tape.Play})
		require.ErrorIs(t, err, tape.ErrUnusable, text)
		require.ErrorContains(t, err, says)
	}
	_, err := tape.Open(filepath.Dir(path), &tape.Options{Mode: tape.Play})
	require.ErrorIs(t, err, tape.ErrUnusable)
	_, err = tape.Open(path, &tape.Options{Mode: "rewind"})
	require.ErrorIs(t, err, tape.ErrUnusable)
}

// failing is a test that may fail.
type failing struct {
	testing.TB
	cleanup []func()
	said    []any
}

func (f *failing) Helper()           {}
func (f *failing) Cleanup(fn func()) { f.cleanup = append(f.cleanup, fn) }
func (f *failing) Error(args ...any) { f.said = append(f.said, args...) }
func (f *failing) Fatal(args ...any) { f.said = append(f.said, args...); panic(f) }

func TestNewTapeReportsToTheTest(t *testing.T) {
	path := taped(t, tape.Options{Next: answers("ok")}, asks("http://a.example/", ""))
	f := &failing{TB: t}
	tape.New(f, path, &tape.Options{Mode: tape.Play})
	require.Empty(t, f.said)
	f.cleanup[0]()
	require.Len(t, f.said, 1)
	require.ErrorIs(t, f.said[0].(error), tape.ErrUnused)
	require.PanicsWithValue(t, f, func() { tape.New(f, path+"x", &tape.Options{Mode: tape.Play}) })
	require.Len(t, f.said, 2)
}

// tapeable reports whether requests to a path and query can be recorded as they are.
func tapeable(url string) bool {
	req, err := http.NewRequest("POST", "http://a.example"+url, nil)
	return err == nil && req.URL.Host == "a.example" && !strings.Contains(url, "REDACTED") && !strings.Contains(strings.ToLower(url), "key")
}

// FuzzTape records anything and plays it: the bytes come back, and the file can be read.
func FuzzTape(f *testing.F) {
	for _, seed := range []string{"", "{}", "data: x\n\n", "\xff", `{"a":"\u0000"}`, "\n\r\n", `"\ud800"`, "[[]]"} {
		f.Add(seed, seed, "/a?b=c")
		require.True(f, tapeable("/a?b=c"), "a seed is skipped")
	}
	f.Add("{}", "data: REDACTED\n\n", "/")
	f.Add("", "", "/%2F?a=b&a=%20c#d")
	f.Fuzz(func(t *testing.T, asked, said, url string) {
		if !tapeable(url) {
			return // an address that cannot be recorded
		}
		req, err := http.NewRequest("POST", "http://a.example"+url, strings.NewReader(asked))
		require.NoError(t, err)
		path := taped(t, tape.Options{Next: answers(said)}, req)
		recording := played(t, path, tape.Options{})
		again := req.Clone(t.Context())
		again.Body = io.NopCloser(strings.NewReader(asked))
		got, err := answerOf(t, recording, again)
		require.NoError(t, err)
		if !strings.Contains(said, "REDACTED") && !strings.Contains(fileOf(t, path), "REDACTED") {
			require.Equal(t, said, got)
		}
		require.NoError(t, recording.Close())
	})
}
