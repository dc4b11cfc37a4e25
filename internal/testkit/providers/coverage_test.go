package providers

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// updateCoverage rewrites testdata/coverage.txt and docs/coverage.md. Look at each changed line.
var updateCoverage = flag.Bool("update-coverage", false, "rewrite the list of what the SDKs can say")

// TestEverythingTheSDKsCanSayIsListed walks the types of the pinned SDKs. Each kind is sent through import and body, or
// has its outcome by a rule below. A kind that is new, gone, or has another outcome than testdata/coverage.txt says fails by its name.
func TestEverythingTheSDKsCanSayIsListed(t *testing.T) {
	if testing.Short() {
		t.Skip("it loads the types of the SDKs")
	}
	s := loadSDKs(t)
	var now []coverageLine
	for _, p := range coverageParts {
		for _, k := range p.kinds(s) {
			outcome, reason := p.outcome(t, s, k)
			if outcome == dropped {
				t.Errorf("%s: the %s %q is dropped in silence: %s", p.api, p.part, k.name, reason)
			}
			now = append(now, coverageLine{p.api, p.part, k.name, outcome, reason})
		}
	}

	var text, page strings.Builder
	for _, l := range now {
		text.WriteString(strings.TrimRight(strings.Join([]string{l.api, l.part, l.name, l.outcome, l.reason}, "\t"), "\t") + "\n")
	}
	writeCoverage(&page, now)
	if *updateCoverage {
		require.NoError(t, os.WriteFile("testdata/coverage.txt", []byte(text.String()), 0o644))
		require.NoError(t, os.WriteFile("../../docs/coverage.md", []byte(page.String()), 0o644))
	}

	listed := map[coverageLine]bool{}
	for _, l := range readCoverage(t) {
		listed[l] = true
	}
	for _, l := range now {
		if !listed[l] {
			t.Errorf("not in testdata/coverage.txt: %s, %s %q: %s %s", l.api, l.part, l.name, l.outcome, l.reason)
		}
		delete(listed, l)
	}
	for l := range listed {
		t.Errorf("only in testdata/coverage.txt: %s, %s %q: %s %s", l.api, l.part, l.name, l.outcome, l.reason)
	}
	saved, err := os.ReadFile("../../docs/coverage.md")
	require.NoError(t, err)
	require.Equal(t, string(saved), page.String(), "docs/coverage.md: run with -update-coverage")
}

// The outcomes of a kind.
const (
	understood = "understood" // it has a form of Plait's own
	kept       = "kept"       // it goes to the conversation and back as it came
	refused    = "refused"    // it is left out of a request, with a note, or ends a response with an error
	ignored    = "ignored"    // it carries nothing that another kind lacks
	dropped    = "dropped in silence"
)

// writeCoverage writes the page for users.
func writeCoverage(w io.Writer, lines []coverageLine) {
	fmt.Fprint(w, `# What each API can say, and what becomes of it

The test TestEverythingTheSDKsCanSayIsListed writes this page from the types of the SDKs that Plait is built with. A
newer SDK fails the test with the names of its new kinds.

- **Understood**: Plait has a form of its own for it. Another provider gets it too, as far as its API
  has it ([switching](switching.md)).
- **Kept**: it is in the conversation as it came, and goes back to its own API unchanged.
- **Refused**: it is left out of a request with a note, or ends a response with an error.
- **Ignored**: it has nothing that another kind lacks, such as the progress of an item that follows whole.

| API | part | understood | kept | refused | ignored |
|---|---|---|---|---|---|
`)
	for _, p := range coverageParts {
		n := map[string]int{}
		for _, l := range lines {
			if l.api == p.api && l.part == p.part {
				n[l.outcome]++
			}
		}
		fmt.Fprintf(w, "| %s | %s | %d | %d | %d | %d |\n", p.api, p.part, n[understood], n[kept], n[refused], n[ignored])
	}
	fmt.Fprint(w, "\n## What is refused or ignored, and why\n\n| API | part | kind | | reason |\n|---|---|---|---|---|\n")
	for _, l := range lines {
		if l.outcome == refused || l.outcome == ignored {
			fmt.Fprintf(w, "| %s | %s | `%s` | %s | %s |\n", l.api, l.part, l.name, l.outcome, strings.ReplaceAll(l.reason, "|", "\\|"))
		}
	}
}

// coveragePart is a part of an API whose kinds an SDK lists.
type coveragePart struct {
	api, part string
	kinds     func(s *sdks) []kind
	// by returns the outcome by a rule. Nil sends the kind through import and body.
	by func(name string) (outcome, reason string)
}

// oneOf returns an outcome for names, and otherwise the rest.
func oneOf(names string, outcome string, rest func(string) (string, string)) func(string) (string, string) {
	return func(name string) (string, string) {
		if slices.Contains(strings.Fields(names), name) {
			return outcome, ""
		}
		return rest(name)
	}
}

func always(outcome, reason string) func(string) (string, string) {
	return func(string) (string, string) { return outcome, reason }
}

func union(pkg string, names ...string) func(*sdks) []kind {
	return func(s *sdks) (all []kind) {
		for _, name := range names {
			all = append(all, s.variants(pkg, name)...)
		}
		return distinct(all)
	}
}

func values(pkg string, names ...string) func(*sdks) []kind {
	return func(s *sdks) (all []kind) {
		for _, name := range names {
			all = append(all, s.constants(pkg, name)...)
		}
		return distinct(all)
	}
}

func members(pkg string, names ...string) func(*sdks) []kind {
	return func(s *sdks) (all []kind) {
		for _, name := range names {
			all = append(all, s.members(pkg, name)...)
		}
		return distinct(all)
	}
}

// distinct returns the kinds by name, the first of each.
func distinct(all []kind) []kind {
	slices.SortStableFunc(all, func(a, b kind) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(all, func(a, b kind) bool { return a.name == b.name })
}

var coverageParts = []coveragePart{
	{"anthropic", "block of a request", union(anthropicSDK, "ContentBlockParamUnion", "BetaContentBlockParamUnion"), nil},
	{"anthropic", "tool", union(anthropicSDK, "ToolUnionParam", "BetaToolUnionParam"), nil},
	{"anthropic", "option", members(anthropicSDK, "MessageNewParams", "BetaMessageNewParams"), nil},
	{"anthropic", "block of a response", union(anthropicSDK, "ContentBlockUnion", "BetaContentBlockUnion"), nil},
	{"anthropic", "event of a stream", union(anthropicSDK, "MessageStreamEventUnion", "BetaRawMessageStreamEventUnion"), oneOf("message_start message_delta message_stop content_block_start content_block_delta content_block_stop", understood, always(ignored, "keep-alive"))},
	{"anthropic", "delta of a stream", union(anthropicSDK, "RawContentBlockDeltaUnion", "BetaRawContentBlockDeltaUnion"), always(understood, "")},
	{"anthropic", "role", values(anthropicSDK, "MessageParamRole", "BetaMessageParamRole"), nil},
	{"anthropic", "stop reason", values(anthropicSDK, "StopReason", "BetaStopReason"), always(understood, "")},
	{"anthropic", "error", union(anthropicSDK, "BetaErrorUnion"), always(understood, "")},
	{"openai-responses", "item of a request", union(responsesSDK, "ResponseInputItemUnionParam"), nil},
	{"openai-responses", "part of a message", union(responsesSDK, "ResponseInputContentUnionParam", "ResponseOutputMessageContentUnionParam"), nil},
	{"openai-responses", "tool", union(responsesSDK, "ToolUnionParam"), nil},
	{"openai-responses", "option", members(responsesSDK, "ResponseNewParams"), nil},
	{"openai-responses", "item of a response", union(responsesSDK, "ResponseOutputItemUnion"), nil},
	{"openai-responses", "event of a stream", union(responsesSDK, "ResponseStreamEventUnion"), oneOf("response.created response.in_progress response.completed response.incomplete response.failed response.output_item.added response.output_item.done response.output_text.delta response.refusal.delta response.reasoning_summary_text.delta response.reasoning_text.delta response.function_call_arguments.delta response.custom_tool_call_input.delta error", understood, always(ignored, "progress: the finished item has all of it"))},
	{"openai-responses", "status", values(responsesSDK, "ResponseStatus"), oneOf("completed incomplete", understood, always(refused, "an error: the response has no end"))},
	{"openai-responses", "error", values(responsesSDK, "ResponseErrorCode"), always(refused, "an error with this type")},
	{"openai-chat", "message", union(openaiSDK, "ChatCompletionMessageParamUnion"), nil},
	{"openai-chat", "part of a message", union(openaiSDK, "ChatCompletionContentPartUnionParam"), nil},
	{"openai-chat", "tool", union(openaiSDK, "ChatCompletionToolUnionParam"), nil},
	{"openai-chat", "option", members(openaiSDK, "ChatCompletionNewParams"), nil},
	{"openai-chat", "member of a response", members(openaiSDK, "ChatCompletionMessage"), oneOf("annotations", kept, always(understood, ""))},
	{"gemini", "part of a content", members(genaiSDK, "Part"), nil},
	{"gemini", "tool", members(genaiSDK, "Tool"), nil},
	{"gemini", "option", members(genaiSDK, "GenerateContentConfig"), nil},
	{"gemini", "member of a candidate", members(genaiSDK, "Candidate"), oneOf("content finishReason finishMessage index", understood, always(kept, ""))},
	{"gemini", "finish reason", values(genaiSDK, "FinishReason"), oneOf("STOP MAX_TOKENS SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION FINISH_REASON_UNSPECIFIED", understood, oneOf("MALFORMED_FUNCTION_CALL UNEXPECTED_TOOL_CALL", refused, always(kept, "")))},
	{"gemini", "reason of a block", values(genaiSDK, "BlockedReason"), always(understood, "")},
}
