package providers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	anthropicopt "github.com/anthropics/anthropic-sdk-go/option"
	openaiopt "github.com/openai/openai-go/v3/option"
	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/anthropic"
	"github.com/plait-dev/plait/api/apitest/fake"
	"github.com/plait-dev/plait/api/batch"
	"github.com/plait-dev/plait/api/gemini"
	"github.com/plait-dev/plait/api/openai"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/pattern"
)

// inMemory is the transport of a client whose server is a handler, so that time can be that of a test.
type inMemory struct {
	server *fake.API
	// change, if set, changes the responses. An error breaks the connection.
	change func(req *http.Request, body []byte) ([]byte, error)
}

func (m *inMemory) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil {
		req.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	m.server.ServeHTTP(w, req)
	res := w.Result()
	if m.change != nil {
		body, err := m.change(req, w.Body.Bytes())
		if err != nil {
			return nil, err
		}
		res.Body = io.NopCloser(bytes.NewReader(body))
	}
	return res, nil
}

// inBatches returns a model of the named API whose requests are sent in batches.
func inBatches(name string, m *inMemory, b *batch.Batches) api.Provider {
	client := &http.Client{Transport: m}
	sdk := []openaiopt.RequestOption{openaiopt.WithAPIKey("none"), openaiopt.WithBaseURL("http://fake.test/v1"), openaiopt.WithHTTPClient(client)}
	switch name {
	case "anthropic":
		return anthropic.New("claude-test", &anthropic.Options{Batches: b, SDK: []anthropicopt.RequestOption{
			anthropicopt.WithoutEnvironmentDefaults(), anthropicopt.WithAPIKey("none"), anthropicopt.WithBaseURL("http://fake.test"), anthropicopt.WithHTTPClient(client),
		}})
	case "openai-chat":
		return openai.NewChat("gpt-test", &openai.Options{Batches: b, SDK: sdk})
	case "openai-responses":
		return openai.NewResponses("gpt-test", &openai.Options{Batches: b, SDK: sdk})
	}
	return gemini.New("gemini-3-test", &gemini.Options{Batches: b, SDK: &genai.ClientConfig{
		APIKey: "none", Backend: genai.BackendGeminiAPI, HTTPClient: client, HTTPOptions: genai.HTTPOptions{BaseURL: "http://fake.test"},
	}})
}

// inEach runs a test for each API, with time of its own.
func inEach(t *testing.T, test func(t *testing.T, p provider)) {
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, p) }) })
	}
}

func TestRunsWithToolsTakeABatchForEachTurnAndOutliveTheirProcess(t *testing.T) {
	inEach(t, func(t *testing.T, p provider) {
		weather := executor.Func("get_weather", "Current weather.", func(context.Context, struct{}) (string, error) { return "snow", nil })
		call := content.ToolUse{ID: "toolu_1", Name: "get_weather", Input: `{}`}
		if p.name == "gemini" {
			call.Extra = content.Extra{API: "gemini", JSON: `{"thoughtSignature":"c2ln"}`}
		}
		server := p.fake(p.says(call), p.says(call), p.says(content.Text{Text: "It snows."}), p.says(content.Text{Text: "It snows."}))
		m := &inMemory{server: server}
		path := filepath.Join(t.TempDir(), "nightly.batch")

		ended := 0
		for process := range 3 {
			b, err := batch.Open(path, nil)
			require.NoError(t, err)
			agent := executor.Agent{
				Provider: inBatches(p.name, m, b), Tools: []dag.Tool{weather},
				Prices: api.Prices{"claude-fake": {Input: 2e6, Output: 2e6}, "gpt-fake": {Input: 2e6, Output: 2e6}, "gemini-fake": {Input: 2e6, Output: 2e6}}.Times(0.5),
			}
			ctx, cancel := context.WithTimeout(t.Context(), []time.Duration{30 * time.Second, 90 * time.Second, time.Hour}[process])
			cities := slices.Values([]string{"Oslo", "Rome"})
			for d, err := range executor.Each(ctx, 10, cities, func(ctx context.Context, city string) (dag.DAG, error) {
				return agent.Run(ctx, dag.New().User("Weather in "+city+"?"))
			}) {
				if process < 2 {
					require.ErrorIs(t, err, context.DeadlineExceeded)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, "It snows.", d.Text())
				run, _ := d.LastRun()
				require.True(t, run.Stop.CostKnown, "%+v", run)
				require.InDelta(t, run.Stop.Usage.Total(), run.Stop.Cost, 1e-9)
				ended++
			}
			cancel()
			require.NoError(t, b.Close())
		}
		require.Equal(t, 2, ended)
		require.Equal(t, 2, server.Batches())
		require.Len(t, server.Bodies(), 4, "no request is made twice")
		require.Empty(t, server.Refused())
	})
}

// ask sends questions at the same time and returns their errors, in the order of the questions.
func ask(t *testing.T, model api.Provider, questions ...string) (errs []error) {
	client := api.NewClient(model, &api.ClientOptions{Attempts: 1})
	for _, err := range executor.Each(t.Context(), 10, slices.Values(questions), func(ctx context.Context, q string) (api.Response, error) {
		return client.Send(ctx, api.Request{Messages: []content.Message{{Role: content.User, Blocks: content.Words(q)}}})
	}) {
		errs = append(errs, err)
	}
	return errs
}

func TestAFakeAnswersABatchInTheOrderOfItsRequestsOrByRequest(t *testing.T) {
	inEach(t, func(t *testing.T, p provider) {
		number := pattern.Of(`Question [0-9]+`)
		byRequest := fake.Func(func(request []byte) fake.Reply {
			return p.says(content.Text{Text: "Answer to " + string(number().Find(request))})
		}).Always()
		server := p.fake(p.says(content.Text{Text: "First."}), p.says(content.Text{Text: "Second."}), byRequest)
		b, err := batch.Open("", nil)
		require.NoError(t, err)
		client := api.NewClient(inBatches(p.name, &inMemory{server: server}, b), nil)

		var answers []string
		questions := slices.Values([]int{0, 1, 2, 3})
		for answer, err := range executor.Each(t.Context(), 10, questions, func(ctx context.Context, q int) (api.Response, error) {
			time.Sleep(time.Duration(q) * time.Millisecond) // all are in one batch, in this order
			words := content.Words(fmt.Sprint("Question ", q))
			return client.Send(ctx, api.Request{Messages: []content.Message{{Role: content.User, Blocks: words}}})
		}) {
			require.NoError(t, err)
			answers = append(answers, answer.Blocks.Text())
		}
		require.Equal(t, []string{"First.", "Second.", "Answer to Question 2", "Answer to Question 3"}, answers)
		require.Equal(t, 1, server.Batches())
	})
}

func TestRequestsThatFailInABatchHaveTheirKind(t *testing.T) {
	inEach(t, func(t *testing.T, p provider) {
		server := p.fake(p.fails(400), p.says(content.Text{Text: "Yes."}), fake.Reply{Batch: "expired"}, fake.Reply{Batch: "canceled"})
		b, err := batch.Open("", nil)
		require.NoError(t, err)
		errs := ask(t, inBatches(p.name, &inMemory{server: server}, b), "1", "2", "3", "4")
		for _, kind := range []error{api.ErrInvalidRequest, batch.ErrExpired, batch.ErrCancelled, nil} {
			if p.name == "gemini" && kind != nil && kind != api.ErrInvalidRequest {
				continue // a batch of Gemini expires as a whole
			}
			found := slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, kind) })
			require.True(t, found, "%v in %v", kind, errs)
		}
		require.Empty(t, server.Refused())
	})
}

// TestRequestsOfABatchThatDidNotEndByItselfAreNotLost changes the state of a batch.
func TestRequestsOfABatchThatDidNotEndByItselfAreNotLost(t *testing.T) {
	for state, kind := range map[string]error{
		`"expired"`: batch.ErrExpired, `"cancelled"`: batch.ErrCancelled, `"failed","errors":{"data":[{"message":"Bad line."}]}`: api.ErrInvalidRequest, `"new"`: api.ErrProtocol,
	} {
		inEach(t, func(t *testing.T, p provider) {
			ended := map[string]string{"openai-chat": `"completed"`, "openai-responses": `"completed"`, "gemini": `"BATCH_STATE_SUCCEEDED"`}[p.name]
			if ended == "" {
				return // each request of Anthropic has a result of its own
			}
			if p.name == "gemini" {
				state = strings.ToUpper(`"BATCH_STATE_` + state[1:])
				state, _, _ = strings.Cut(state, ",")
			}
			yes := p.says(content.Text{Text: "Yes."})
			m := &inMemory{server: p.fake(yes, yes)}
			m.change = func(req *http.Request, body []byte) ([]byte, error) {
				if strings.HasSuffix(req.URL.Path, "/content") && !strings.Contains(req.URL.Path, "err-") {
					first, _, _ := strings.Cut(string(body), "\n") // the second request was not reached
					return []byte(first), nil
				}
				return []byte(strings.Replace(string(body), ended, state, 1)), nil
			}
			b, err := batch.Open("", nil)
			require.NoError(t, err)
			errs := ask(t, inBatches(p.name, m, b), "1", "2")
			if kind != api.ErrProtocol && p.name != "gemini" {
				require.Contains(t, errs, error(nil))
				errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
				require.Len(t, errs, 1)
			}
			for _, err := range errs {
				if p.name == "gemini" && kind == api.ErrInvalidRequest {
					kind = api.ErrServer // the state alone has no reason
				}
				require.ErrorIs(t, err, kind)
			}
		})
	}
}

func TestBrokenResultsOfABatchAreErrorsWithoutASecondRequest(t *testing.T) {
	keys := regexp.MustCompile(`"custom_id":"[^"]*"`)
	for name, c := range map[string]struct {
		change func(string) string
		kinds  []error
	}{
		"cut":         {func(s string) string { return s[:len(s)-len(s)/3] }, []error{api.ErrCut, api.ErrProtocol}},
		"wrong IDs":   {func(s string) string { return keys.ReplaceAllString(s, `"custom_id":"x"`) }, []error{batch.ErrNoResult}},
		"not JSON":    {func(s string) string { return "oops\n" + s }, []error{api.ErrProtocol}},
		"other types": {func(s string) string { return keys.ReplaceAllString(s, `"custom_id":[1]`) }, []error{api.ErrProtocol}},
		"no body":     {func(string) string { return "" }, []error{batch.ErrNoResult, api.ErrProtocol}},
	} {
		inEach(t, func(t *testing.T, p provider) {
			yes := p.says(content.Text{Text: "Yes."})
			m := &inMemory{server: p.fake(yes, yes)}
			change := func(req *http.Request, body []byte) ([]byte, error) {
				results := strings.HasSuffix(req.URL.Path, "/results") || strings.HasSuffix(req.URL.Path, "/content") && !strings.Contains(req.URL.Path, "err-") || strings.Contains(string(body), "inlinedResponses")
				if results {
					return []byte(c.change(string(body))), nil
				}
				return body, nil
			}
			m.change = change
			b, err := batch.Open("", nil)
			require.NoError(t, err)
			model := inBatches(p.name, m, b)
			for i, err := range ask(t, model, "1", "2") {
				if p.name == "gemini" && (name == "wrong IDs" || name == "other types") {
					require.NoError(t, err, "results are in the order of the requests")
					continue
				}
				known := slices.ContainsFunc(c.kinds, func(kind error) bool { return errors.Is(err, kind) })
				require.True(t, known, "%s: request %d: %v", name, i, err)
			}
			require.Equal(t, 1, m.server.Batches())

			// Lost results are not looked for again in the same process.
			m.change = nil
			if c.kinds[0] != batch.ErrNoResult || p.name == "gemini" {
				for _, err := range ask(t, model, "1", "2") {
					if name == "wrong IDs" || name == "other types" {
						break // the first responses were used up, so these are new requests
					}
					require.NoError(t, err)
				}
			}
			require.LessOrEqual(t, m.server.Batches(), 2)
		})
	}
}

func TestAConnectionThatBreaksWhileABatchIsCreatedLeavesADoubt(t *testing.T) {
	inEach(t, func(t *testing.T, p provider) {
		m := &inMemory{server: p.fake(p.says(content.Text{Text: "Yes."}))}
		m.change = func(req *http.Request, body []byte) ([]byte, error) {
			if req.Method == http.MethodPost && !strings.HasSuffix(req.URL.Path, "/files") {
				return nil, errors.New("connection reset: key none")
			}
			return body, nil
		}
		b, err := batch.Open("", nil)
		require.NoError(t, err)
		model := inBatches(p.name, m, b)
		err = ask(t, model, "1")[0]
		require.ErrorIs(t, err, batch.ErrInDoubt)
		require.False(t, api.Retryable(err))

		m.change = nil
		id := map[string]string{"anthropic": "msgbatch_1", "gemini": "batches/1"}[p.name]
		if id == "" {
			id = "batch_1"
		}
		require.NoError(t, b.Resolve(id))
		require.NoError(t, ask(t, model, "1")[0])
		require.Equal(t, 1, m.server.Batches())
	})
}
