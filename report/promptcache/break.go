package promptcache

import (
	"fmt"
	"slices"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/node"
)

// difference returns where r differs from an earlier request, and why. It is zero if r only adds to it. Beside is set
// if the earlier request is not on the line of r.
func (r *request) difference(before *request, found common, beside bool) Break {
	// Providers cache the tools first, then the system prompts and then the messages: the first difference decides.
	a, b := before.sent(), r.sent()
	switch {
	case found.whole:
		return Break{}
	case found.tools < max(len(a.Tools), len(b.Tools)):
		return Break{becauseToolsChanged, partTools, found.tools, r.place.tools, toolsWhy(a.Tools, b.Tools, found.tools)}
	case found.system < max(len(a.System), len(b.System)):
		return Break{becauseSystemChanged, partSystem, found.system, r.place.system, systemWhy(a.System, b.System, found.system)}
	case beside || found.messages == len(b.Messages):
		// r is on another branch, or ends within the messages of the earlier request: no message was changed.
		return r.branched(found.messages)
	}

	at := Break{becauseMessageChanged, partMessages, found.messages, b.Nodes[found.messages],
		fmt.Sprintf("message %d changed", found.messages+1)}
	if _, is := b.Summary(at.Index); is {
		at.Cause = becauseCompacted
		at.Why = fmt.Sprintf("message %d is the summary of a compaction", at.Index+1)
	}
	return at
}

// branched returns the reason for a request with only some messages in common with the latest one after the same call.
func (r *request) branched(messages int) Break {
	at := Break{Cause: becauseBranched, Part: partMessages, Index: messages,
		Why: fmt.Sprintf("another branch begins at message %d", messages+1)}
	if t := r.sent(); messages < len(t.Nodes) {
		at.Node = t.Nodes[messages]
	}
	return at
}

// toolsWhy returns how the list of tools changed at index i.
func toolsWhy(before, after []content.Tool, i int) string {
	has := func(list []content.Tool, name string) bool {
		return slices.ContainsFunc(list, func(t content.Tool) bool { return t.Name == name })
	}
	switch {
	case i < len(before) && !has(after, before[i].Name):
		return fmt.Sprintf("tool %q was removed", before[i].Name)
	case i < len(after) && !has(before, after[i].Name):
		return fmt.Sprintf("tool %q was added", after[i].Name)
	case before[i].Name == after[i].Name:
		return fmt.Sprintf("the definition of tool %q changed", after[i].Name)
	}
	return fmt.Sprintf("the order of the tools changed at %q", after[i].Name)
}

// systemWhy returns how the list of system prompts changed at index i.
func systemWhy(before, after []string, i int) string {
	switch {
	case i == len(before):
		return fmt.Sprintf("system prompt %d was added", i+1)
	case i == len(after):
		return fmt.Sprintf("system prompt %d was removed", i+1)
	}
	return fmt.Sprintf("system prompt %d changed", i+1)
}

// modelWhy returns how the model changed.
func modelWhy(before, after node.Answer) string {
	if before.API != after.API {
		return fmt.Sprintf("the provider changed from %s to %s", before.API, after.API)
	}
	return fmt.Sprintf("the model changed from %s to %s", before.Model, after.Model)
}

// predict sets Predicted, and the reason if something else than the common beginning limits it.
func (r *request) predict(before *request, found common, rules rules) {
	r.Predicted = r.Shared
	if rules.breakpoints {
		// Only a prefix that ends at a breakpoint can be read.
		r.Predicted = min(r.upToBreakpoint(before, found, rules), r.Shared)
	}

	idle, known := r.idle(before)
	switch {
	case rules.off:
		r.Predicted = 0
	case known && rules.keeps > 0 && idle > rules.keeps && r.Read == 0:
		// If something was read, the requests were sent with a policy that keeps it for longer.
		r.Predicted = 0
		r.Break = Break{Cause: becauseExpired, Why: fmt.Sprintf("%s passed since the request before, and a prefix is kept for %s",
			describe.Duration(idle), describe.Duration(rules.keeps))}
	case r.Predicted < rules.least:
		r.Predicted = 0
		r.explain(r.tooLittle(found, rules))
	case rules.step > 0:
		// The cache holds whole steps.
		r.Predicted -= r.Predicted % rules.step
	}

	// Without a complete usage, Read is not known. The prediction is an estimate: less than half of it is a difference.
	reported := r.answer.Usage != (content.Usage{}) && !r.answer.Usage.Incomplete
	if rules.reports && reported && r.Read < r.Predicted/2 {
		r.explain(Break{Cause: becauseUnexplained, Why: "nothing in the conversation explains it"})
	}
}

// explain sets the reason, unless there is one.
func (r *request) explain(why Break) {
	if r.Break.Cause == "" {
		r.Break = why
	}
}

// tooLittle returns why fewer tokens are in the cache than the provider's minimum.
func (r *request) tooLittle(found common, rules rules) Break {
	// The beginning is long enough, so the provider has not written all of it.
	if found.whole && r.Shared >= rules.least {
		return Break{Cause: becauseNotWritten, Why: "the request before was not written to the cache"}
	}
	return Break{Cause: becauseTooShort, Why: fmt.Sprintf("the common beginning has fewer than %s tokens, the minimum",
		describe.Number(int(rules.least)))}
}

// upToBreakpoint returns the tokens up to the last breakpoint in the common beginning that is in the cache: the end of
// an earlier request, or that of the system prompts.
func (r *request) upToBreakpoint(before *request, found common, rules rules) int64 {
	switch {
	case r.base != nil:
		return r.base.cached(rules)
	case found.front && rules.front && before.cached(rules) > 0:
		// The size of the front is an estimate: correct it as reported and estimated tokens of the request differ.
		return scaled(r.front, before.Input, before.size)
	}
	return 0
}

// cached returns the number of tokens of the request that were in the cache after it. A provider that does not report
// what it wrote is assumed to have written everything.
func (r *request) cached(rules rules) int64 {
	if rules.writes && !r.Estimated {
		return r.Read + r.Written
	}
	return r.Input
}
