package openai

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/option"
	"github.com/plait-dev/plait/internal/servers"
)

// server describes the server behind a provider, independent of its API. The zero value is OpenAI's own.
type server struct {
	// compatible is set for a server that implements OpenAI's API but is neither OpenAI's nor Azure's: llama.cpp, vLLM,
	// a gateway. Such a server has limits of its own, and may not report everything it did.
	compatible bool
	// azure is set for azure.WithEndpoint, which adds a query to the address, also if it is a gateway's.
	azure bool
	// rules are how it differs; nil is not at all.
	rules *servers.Rules
	// misled is set if Options.Server names a server, but the base URL is OpenAI's.
	misled bool
}

// named sets the server named by the options. The address need not show it.
func (s *server) named(o *Options, looked bool) {
	if o == nil || o.Server == "" {
		return
	}
	s.misled = looked && !s.compatible
	s.rules, _ = servers.Of(o.Server) // resolve checks it
	s.compatible = true
}

// differs returns how the server differs.
func (s server) differs() *servers.Rules {
	if s.rules == nil {
		return &servers.Rules{}
	}
	return s.rules
}

// check returns an error if requests would go to the wrong server.
func (s server) check(name string) error {
	if s.misled {
		return badServer(name, "the base URL is OpenAI's own, and not that of %s: set it in Options.SDK", s.rules.Name)
	}
	return nil
}

// serverOf returns the server that send would reach, or the one named by the options. It sends nothing: the request for
// resolving the address ends in outermost.
func serverOf(send sender, o *Options) server {
	var s server
	ctx := context.WithValue(context.Background(), looking{}, &s)

	// The request always fails. If it has no host, s stays the zero value: OpenAI.
	var res *http.Response
	_ = send(ctx, &res, option.WithMaxRetries(0))
	s.named(o, true)
	return s
}

// serverIn returns the server for a provider with these options. It ignores the environment.
func serverIn(o *Options) server {
	if o == nil || len(o.SDK) == 0 {
		var s server
		s.named(o, false)
		return s
	}
	return serverOf(senderOf(o.SDK), o)
}

// looking is the context key of a *server. For a request with it, outermost sets the *server and sends nothing.
type looking struct{}

var errLooked = errors.New("nothing was sent: the address is known")

// look sets s from the address of a request. Azure is recognized by its hosts and, behind a gateway, by the query of
// azure.WithEndpoint.
func (s *server) look(req *http.Request) {
	host := req.URL.Hostname()
	s.azure = req.URL.Query().Has("api-version")
	own := host == "api.openai.com" || strings.HasSuffix(host, ".api.openai.com") ||
		strings.HasSuffix(host, ".azure.com") || strings.HasSuffix(host, ".azure.us") ||
		strings.HasSuffix(host, ".azure.cn") || s.azure
	s.compatible = !own
	s.rules = servers.At(req.URL)
}
