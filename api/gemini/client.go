package gemini

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/internal/wire"
)

// client holds the request methods of the SDK's client. A field with the client itself would make programs larger: if a
// program calls methods by reflection, the linker keeps every method of every service of the SDK.
type client struct {
	whole, stream, count func(ctx context.Context, model string) error // a request without content, see carrier
	// The same for batches: create makes one, and job asks for the named one.
	create, job func(ctx context.Context, name string) error
	vertex      bool
	timeout     *time.Duration // of a request; nil is none
}

// connect returns a client of the SDK with a carrier for its requests. It makes two clients: the first for its HTTP
// client with the credentials, and the second with a carrier around that HTTP client.
func connect(ctx context.Context, config *genai.ClientConfig) (*client, error) {
	var c genai.ClientConfig
	if config != nil {
		c = *config
	}
	c.HTTPOptions.RetryOptions = nil // api.Client retries

	first, err := genai.NewClient(ctx, &c)
	if err != nil {
		return nil, refusedConfig(err)
	}

	c = first.ClientConfig()
	c.HTTPClient = &http.Client{Transport: carrier{c.HTTPClient}, Timeout: c.HTTPClient.Timeout}
	c.Credentials = nil // the HTTP client has them
	if c.Backend == genai.BackendGeminiAPI {
		c.Project, c.Location = "", "" // from the environment; the SDK refuses them in a configuration
	}

	second, err := genai.NewClient(ctx, &c)
	if err != nil {
		return nil, refusedConfig(err)
	}
	return &client{
		timeout: second.ClientConfig().HTTPOptions.Timeout,
		whole: func(ctx context.Context, model string) error {
			_, err := second.Models.GenerateContent(ctx, model, nil, nil)
			return err
		},
		stream: func(ctx context.Context, model string) error {
			for _, err := range second.Models.GenerateContentStream(ctx, model, nil, nil) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		count: func(ctx context.Context, model string) error {
			_, err := second.Models.CountTokens(ctx, model, nil, nil)
			return err
		},
		create: func(ctx context.Context, model string) error {
			_, err := second.Batches.Create(ctx, model, &genai.BatchJobSource{FileName: "none"}, nil)
			return err
		},
		job: func(ctx context.Context, name string) error {
			_, err := second.Batches.Get(ctx, name, nil)
			return err
		},
		vertex: c.Backend != genai.BackendGeminiAPI,
	}, nil
}

// refusedConfig returns the error for a configuration refused by the SDK. The SDK's text ends with the whole
// configuration. It is cut off, because the key in it must not be logged.
func refusedConfig(err error) error {
	e := &api.Error{Kind: api.ErrInvalidRequest, API: API, Err: err}
	message, _, cut := strings.Cut(err.Error(), ". ClientConfig:")
	if cut {
		e.Err = errors.New(message)
	}

	for _, sign := range []string{"api key is required", "project/location or API key", "credentials: ",
		"quota project"} {
		if strings.Contains(message, sign) {
			e.Kind = api.ErrAuth
		}
	}
	return e
}

// carrier is the transport of the SDK's HTTP client. For each request of the SDK, it
//
//   - replaces the body,
//   - sends the request with the user's HTTP client, or the one made by the SDK,
//   - keeps the response, and
//   - returns an empty success to the SDK.
//
// So the SDK provides the address and the authorization, and Plait reads and writes the bytes.
type carrier struct{ client *http.Client }

// sent is one request on its way through the SDK. It is the value of the key sending in the request's context.
type sent struct {
	// The context of the request. It lasts until its response is read.
	ctx     context.Context
	body    *wire.Parts
	header  http.Header
	streams bool
	counts  bool   // of tokens, in place of a response
	batches bool   // of the creation of a batch
	job     string // the name of a batch; then there is no body

	// Set by RoundTrip. The SDK may send a request once.
	made bool
	res  *http.Response
	err  error
}

// sending is the key of a sent in a context.
type sending struct{}

var errNotOurs = errors.New("the SDK sent a request of its own")

// RoundTrip sends the body of a sent, once.
func (c carrier) RoundTrip(req *http.Request) (*http.Response, error) {
	// An http.RoundTripper must close the body, also if it returns an error.
	if req.Body != nil {
		req.Body.Close()
	}

	s, ok := req.Context().Value(sending{}).(*sent)
	if !ok || s.made {
		return nil, errNotOurs
	}

	s.made = true
	s.res, s.err = c.send(req, s)
	if s.err != nil {
		return nil, s.err
	}

	return nothing(req), nil
}

// send sends the request of the SDK with the body and header of s.
func (c carrier) send(req *http.Request, s *sent) (*http.Response, error) {
	out, err := http.NewRequestWithContext(s.ctx, req.Method, req.URL.String(), nil)
	if err != nil {
		return nil, err
	}

	out.Header = req.Header.Clone()
	for name, values := range s.header {
		out.Header[http.CanonicalHeaderKey(name)] = values
	}
	if err := wire.Ready(out); err != nil {
		return nil, err
	}
	if s.body != nil {
		s.body.Send(out)
	}
	return c.client.Do(out)
}

// nothing returns the empty response for the SDK.
func nothing(req *http.Request) *http.Response {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{}, Body: http.NoBody,
	}
}

// post makes the SDK send a request to the model, and returns the response. The caller closes the response.
func (s *sent) post(c *client, model string) (*http.Response, error) {
	ctx := context.WithValue(s.ctx, sending{}, s)
	request, name := c.whole, model
	switch {
	case s.job != "":
		request, name = c.job, s.job
	case s.batches:
		request = c.create
	case s.counts:
		request = c.count
	case s.streams:
		request = c.stream
	}
	err := request(ctx, name)

	// After a response, the SDK's own error does not matter: the SDK saw an empty one.
	switch {
	case s.res != nil:
		return s.res, nil
	case s.err != nil:
		return nil, s.err
	case err == nil:
		err = errors.New("the SDK refused the request without sending it")
	}
	return nil, &api.Error{Kind: api.ErrInvalidRequest, API: API, Err: err}
}
