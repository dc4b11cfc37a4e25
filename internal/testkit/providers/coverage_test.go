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
// decoded in a response. A kind that is new, gone, or has another outcome than testdata/coverage.txt says fails by its name.
func TestEverythingTheSDKsCanSayIsListed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED: it loads the types of the SDKs, which takes long, in -short")
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
		require.NoError(t, os.WriteFile("../../../docs/coverage.md", []byte(page.String()), 0o644))
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
	saved, err := os.ReadFile("../../../docs/coverage.md")
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

// writeCoverage writes the page for users. testdata/coverage.txt has each kind on a line of its own.
func writeCoverage(w io.Writer, lines []coverageLine) {
	fmt.Fprint(w, `# What each API can say, and what becomes of it

TestEverythingTheSDKsCanSayIsListed writes this page from the types of the SDKs that Plait is built with: it sends an
example of each kind through a request or a response. A kind that is new in an SDK fails the test by its name.
[coverage.txt](../internal/testkit/providers/testdata/coverage.txt) lists every kind: why one is refused or ignored, and
what stop reasons and errors become.

- **Understood**: other providers get it too, as far as they have it ([switching](switching.md)).
- **Kept**: it goes back to its own API as it came.
- **Refused**: it is left out of a request with a note, or is an error of a response.
- **Ignored**: another kind has all of it.

`)
	apis := coverageAPIs()
	fmt.Fprintf(w, "| kinds | %s |\n|---|%s\n", strings.Join(apis, " | "), strings.Repeat("---|", len(apis)))
	for _, outcome := range []string{understood, kept, refused, ignored} {
		fmt.Fprintf(w, "| %s |", outcome)
		for _, api := range apis {
			n := 0
			for _, l := range lines {
				if l.api == api && l.outcome == outcome {
					n++
				}
			}
			fmt.Fprintf(w, " %d |", n)
		}
		fmt.Fprintln(w)
	}
}

// coverageAPIs returns the APIs in the order of the parts.
func coverageAPIs() (apis []string) {
	for _, p := range coverageParts {
		if !slices.Contains(apis, p.api) {
			apis = append(apis, p.api)
		}
	}
	return apis
}

// coveragePart is a part of an API whose kinds an SDK lists.
type coveragePart struct {
	api, part string
	kinds     func(s *sdks) []kind
	// by has the kind decoded in a response. Nil sends it through import and body.
	by func(t *testing.T, p provider, name, sample string) (outcome, reason string)
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

func anyOf(pkg, name, field string) func(*sdks) []kind {
	return func(s *sdks) []kind { return distinct(s.anyOf(pkg, name, field)) }
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
	{"anthropic", "event of a stream", union(anthropicSDK, "MessageStreamEventUnion", "BetaRawMessageStreamEventUnion"), streamEvent},
	{"anthropic", "delta of a stream", union(anthropicSDK, "RawContentBlockDeltaUnion", "BetaRawContentBlockDeltaUnion"), streamDelta},
	{"anthropic", "role", values(anthropicSDK, "MessageParamRole", "BetaMessageParamRole"), nil},
	{"anthropic", "stop reason", values(anthropicSDK, "StopReason", "BetaStopReason"), anthropicStop},
	{"anthropic", "member of a response", members(anthropicSDK, "Message", "BetaMessage"), member("%s", anthropicMessage)},
	{"anthropic", "member of usage", members(anthropicSDK, "Usage", "BetaUsage"), member(inUsage("usage", anthropicMessage), map[string]any{"input_tokens": 1, "output_tokens": 1})},
	{"anthropic", "error", union(anthropicSDK, "BetaErrorUnion"), anthropicError},
	{"openai-responses", "item of a request", union(responsesSDK, "ResponseInputItemUnionParam"), nil},
	{"openai-responses", "part of a message", union(responsesSDK, "ResponseInputContentUnionParam", "ResponseOutputMessageContentUnionParam"), nil},
	{"openai-responses", "tool", union(responsesSDK, "ToolUnionParam"), nil},
	{"openai-responses", "option", members(responsesSDK, "ResponseNewParams"), nil},
	{"openai-responses", "item of a response", union(responsesSDK, "ResponseOutputItemUnion"), nil},
	{"openai-responses", "event of a stream", union(responsesSDK, "ResponseStreamEventUnion"), streamEvent},
	{"openai-responses", "status", values(responsesSDK, "ResponseStatus"), responsesStatus},
	{"openai-responses", "reason of an incomplete response", anyOf(responsesSDK, "ResponseIncompleteDetails", "Reason"), responsesIncomplete},
	{"openai-responses", "member of a response", members(responsesSDK, "Response"), member("%s", responsesResponse)},
	{"openai-responses", "member of usage", members(responsesSDK, "ResponseUsage"), member(inUsage("usage", responsesResponse), map[string]any{"input_tokens": 1, "output_tokens": 1})},
	{"openai-responses", "error", values(responsesSDK, "ResponseErrorCode"), responsesError},
	{"openai-chat", "message", union(openaiSDK, "ChatCompletionMessageParamUnion"), nil},
	{"openai-chat", "part of a message", union(openaiSDK, "ChatCompletionContentPartUnionParam"), nil},
	{"openai-chat", "tool", union(openaiSDK, "ChatCompletionToolUnionParam"), nil},
	{"openai-chat", "option", members(openaiSDK, "ChatCompletionNewParams"), nil},
	{"openai-chat", "member of a response", members(openaiSDK, "ChatCompletion"), member("%s", chatResponse)},
	{"openai-chat", "member of usage", members(openaiSDK, "CompletionUsage"), member(inUsage("usage", chatResponse), map[string]any{"prompt_tokens": 1, "completion_tokens": 1})},
	{"openai-chat", "member of a message", members(openaiSDK, "ChatCompletionMessage"), member(chatMessage, map[string]any{"content": "Hello.", "role": "assistant"})},
	{"openai-chat", "member of a delta", members(openaiSDK, "ChatCompletionChunkChoiceDelta"), chatDelta},
	{"openai-chat", "finish reason", anyOf(openaiSDK, "ChatCompletionChoice", "FinishReason"), chatFinish},
	{"gemini", "part of a content", members(genaiSDK, "Part"), nil},
	{"gemini", "tool", members(genaiSDK, "Tool"), nil},
	{"gemini", "option", members(genaiSDK, "GenerateContentConfig"), nil},
	{"gemini", "member of a response", members(genaiSDK, "GenerateContentResponse"), member("%s", geminiResponse)},
	{"gemini", "member of usage", members(genaiSDK, "GenerateContentResponseUsageMetadata"), member(inUsage("usageMetadata", geminiResponse), map[string]any{"promptTokenCount": 1, "candidatesTokenCount": 1})},
	{"gemini", "member of a candidate", members(genaiSDK, "Candidate"), member(`{"candidates":[%s],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1},"modelVersion":"m"}`, geminiCandidate)},
	{"gemini", "finish reason", values(genaiSDK, "FinishReason"), geminiFinish},
	{"gemini", "reason of a block", values(genaiSDK, "BlockedReason"), geminiBlock},
}
