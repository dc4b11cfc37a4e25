package promptcache

import (
	"strings"
	"time"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/internal/gptname"
	"github.com/plait-dev/plait/node"
)

// rules is how a provider caches the requests to a model. The zero value is a server that caches everything, for any
// time, and may not report it.
type rules struct {
	least, step int64         // the minimum length of a cached prefix, and the steps in which it grows; 0 for none
	keeps       time.Duration // how long a prefix is kept after its last use; 0 if unknown

	breakpoints bool // a cached prefix ends at a breakpoint: where an earlier request ended
	front       bool // there is a breakpoint behind the system prompts, too
	reports     bool // the provider reports what it read
	writes      bool // the provider reports what it wrote, so that it is known what is in the cache
	off         bool // nothing is cached
}

// rulesOf returns the rules for a response's API and model.
//
//   - Anthropic: platform.claude.com/docs/en/build-with-claude/prompt-caching. A prefix is read at the cache_control
//     markers that api/anthropic sets. What was not reported as read or written is not in the cache.
//   - OpenAI: developers.openai.com/api/docs/guides/prompt-caching. Up to GPT-5.5 from 1,024 tokens in steps of 128,
//     removed after an hour at the latest; later models write a breakpoint at the end of each request, for 30 minutes.
//   - Gemini: ai.google.dev/gemini-api/docs/caching, for implicit caching.
//
// The documents are those of October 2026.
func rulesOf(a node.Answer, policy api.Cache) rules {
	switch {
	case a.API == "anthropic":
		r := rules{least: leastOfClaude(a.Model), keeps: 5 * time.Minute}
		r.breakpoints, r.front, r.reports, r.writes = true, true, true, true

		// The policy sets the time of the markers: see api.CacheLong.
		if policy == api.CacheLong {
			r.keeps = time.Hour
		}
		return r

	case strings.HasPrefix(a.API, "openai-"):
		// Compatible servers have models of their own, and nothing is known about their caches.
		generation, known := gptname.Generation(a.Model)
		if !known {
			return rules{} // a compatible server
		}

		if generation >= gptname.Breakpoints {
			return rules{least: 1024, keeps: 30 * time.Minute, breakpoints: true, reports: true, off: policy == api.CacheOff}
		}

		r := rules{least: 1024, step: 128, keeps: time.Hour, reports: true}
		if policy == api.CacheLong {
			r.keeps = 24 * time.Hour
		}
		return r

	case a.API == "gemini":
		if strings.Contains(a.Model, "gemini-2") {
			return rules{least: 2048, reports: true}
		}
		return rules{least: 4096, reports: true}
	}
	return rules{}
}

// leastOfClaude returns the minimum length of a cached prefix.
func leastOfClaude(model string) int64 {
	for _, m := range []struct {
		name  string
		least int64
	}{
		{"opus-5", 512}, {"fable-5", 512}, {"mythos-5", 512},
		{"opus-4-5", 4096}, {"opus-4-6", 4096}, {"haiku-4-5", 4096},
		{"opus-4-7", 2048}, {"3-5-haiku", 2048}, {"3-haiku", 2048},
	} {
		if strings.Contains(model, m.name) {
			return m.least
		}
	}
	return 1024
}
