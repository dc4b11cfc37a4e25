package openai

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

// sender sends a request with the options of a provider and those given here, and sets res to the response.
type sender func(ctx context.Context, res **http.Response, options ...option.RequestOption) error

// senderOf returns the sender with these options.
//
// Of the SDK it uses one method of one service; outermost gives each request its own method and path. The SDK's client
// has all services of OpenAI: with it, the first build of a program takes a minute of CPU time more, and the linker keeps
// what the program never calls.
func senderOf(options []option.RequestOption) sender {
	// The SDK calls middlewares in the order of the options, so the first one is around those of the caller.
	first := []option.RequestOption{option.WithEnvironmentProduction(), option.WithMiddleware(outermost)}
	service := responses.NewResponseService(append(first, options...)...)

	return func(ctx context.Context, res **http.Response, options ...option.RequestOption) error {
		options = append(options, option.WithResponseBodyInto(res))
		_, err := service.New(ctx, responses.ResponseNewParams{}, options...)
		return err
	}
}

// aim gives a request of the SDK's service its own method and path, which is escaped.
func (s *sent) aim(req *http.Request) {
	u := req.URL
	path := strings.TrimSuffix(u.EscapedPath(), "responses") + s.path
	if plain, err := url.PathUnescape(path); err == nil {
		u.Path, u.RawPath = plain, path
	}

	req.Method = s.method
	if s.body == nil {
		req.Body, req.GetBody, req.ContentLength = nil, nil, 0
		req.Header.Del("Content-Type")
	}
}

// environment returns the options that the SDK's client takes from the environment. There are none for
// azure.WithEndpoint: OpenAI's key must not go there.
func environment(o *Options) (list []option.RequestOption) {
	if serverIn(o).azure {
		return nil
	}

	for _, variable := range []struct {
		name string
		set  func(string) option.RequestOption
	}{
		{"OPENAI_BASE_URL", option.WithBaseURL},
		{"OPENAI_API_KEY", option.WithAPIKey},
		{"OPENAI_ORG_ID", option.WithOrganization},
		{"OPENAI_PROJECT_ID", option.WithProject},
	} {
		if value, ok := os.LookupEnv(variable.name); ok {
			list = append(list, variable.set(value))
		}
	}

	for line := range strings.Lines(os.Getenv("OPENAI_CUSTOM_HEADERS")) {
		if name, value, ok := strings.Cut(line, ":"); ok {
			list = append(list, option.WithHeader(strings.TrimSpace(name), strings.TrimSpace(value)))
		}
	}
	return list
}
