package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// guess is the result of recognizing the format of a file.
type guess struct {
	// formats are the possible formats, the most likely first. It is nil if none was recognized.
	formats []string
	// ambiguous is set if all formats are equally likely.
	ambiguous bool
	// other describes a file not accepted by import, such as a response.
	other string
}

func format(names ...string) guess { return guess{formats: names} }

// fields are the members of a JSON object.
type fields map[string]json.RawMessage

func (f fields) has(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return f[name] != nil && string(f[name]) != "null" })
}

func (f fields) text(name string) (s string) {
	_ = json.Unmarshal(f[name], &s) // "" if it is not a string
	return s
}

func (f fields) object(name string) (o fields) {
	_ = json.Unmarshal(f[name], &o) // nil if it is not an object
	return o
}

func (f fields) list(name string) (l []json.RawMessage) {
	_ = json.Unmarshal(f[name], &l) // nil if it is not a list
	return l
}

func fieldsOf(j json.RawMessage) (f fields) {
	_ = json.Unmarshal(j, &f) // nil if it is not an object
	return f
}

// sniff recognizes the format of a file, from the whole document or from the first lines of a file of lines.
func sniff(data []byte) guess {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\uFEFF")))
	if streamed(data) {
		return guess{other: "a streamed response"}
	}
	if json.Valid(data) {
		return sniffValue(data)
	}

	// The first line may be common to several programs, such as a title. Use the first recognized line.
	const enough = 50
	lines := bytes.SplitN(data, []byte("\n"), enough+1)
	for _, line := range lines[:min(len(lines), enough)] {
		if !json.Valid(line) {
			continue
		}

		g := sniffLine(fieldsOf(line))
		if g.formats == nil && g.other == "" {
			g = sniffValue(line)
		}
		if g.formats != nil || g.other != "" {
			return g
		}
	}
	return guess{}
}

// streamed reports whether data are server-sent events.
func streamed(data []byte) bool {
	first, _, _ := bytes.Cut(data, []byte("\n"))
	return bytes.HasPrefix(first, []byte("data:")) || bytes.HasPrefix(first, []byte("event:"))
}

// sniffLine recognizes a line of a session.
func sniffLine(f fields) guess {
	kind := f.text("type")
	switch {
	case strings.HasPrefix(f.text("format"), "plait"):
		return guess{other: "a conversation that Plait saved"}
	case kind == "session" && f.has("id", "cwd", "version"), kind != "" && f.has("parentId"), kind == "message" && f.object("message") != nil:
		return format("pi")
	case kind != "" && f.has("parentUuid", "uuid", "sessionId", "leafUuid", "isSidechain"), kind == "file-history-snapshot":
		return format("claude-code")
	}
	return guess{}
}

// sniffValue recognizes a whole document.
func sniffValue(data []byte) guess {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) == nil {
		return sniffList(list)
	}

	f := fieldsOf(data)
	if other := response(f); other != "" {
		return guess{other: other}
	}
	if g := sniffLine(f); g.formats != nil || g.other != "" {
		return g
	}

	// The more specific formats come first: several have messages.
	switch {
	case f.object("nodes") != nil && f.has("head_ids", "session_id"):
		return format("nano-agent")
	case f.has("contents"), f.has("systemInstruction", "system_instruction", "generationConfig", "generation_config") && !f.has("messages"):
		return format("gemini")
	case f.has("messages"):
		return sniffMessages(f)
	case f.has("input", "previous_response_id", "instructions") && !f.has("role"):
		return format("openai-responses")
	case f.text("role") != "" && f.has("content", "tool_calls"):
		return format("chat")
	}
	return guess{}
}

// sniffList recognizes a list of messages.
func sniffList(list []json.RawMessage) guess {
	for _, item := range list {
		f := fieldsOf(item)
		if f == nil {
			continue
		}

		switch other := response(f); {
		case other != "":
			return guess{other: other}
		case f.text("role") != "" && f.has("parts"):
			return guess{other: "the contents of a Gemini request without the request"}
		case f.text("role") != "":
			return format("chat")
		}
	}
	return guess{}
}

// response returns a description of f if it is the response of an API, or "".
func response(f fields) string {
	switch {
	case f.text("object") == "chat.completion", f.text("object") == "chat.completion.chunk", f.list("choices") != nil && !f.has("messages"):
		return "a response of openai-chat"
	case f.text("object") == "response", f.list("output") != nil && f.has("status"):
		return "a response of openai-responses"
	case f.list("candidates") != nil && !f.has("contents"):
		return "a response of gemini"
	case f.text("type") == "message" && f.text("role") == "assistant" && f.has("content") && f.has("stop_reason", "usage", "model"):
		return "a response of anthropic"
	case f.has("error") && !f.has("messages", "input", "contents", "role", "uuid", "nodes"):
		return "an error response"
	}
	return ""
}

// sniffMessages distinguishes the requests with a member "messages".
func sniffMessages(f fields) guess {
	messages := f.list("messages")
	// Collect the features of only one of the two APIs, in the request, its tools and its messages.
	ofAnthropic := f.has("system", "stop_sequences", "anthropic_version", "mcp_servers", "context_management")
	ofOpenAI := f.has("functions", "function_call", "max_completion_tokens", "response_format", "stream_options", "stop", "n",
		"frequency_penalty", "presence_penalty", "logprobs", "logit_bias", "parallel_tool_calls", "reasoning_effort", "modalities")
	for _, tool := range f.list("tools") {
		def := fieldsOf(tool)
		ofAnthropic = ofAnthropic || def.has("input_schema")
		ofOpenAI = ofOpenAI || def.has("function")
	}

	for _, m := range messages {
		a, o := sniffMessage(fieldsOf(m))
		ofAnthropic, ofOpenAI = ofAnthropic || a, ofOpenAI || o
	}

	// The first format is the likeliest. The others are accepted if one of them is named.
	switch {
	case ofAnthropic && !ofOpenAI:
		return format("anthropic")
	// A request names its model. Saved messages need not.
	case ofOpenAI && !ofAnthropic && f.has("model"):
		return format("openai-chat", "chat")
	case ofOpenAI && !ofAnthropic, !f.has("model", "max_tokens"):
		return format("chat", "openai-chat")
	case strings.Contains(f.text("model"), "claude") && f.has("max_tokens"):
		return format("anthropic", "openai-chat", "chat")
	case !f.has("max_tokens"), strings.HasPrefix(f.text("model"), "gpt-"):
		return format("openai-chat", "anthropic", "chat") // Anthropic's API requires max_tokens
	}
	return guess{formats: []string{"anthropic", "openai-chat", "chat"}, ambiguous: true}
}

// sniffMessage reports whether a message has a member or block of Anthropic's API only, and one of OpenAI's only.
func sniffMessage(m fields) (ofAnthropic, ofOpenAI bool) {
	role := m.text("role")
	ofOpenAI = role == "system" || role == "developer" || role == "tool" || role == "function" ||
		m.has("tool_calls", "function_call", "refusal", "audio")

	for _, block := range m.list("content") {
		b := fieldsOf(block)
		switch b.text("type") {
		case "tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use":
			ofAnthropic = true
		case "image", "document":
			ofAnthropic = ofAnthropic || b.has("source")
		case "image_url", "input_audio", "file", "refusal":
			ofOpenAI = true
		}
	}
	return ofAnthropic, ofOpenAI
}
