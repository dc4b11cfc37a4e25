package mcp_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/executor/mcp"
	"github.com/plait-dev/plait/store"
)

// service is several instances of an MCP server behind one address. Each request goes to the next instance.
type service struct {
	address string

	mu        sync.Mutex // guards the fields below
	instances []*httptest.Server
	served    int      // the number of requests
	last      string   // the address of the instance that got the last request
	sent      []string // the addresses of the instances that executed the tool, in order
}

func newService(t *testing.T) *service {
	s := &service{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.served++
		s.last = s.instances[s.served%len(s.instances)].URL
		to, _ := url.Parse(s.last)
		r.SetURL(to)
	}}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	s.address = front.URL
	return s
}

// start adds an instance whose agent needs approval to send. db may be nil.
func (s *service) start(t *testing.T, model *apitest.Script, db *store.Store) {
	instance := httptest.NewUnstartedServer(nil)
	send := executor.Func("send", "Sends.", func(context.Context, struct{}) (string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent = append(s.sent, instance.URL)
		return "sent", nil
	})
	server := sdk.NewServer(&sdk.Implementation{Name: "s", Version: "v1"}, nil)
	mcp.AddAgent(server, mcp.AgentTool{Name: "ask", Description: "Answers.", Store: db, Agent: executor.Agent{
		Provider: model, Tools: []dag.Tool{send}, Hooks: []executor.Hook{executor.RequireApproval("send")},
	}})

	instance.Config.Handler = sdk.NewStreamableHTTPHandler(
		func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true})
	instance.Start()
	t.Cleanup(instance.Close)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instances = append(s.instances, instance)
}

// killLast ends the instance that got the last request, and all that it remembers.
func (s *service) killLast() {
	s.mu.Lock()
	at := slices.IndexFunc(s.instances, func(i *httptest.Server) bool { return i.URL == s.last })
	instance := s.instances[at]
	s.instances = slices.Delete(s.instances, at, at+1)
	s.mu.Unlock()
	instance.CloseClientConnections()
	instance.Close()
}

// client connects to the service. Its user approves everything, after asked was called.
func (s *service) client(t *testing.T, network http.RoundTripper, asked func()) *sdk.ClientSession {
	client := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "v1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			asked()
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
		},
	})
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: s.address, HTTPClient: &http.Client{Transport: network},
	}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

func twoApprovals() *apitest.Script {
	use := apitest.Use("send", nil)
	return apitest.NewScript(apitest.Call(use), apitest.Call(use), apitest.Say("Done."))
}

func TestAnswerReachesAnotherInstance(t *testing.T) {
	for name, arguments := range map[string]map[string]any{
		"a call by itself":     {"message": "Tell Ada."},
		"a named conversation": {"message": "Tell Ada.", "conversation": "a/1"},
	} {
		t.Run(name, func(t *testing.T) {
			// Each instance has a store of its own on the one database.
			model, driver := twoApprovals(), store.Memory()
			s := newService(t)
			s.start(t, model, store.New(driver))
			s.start(t, model, store.New(driver))

			// While the user is asked, the instance that paused is killed, and another one takes its place.
			var killed []string
			session := s.client(t, nil, func() {
				killed = append(killed, s.last)
				s.killLast()
				s.start(t, model, store.New(driver))
			})

			_, result := call(t, session, "ask", arguments)
			require.Equal(t, "Done.", result.StructuredContent.(map[string]any)["text"])
			require.Len(t, s.sent, 2, "each call is executed once")
			require.Len(t, killed, 2)
			require.NotContains(t, killed[:1], s.sent[0])
			require.NotContains(t, killed, s.sent[1])

			for key := range store.New(driver).Conversations(t.Context(), "mcp.paused/") {
				require.Fail(t, "a run that was resumed is still kept", key)
			}
		})
	}
}

// repeating sends each answer of a user four times at once, and returns the response that is no refusal.
type repeating struct {
	t       *testing.T
	refused atomic.Int32
}

func (r *repeating) RoundTrip(request *http.Request) (*http.Response, error) {
	var body []byte
	if request.Body != nil {
		body, _ = io.ReadAll(request.Body)
	}
	if !bytes.Contains(body, []byte("requestState")) {
		request.Body = io.NopCloser(bytes.NewReader(body))
		return http.DefaultTransport.RoundTrip(request)
	}

	var calls sync.WaitGroup
	accepted := make(chan *http.Response, 4)
	for range cap(accepted) {
		calls.Go(func() {
			again := request.Clone(request.Context())
			again.Body = io.NopCloser(bytes.NewReader(body))
			response, err := http.DefaultTransport.RoundTrip(again)
			if !assert.NoError(r.t, err) {
				return
			}
			text, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if bytes.Contains(text, []byte("answered before")) {
				r.refused.Add(1)
				return
			}
			response.Body = io.NopCloser(bytes.NewReader(text))
			accepted <- response
		})
	}
	calls.Wait()
	return <-accepted, nil
}

func TestAnswerCountsOnceAtAllInstances(t *testing.T) {
	model, driver := twoApprovals(), store.Memory()
	s := newService(t)
	s.start(t, model, store.New(driver))
	s.start(t, model, store.New(driver))

	network := &repeating{t: t}
	session := s.client(t, network, func() {})
	_, result := call(t, session, "ask", map[string]any{"message": "Tell Ada."})
	require.Equal(t, "Done.", result.StructuredContent.(map[string]any)["text"])
	require.EqualValues(t, 6, network.refused.Load(), "of two answers, each sent four times")
	require.Len(t, s.sent, 2)
}

func TestAnswerNeedsTheStoreOfTheInstanceThatAsked(t *testing.T) {
	model := twoApprovals()
	s := newService(t)
	s.start(t, model, nil)
	session := s.client(t, nil, func() {
		s.killLast()
		s.start(t, model, nil)
	})
	text, result := call(t, session, "ask", map[string]any{"message": "Tell Ada."})
	require.True(t, result.IsError)
	require.Contains(t, text, "call the tool again")
	require.Empty(t, s.sent)
}

func TestConversationThatWasContinuedIsNotResumed(t *testing.T) {
	model := apitest.NewScript(apitest.Call(apitest.Use("send", nil)), apitest.Say("Never mind."))
	db := store.New(store.Memory())
	s := newService(t)
	s.start(t, model, db)
	session := s.client(t, nil, func() {
		c, err := db.Conversation(t.Context(), "a/1")
		assert.NoError(t, err)
		assert.NoError(t, c.Append(t.Context(), c.DAG().Custom("test.note", "meanwhile")))
	})
	text, result := call(t, session, "ask", map[string]any{"message": "Tell Ada.", "conversation": "a/1"})
	require.True(t, result.IsError)
	require.Contains(t, text, "continued elsewhere")
	require.Empty(t, s.sent)
}

func TestClientOfAnOlderProtocolCannotBeAskedWithoutASession(t *testing.T) {
	s := newService(t)
	s.start(t, twoApprovals(), store.New(store.Memory()))
	client := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "v1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
		},
	})
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: s.address},
		&sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	_, result := call(t, session, "ask", map[string]any{"message": "Tell Ada."})
	require.Equal(t, "Done.", result.StructuredContent.(map[string]any)["text"])
	require.Empty(t, s.sent, "the calls are declined")
}
