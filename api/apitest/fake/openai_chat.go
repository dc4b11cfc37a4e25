package fake

import (
	"fmt"
	"maps"
	"net/http"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// OpenAIChat returns a strict fake of OpenAI's Chat Completions API. It checks requests with [CheckOpenAIChat] and
// answers with replies, in order. A request after the last reply is refused.
func OpenAIChat(replies ...Reply) *API { return newFake(openAIChat{CheckOpenAIChat}, replies) }

// OpenAICompatible is like [OpenAIChat] for another server with the same API, such as DeepSeek's, vLLM or llama.cpp. It
// checks requests with [CheckOpenAICompatible].
func OpenAICompatible(replies ...Reply) *API {
	return newFake(openAIChat{CheckOpenAICompatible}, replies)
}

// OpenAIChatMessage returns a reply with one message: texts, tool calls, thinking as the "reasoning_content" of
// compatible servers, and content.Opaque for further members of the message, such as {"refusal":"No."}. The finish
// reason is "tool_calls" if there is a tool call, otherwise "stop". Any other kind of block is a mistake in a test and
// panics.
func OpenAIChatMessage(blocks ...content.Block) Reply {
	message := map[string]any{"role": "assistant", "content": nil, "refusal": nil}

	// A message has one text and one reasoning: several blocks of a kind are joined.
	add := func(member, more string) {
		before, _ := message[member].(string)
		message[member] = before + more
	}

	var calls []any
	finish := "stop"

	for _, b := range blocks {
		switch b := b.(type) {
		case content.Text:
			add("content", b.Text)
		case content.Thinking:
			add("reasoning_content", b.Text)
		case content.ToolUse:
			function := map[string]any{"name": b.Name, "arguments": string(b.Input)}
			calls = append(calls,
				extended(map[string]any{"id": b.ID, "type": "function", "function": function}, b.Extra, chatAPI))
			message["tool_calls"], finish = calls, "tool_calls"
		case content.Opaque:
			parsed([]byte(b.JSON), &message)
		default:
			panic(fmt.Sprintf("fake: an assistant message of this API cannot contain a %T", b))
		}
	}
	return Reply{Body: chatCompletion(message, finish)}
}

const chatAPI = "openai-chat"

const (
	chatHead  = `"id":"chatcmpl-fake","created":1700000000,"model":"gpt-fake"`
	chatUsage = `{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}`
)

func chatCompletion(message map[string]any, finish string) string {
	return fmt.Sprintf(`{%s,"object":"chat.completion","choices":[{"index":0,"message":%s,"logprobs":null,"finish_reason":%q}],"usage":%s}`,
		chatHead, written(message), finish, chatUsage)
}

// openAIChat is the dialect of Chat Completions.
type openAIChat struct{ body func([]byte) error }

func (openAIChat) address(r *http.Request) error {
	return openAIAddress(chatAPI, "/chat/completions", r)
}

func (d openAIChat) check(_ *http.Request, body []byte) error { return d.body(body) }

func (openAIChat) refuse(message string) *api.Error {
	return refuseOpenAI(chatAPI, http.StatusBadRequest, "", "", message)
}

func (openAIChat) remember([]byte, string) {}

func (openAIChat) streams(_ *http.Request, body []byte) bool { return asksToStream(body) }

func (openAIChat) silence() string { return OpenAIChatMessage().Body }

func (openAIChat) header(h http.Header) { h.Set("x-request-id", "req_fake") }

// chatStream builds a stream of chunks.
type chatStream struct {
	sse
	head  map[string]any // the members of every chunk
	usage bool           // whether the request asks for usage
}

func (openAIChat) stream(request []byte, answer string, cut bool) string {
	var options struct {
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	_ = json.Unmarshal(request, &options) // check has accepted the request

	var completion map[string]any
	parsed([]byte(answer), &completion)

	var response struct {
		Choices []struct {
			Message map[string]jsontext.Value `json:"message"`
			Finish  jsontext.Value            `json:"finish_reason"`
		} `json:"choices"`
		Usage jsontext.Value `json:"usage"`
	}
	parsed([]byte(answer), &response)

	// Every chunk has the members of the completion except choices and usage.
	s := chatStream{head: completion, usage: options.StreamOptions.IncludeUsage}
	s.head["object"] = "chat.completion.chunk"
	delete(s.head, "choices")
	delete(s.head, "usage")

	for i, choice := range response.Choices {
		s.message(i, choice.Message)
		if !cut {
			s.delta(i, map[string]any{}, choice.Finish)
		}
	}

	// A stream that breaks off has neither usage nor an end mark.
	if cut {
		return s.String()
	}

	// The usage has a last chunk of its own, without choices.
	if s.usage {
		s.chunk([]any{}, response.Usage)
	}
	s.WriteString("data: [DONE]\n\n")
	return s.String()
}

// message sends a message in small pieces, as the API does.
func (s *chatStream) message(choice int, message map[string]jsontext.Value) {
	var calls []map[string]jsontext.Value
	if list, ok := message["tool_calls"]; ok {
		parsed(list, &calls)
	}

	silent := chatSilent(message)

	// The first chunk depends on what follows, as in recorded streams.
	first := map[string]any{"role": "assistant", "content": nil, "refusal": nil}
	var early chatArguments
	switch {
	case !silent || len(calls) == 0 && text(message["refusal"]) == "":
		first["content"] = ""
	case len(calls) == 1: // the API sends the head of a single call in the first chunk
		first["tool_calls"], early = chatCallHead(0, calls[0])
	case len(calls) > 1:
		delete(first, "refusal")
	}

	s.delta(choice, first, nil)
	s.arguments(choice, 0, early)

	for _, member := range chatWords {
		for _, piece := range split(text(message[member])) {
			s.delta(choice, map[string]any{member: piece}, nil)
		}
	}

	// Calls come last, except for the head of a single one.
	for i, call := range calls {
		if first["tool_calls"] == nil {
			s.call(choice, i, call)
		}
	}

	s.others(choice, message)
}

// chatWords lists the members of a message to send in pieces.
var chatWords = []string{"reasoning_content", "reasoning", "content", "refusal"}

// chatSilent reports whether a message has neither text nor reasoning.
func chatSilent(message map[string]jsontext.Value) bool {
	return text(message["content"]) == "" && text(message["reasoning_content"]) == "" &&
		text(message["reasoning"]) == ""
}

// others sends the members known only to other servers, in one piece.
func (s *chatStream) others(choice int, message map[string]jsontext.Value) {
	rest := maps.Clone(message)
	for _, member := range append([]string{"role", "tool_calls"}, chatWords...) {
		delete(rest, member)
	}
	if len(rest) > 0 {
		s.delta(choice, rest, nil)
	}
}

// call sends a tool call: its head in one piece, its arguments in several.
func (s *chatStream) call(choice, index int, call map[string]jsontext.Value) {
	head, arguments := chatCallHead(index, call)
	s.delta(choice, map[string]any{"tool_calls": head}, nil)
	s.arguments(choice, index, arguments)
}

// chatArguments are the arguments of a call: those of a function, or the input of a custom tool.
type chatArguments struct{ kind, member, text string }

// chatCallHead returns a tool call without its arguments, as a list with one item, and the arguments.
func chatCallHead(index int, call map[string]jsontext.Value) (list []any, arguments chatArguments) {
	head := map[string]any{"index": index}
	for name, v := range call {
		head[name] = v
	}

	arguments = chatArguments{kind: "function", member: "arguments"}
	if text(call["type"]) == "custom" {
		arguments = chatArguments{kind: "custom", member: "input"}
	}
	var inner map[string]jsontext.Value
	parsed(call[arguments.kind], &inner)
	arguments.text = text(inner[arguments.member])
	inner[arguments.member] = jsontext.Value(`""`)
	head[arguments.kind] = inner
	return []any{head}, arguments
}

func (s *chatStream) arguments(choice, index int, arguments chatArguments) {
	for _, piece := range split(arguments.text) {
		delta := map[string]any{"index": index, arguments.kind: map[string]any{arguments.member: piece}}
		s.delta(choice, map[string]any{"tool_calls": []any{delta}}, nil)
	}
}

func (s *chatStream) delta(choice int, delta any, finish jsontext.Value) {
	if finish == nil {
		finish = jsontext.Value("null")
	}
	s.chunk([]any{map[string]any{"index": choice, "delta": delta, "logprobs": nil, "finish_reason": finish}},
		jsontext.Value("null"))
}

func (s *chatStream) chunk(choices []any, usage jsontext.Value) {
	s.head["choices"] = choices
	if s.usage {
		s.head["usage"] = usage
	}
	s.data(s.head)
}
