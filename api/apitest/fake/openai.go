package fake

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// OpenAIFailure returns a reply with an error of OpenAI's APIs, such as 429, "tokens", "rate_limit_exceeded", "Rate
// limit reached". The code may be empty.
func OpenAIFailure(status int, kind, code, message string) Reply {
	return Reply{Status: status, Body: openAIError(kind, "", code, message)}
}

func openAIError(kind, param, code, message string) string {
	orNull := func(s string) string {
		if s == "" {
			return "null"
		}
		return quoted(s)
	}
	return fmt.Sprintf(`{"error":{"message":%s,"type":%s,"param":%s,"code":%s}}`, quoted(message), quoted(kind),
		orNull(param), orNull(code))
}

func refuseOpenAI(name string, status int, param, code, message string) *api.Error {
	return refusal(name, status, "invalid_request_error", message,
		openAIError("invalid_request_error", param, code, message))
}

// openAIAddress accepts only a POST to a URL with the path at its end, with a key. Azure's key header is accepted.
func openAIAddress(name, path string, r *http.Request) error {
	switch {
	case !strings.HasSuffix(r.URL.Path, path):
		return refuseOpenAI(name, http.StatusNotFound, "", "", fmt.Sprintf("Invalid URL (%s %s)", r.Method, r.URL.Path))
	case r.Method != http.MethodPost:
		return refuseOpenAI(name, http.StatusMethodNotAllowed, "", "method_not_supported",
			fmt.Sprintf("Not allowed to %s on %s.", r.Method, r.URL.Path))
	case r.Header.Get("Authorization") == "" && r.Header.Get("Api-Key") == "":
		return refuseOpenAI(name, http.StatusUnauthorized, "", "",
			"You didn't provide an API key. You need to provide your API key in an "+
				"Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).")
	}
	return nil
}

// extended adds a block's further members for an API to an object.
func extended(members map[string]any, extra content.Extra, name string) map[string]any {
	if further := extra.For(name); further != "" {
		var more map[string]any
		parsed([]byte(further), &more)
		for k, v := range more {
			members[k] = v
		}
	}
	return members
}
