package providertest

import (
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	json "github.com/goccy/go-json/v2"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/testkit/fixture"
)

// Cassette is a file of recorded traffic.
type Cassette struct {
	Name         string
	API          string     `json:"api"`
	HistoryLinks [][2]int   `json:"history_links"`
	Exchanges    []Exchange `json:"exchanges"`
}

// Exchange is a request and its response, with the recorder's facts about them.
type Exchange struct {
	API     string `json:"api"`
	Request *struct {
		Path string `json:"path"`
		Body string `json:"body"`
	} `json:"request"`
	Response struct {
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	} `json:"response"`
	Derived struct {
		Text       string `json:"text"`
		ToolCalls  []any  `json:"tool_calls"`
		Signatures int    `json:"n_signatures"`
		Stop       string `json:"stop"`
		ResponseID string `json:"response_id"`
	} `json:"derived"`
}

// Answered returns an exchange with a successful response.
func Answered(body string) Exchange {
	var e Exchange
	e.Response.Status, e.Response.Body = http.StatusOK, body
	return e
}

// Body returns the recorded bytes of the response.
func (e Exchange) Body(t testing.TB) []byte {
	t.Helper()
	if coded, ok := strings.CutPrefix(e.Response.Body, "base64:"); ok {
		b, err := base64.StdEncoding.DecodeString(coded)
		require.NoError(t, err)
		return b
	}
	return []byte(e.Response.Body)
}

// Streamed reports whether the response is a stream of events.
func (e Exchange) Streamed() bool {
	return strings.HasPrefix(e.Response.Body, "event:") || strings.HasPrefix(e.Response.Body, "data:") ||
		strings.Contains(e.Response.Headers["content-type"], "event-stream")
}

// Header returns the recorded header, without the headers about the recorded connection.
func (e Exchange) Header() http.Header {
	h := http.Header{}
	for name, value := range e.Response.Headers {
		switch strings.ToLower(name) {
		case "content-encoding", "content-length", "transfer-encoding", "connection":
		default:
			h.Set(name, value)
		}
	}
	if e.Streamed() {
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
	} else if h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	return h
}

// Cassettes reads every recorded file in the folder. It also reads the exchanges with one API from the cross-provider
// files; name is the API's name there ("messages", "chat", "responses", "generateContent").
func Cassettes(t testing.TB, folder, name string) []Cassette {
	t.Helper()
	all := AllCassettes(t, folder)
	for _, c := range AllCassettes(t, crossProvider) {
		all = append(all, c.only(name))
	}
	return all
}

const crossProvider = "cross-provider"

// AllCassettes reads every recorded file in the folders matching the pattern.
func AllCassettes(t testing.TB, folders string) []Cassette {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(fixture.Path(t, "cassettes"), folders, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	var all []Cassette
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		c := Cassette{Name: strings.TrimSuffix(filepath.Base(path), ".json")}
		require.NoError(t, json.Unmarshal(data, &c, jsonx.Lenient), path)
		all = append(all, c)
	}
	return all
}

// only returns the exchanges with one API from a file with several.
func (c Cassette) only(name string) Cassette {
	kept := Cassette{Name: crossProvider + "/" + c.Name}
	for _, e := range c.Exchanges {
		if strings.Contains(e.API, name) {
			kept.Exchanges = append(kept.Exchanges, e)
		}
	}
	return kept
}

// Tally counts how many of a group of tests pass.
type Tally struct {
	T             *testing.T
	What          string
	passed, total int
}

// Run runs a test of the group.
func (c *Tally) Run(name string, test func(t *testing.T)) {
	c.total++
	if c.T.Run(name, test) {
		c.passed++
	}
}

// Report logs the count. A group without a test fails.
func (c *Tally) Report() {
	c.T.Helper()
	require.NotZero(c.T, c.total)
	c.T.Logf("%s: %d of %d pass", c.What, c.passed, c.total)
}
