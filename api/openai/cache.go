package openai

import (
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/gptname"
	"github.com/plait-dev/plait/internal/servers"
)

// caching returns the member of a request for a cache policy. The value is "" for none. An unsupported policy is noted.
// Both members are OpenAI's own: a server with a name gets neither.
func caching(
	policy api.Cache, model string, rules *servers.Rules, note servers.Note,
) (name string, value content.JSON) {
	if rules.Server != "" && (policy == api.CacheLong || policy == api.CacheOff) {
		if policy == api.CacheLong {
			note("option", "CacheLong is left out: %s does not have it", rules.Name)
		}
		return "", ""
	}

	switch policy {
	case api.CacheShort: // the API caches by itself
	case api.CacheLong:
		return "prompt_cache_retention", `"24h"`
	case api.CacheOff:
		// Earlier models write to the cache at no cost, and no option prevents it. Without a breakpoint of the
		// request's own, this mode caches nothing.
		if generation, _ := gptname.Generation(model); generation >= gptname.Breakpoints {
			return "prompt_cache_options", `{"mode":"explicit"}`
		}
	default:
		note("option", "Cache %q is left out: it is a policy of another provider", string(policy))
	}
	return "", ""
}
