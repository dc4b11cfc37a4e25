package openai

import (
	"context"
	"errors"
	"net/http"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// server describes the server that a provider sends requests to, independent of its API. The zero value is OpenAI's
// own.
type server struct {
	// compatible is set for a server that implements OpenAI's API but is neither OpenAI's nor Azure's: llama.cpp, vLLM,
	// a gateway. Such a server has limits of its own, and does not always report what it did.
	compatible bool
}

// serverOf returns the server that send sends its requests to. It sends nothing: the request that resolves the
// address ends in outermost.
func serverOf(send post) server {
	var s server
	ctx := context.WithValue(context.Background(), looking{}, &s)

	// The request always fails. If it has no host, s stays the zero value: OpenAI.
	_ = send(ctx, "responses", nil, nil, option.WithMaxRetries(0))
	return s
}

// serverIn returns the server for a provider with these options. It ignores the environment.
func serverIn(o *Options) server {
	if o == nil || len(o.SDK) == 0 {
		return server{}
	}
	first := []option.RequestOption{option.WithEnvironmentProduction(), option.WithMiddleware(outermost)}
	client := sdk.Client{Options: append(first, o.SDK...)}
	return serverOf(client.Post)
}

// looking is the context key of a *server. For a request with it, outermost sets the *server and sends nothing.
type looking struct{}

var errLooked = errors.New("nothing was sent: the address is known")

// look sets s from the address of a request. Azure is recognized by its hosts and, behind a gateway, by the query that
// azure.WithEndpoint adds.
func (s *server) look(req *http.Request) {
	host := req.URL.Hostname()
	own := host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com") ||
		strings.HasSuffix(host, ".azure.com") || strings.HasSuffix(host, ".azure.us") ||
		strings.HasSuffix(host, ".azure.cn") || req.URL.Query().Has("api-version")
	s.compatible = !own
}
