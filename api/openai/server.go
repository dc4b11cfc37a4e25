package openai

import (
	"context"
	"errors"
	"net/http"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// server is what is known of the server that a provider asks, beside the API that it speaks. The zero value is OpenAI's own.
type server struct {
	// compatible is set for a server that speaks OpenAI's API but is neither OpenAI's nor Azure's: llama.cpp, vLLM, a gateway. It
	// has limits of its own, and does not always report what it did.
	compatible bool
}

// serverOf returns the server that a client sends its requests to. It asks nobody: the request that finds out ends in outermost.
func serverOf(client sdk.Client) server {
	var s server
	ctx := context.WithValue(context.Background(), looking{}, &s)
	_ = client.Post(ctx, "responses", nil, nil, option.WithMaxRetries(0)) // it always fails; without a host, OpenAI's rules hold
	return s
}

// serverIn returns the server that a provider with the options asks, whatever the environment says.
func serverIn(o *Options) server {
	if o == nil || len(o.SDK) == 0 {
		return server{}
	}
	first := []option.RequestOption{option.WithEnvironmentProduction(), option.WithMiddleware(outermost)}
	return serverOf(sdk.Client{Options: append(first, o.SDK...)})
}

// looking is the key of the *server that outermost fills in, in place of sending the request.
type looking struct{}

var errLooked = errors.New("nothing was sent: only the address was asked for")

// look tells the server by the address of a request. Azure's are told by their hosts and, behind a gateway, by the query that
// azure.WithEndpoint adds.
func (s *server) look(req *http.Request) {
	host := req.URL.Hostname()
	own := host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com") || strings.HasSuffix(host, ".azure.com") ||
		strings.HasSuffix(host, ".azure.us") || strings.HasSuffix(host, ".azure.cn") || req.URL.Query().Has("api-version")
	s.compatible = !own
}
