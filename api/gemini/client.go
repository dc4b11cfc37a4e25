package gemini

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"google.golang.org/genai"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/internal/wire"
)

// connect makes a client of the SDK whose requests a carrier takes over. The SDK is asked twice: first for the HTTP client that it
// would use, which knows the credentials, and then for a client that uses the carrier around that one.
func connect(ctx context.Context, config *genai.ClientConfig) (*genai.Client, error) {
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
	client, err := genai.NewClient(ctx, &c)
	if err != nil {
		return nil, refusedConfig(err)
	}
	return client, nil
}

// refusedConfig is the error for a configuration that the SDK refuses. The SDK's words end in the whole configuration, its key
// included, which must not get into a log.
func refusedConfig(err error) error {
	e := &api.Error{Kind: api.ErrInvalidRequest, API: API, Err: err}
	words, _, cut := strings.Cut(err.Error(), ". ClientConfig:")
	if cut {
		e.Err = errors.New(words)
	}
	for _, sign := range []string{"api key is required", "project/location or API key", "credentials: ", "quota project"} {
		if strings.Contains(words, sign) {
			e.Kind = api.ErrAuth
		}
	}
	return e
}

// carrier is the transport of the SDK's HTTP client. It sends our bytes in the place of the SDK's, by the HTTP client that the user
// gave or the SDK made, keeps the response for us, and tells the SDK that all went well. So address and authorization are the
// SDK's, and what is said is ours, in both directions.
type carrier struct{ client *http.Client }

// sent is one request on its way through the SDK. It is the value of the key sending in the request's context.
type sent struct {
	ctx     context.Context // of the request, for as long as its answer is read
	body    *wire.Parts
	header  http.Header
	streams bool

	made bool
	res  *http.Response
	err  error
}

type sending struct{}

var errNotOurs = errors.New("a request that was not asked for")

// RoundTrip sends the request with our body, once.
func (c carrier) RoundTrip(req *http.Request) (*http.Response, error) {
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

func (c carrier) send(req *http.Request, s *sent) (*http.Response, error) {
	out, err := http.NewRequestWithContext(s.ctx, req.Method, req.URL.String(), nil)
	if err != nil {
		return nil, err
	}
	out.Header = req.Header.Clone()
	for name, values := range s.header {
		out.Header[http.CanonicalHeaderKey(name)] = values
	}
	s.body.Send(out)
	return c.client.Do(out)
}

// nothing is a response for the SDK, which says nothing.
func nothing(req *http.Request) *http.Response {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{}, Body: http.NoBody,
	}
}

// post lets the SDK make a request to the model, and returns the response to it. The caller closes the response.
func (s *sent) post(client *genai.Client, model string) (*http.Response, error) {
	ctx := context.WithValue(s.ctx, sending{}, s)
	var err error
	if s.streams {
		for _, err = range client.Models.GenerateContentStream(ctx, model, nil, nil) {
			if err != nil {
				break
			}
		}
	} else {
		_, err = client.Models.GenerateContent(ctx, model, nil, nil)
	}
	switch {
	case s.res != nil:
		return s.res, nil
	case s.err != nil:
		return nil, s.err
	case err == nil:
		err = errors.New("the SDK made no request")
	}
	return nil, &api.Error{Kind: api.ErrInvalidRequest, API: API, Err: err}
}
