// Package servers holds how compatible servers differ from the APIs they implement. The sources are in the comments of
// package compatible.
package servers

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/compatible"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// Rules are the differences of a compatible server from the provider of the API. The zero value of a field means no
// known difference.
type Rules struct {
	// Server is the name in options, and Name the name in notes.
	Server compatible.Server
	Name   string
	// BaseURL is the address of the OpenAI APIs, and Key the environment variable with the key; "" if it needs none.
	BaseURL, Key string

	Chat                Chat
	Responses, Messages API
}

// API is how a server differs in one API.
type API struct {
	Choice Choice
	// IgnoresOneCall is set if the model may call several tools even if the request allows one.
	IgnoresOneCall bool
	// IgnoresForm is set if the schema of a response has no effect.
	IgnoresForm bool
	// Unsigned is set if the server reads its own thinking without a signature, or without encrypted content.
	Unsigned bool
	// Plain is set if the server knows messages, functions and their calls alone. Tools, calls and blocks of the API's
	// own are refused or ignored.
	Plain bool
	// Files are the files that the server accepts.
	Files Files
}

// Files are the files that a request may contain.
type Files int

const (
	AnyFile     Files = iota // all files of the API
	NoDocuments              // images and audio, but no reference to an uploaded file
	NoFile                   // none: the model reads only text
)

// In returns the rules of an API with these files alone.
func (f Files) In(t dialect.Target) dialect.Target {
	if f != AnyFile {
		t.Documents, t.Files = dialect.Media{}, nil
	}
	if f == NoFile {
		t.Images, t.Audio = dialect.Media{}, dialect.Media{}
	}
	return t
}

// FilesFor returns the files in a request to the server. TextOnly is set if the model reads only text.
func (a API) FilesFor(textOnly bool) Files {
	if textOnly {
		return NoFile
	}
	return a.Files
}

// Chat is how a server differs over Chat Completions.
type Chat struct {
	API
	// MaxTokens is the member for the limit of tokens; "" is max_completion_tokens.
	MaxTokens string
	// Thought is the member for thinking in a request; "" is the member it came in.
	Thought string
	// RefusesThought is set if no thinking goes back.
	RefusesThought bool
	// Thinks is the form of the options for thinking.
	Thinks Thinks
	// ObjectOnly is set if the form of a response is any object, without a schema.
	ObjectOnly bool
	// NoStreamOptions is set if stream_options are refused.
	NoStreamOptions bool
	// ShortIDs is set if the ID of a call must have nine letters and digits.
	ShortIDs bool
	// Repeats is set if the server continues a message of the assistant by repeating its text first.
	Repeats bool
}

// Thinks is the form in which a request controls thinking.
type Thinks int

const (
	Effort         Thinks = iota // reasoning_effort, "none" for off
	ReasoningOf                  // an object "reasoning", with effort or max_tokens
	ThinkingToggle               // reasoning_effort, and {"thinking":{"type":"disabled"}} for off and for forced calls
)

// Choice lists the tool choices of a server.
type Choice int

const (
	EachChoice  Choice = iota // all of them
	ChoiceWords               // the choices that are a word, not the name of one tool
	ChoiceAny                 // a call can be forced, but not of a named tool; calls cannot be forbidden
	NoChoice                  // none of them
)

// all are the servers with their rules.
var all = []*Rules{
	{
		Server: compatible.LlamaCPP, Name: "llama.cpp", BaseURL: "http://127.0.0.1:8080/v1",
		Chat: Chat{
			API:     API{Choice: ChoiceWords, IgnoresOneCall: true, Plain: true, Files: NoDocuments},
			Thought: "reasoning_content", Repeats: true,
		},
		Responses: API{
			Choice: ChoiceWords, IgnoresOneCall: true, IgnoresForm: true, Unsigned: true, Plain: true, Files: NoDocuments,
		},
		Messages: API{
			Choice: ChoiceAny, IgnoresOneCall: true, IgnoresForm: true, Unsigned: true, Plain: true, Files: NoDocuments,
		},
	},
	{
		Server: compatible.VLLM, Name: "vLLM", BaseURL: "http://127.0.0.1:8000/v1",
		Chat: Chat{Thought: "reasoning"},
	},
	{
		Server: compatible.Ollama, Name: "Ollama", BaseURL: "http://127.0.0.1:11434/v1",
		Chat: Chat{
			API: API{Choice: NoChoice, IgnoresOneCall: true}, MaxTokens: "max_tokens", Thought: "reasoning",
		},
		Responses: API{Choice: NoChoice, IgnoresOneCall: true, IgnoresForm: true},
		Messages:  API{Choice: NoChoice, IgnoresOneCall: true, IgnoresForm: true, Unsigned: true},
	},
	{
		Server: compatible.LMStudio, Name: "LM Studio", BaseURL: "http://127.0.0.1:1234/v1",
		Chat: Chat{API: API{Choice: ChoiceWords}, MaxTokens: "max_tokens"},
	},
	{
		Server: compatible.OpenRouter, Name: "OpenRouter", BaseURL: "https://openrouter.ai/api/v1", Key: "OPENROUTER_API_KEY",
		Chat: Chat{MaxTokens: "max_tokens", Thinks: ReasoningOf},
	},
	{
		Server: compatible.DeepSeek, Name: "DeepSeek", BaseURL: "https://api.deepseek.com/v1", Key: "DEEPSEEK_API_KEY",
		Chat: Chat{
			MaxTokens: "max_tokens", Thought: "reasoning_content", Thinks: ThinkingToggle, ObjectOnly: true,
		},
	},
	{
		Server: compatible.Groq, Name: "Groq", BaseURL: "https://api.groq.com/openai/v1", Key: "GROQ_API_KEY",
		Chat: Chat{RefusesThought: true},
	},
	{
		Server: compatible.Mistral, Name: "Mistral", BaseURL: "https://api.mistral.ai/v1", Key: "MISTRAL_API_KEY",
		Chat: Chat{MaxTokens: "max_tokens", Thought: "content", NoStreamOptions: true, ShortIDs: true},
	},
}

// unknown are the rules for a server without a name.
var unknown Rules

// Of returns the rules of a server, and reports whether there are any. Those of "" are the zero value.
func Of(server compatible.Server) (*Rules, bool) {
	for _, r := range all {
		if r.Server == server {
			return r, true
		}
	}
	return &unknown, server == ""
}

// At returns the rules of the server at an address: a provider on the network, or Ollama's port. For any other address
// it returns the zero value.
func At(address *url.URL) *Rules {
	for _, r := range all {
		known, err := url.Parse(r.BaseURL)
		if err != nil {
			continue
		}
		if r.Key != "" && address.Hostname() == known.Hostname() ||
			r.Server == compatible.Ollama && address.Port() == known.Port() {
			return r
		}
	}
	return &unknown
}

// Names returns the names of all servers.
func Names() []string {
	var names []string
	for _, r := range all {
		names = append(names, string(r.Server))
	}
	return names
}

// Note records a change to the request as a whole, not to one message.
type Note func(kind string, format string, args ...any)

// Fit adapts options to one API of the server, and returns the tools to declare.
func (r *Rules) Fit(a API, o *api.Options, tools []content.Tool, note Note) []content.Tool {
	if a.Plain {
		tools = r.functions(tools, note)
	}

	// Without tools there is no call to limit, and nothing to note.
	if o.OneCall && a.IgnoresOneCall && len(tools) > 0 {
		o.OneCall = false
		note("option", "OneCall is left out: %s does not limit the calls of a response", r.Name)
	}
	if len(tools) == 0 {
		return tools
	}
	return r.fitChoice(a.Choice, o, tools, note)
}

// functions returns the tools that are functions or can be declared as such.
func (r *Rules) functions(tools []content.Tool, note Note) []content.Tool {
	var list []content.Tool
	for _, t := range tools {
		if t.Server() {
			note("tool", "the tool %q is left out: %s knows functions alone", t.Name, r.Name)
			continue
		}

		// A tool of the API's own names its type. Its name and schema are enough to declare it as a function.
		if further, _ := jsonx.Members(t.Extra.JSON); has(further, "type") {
			note("tool", "the tool %q is declared as a function: %s knows no other", t.Name, r.Name)
			t.Extra = content.Extra{}
		}
		list = append(list, t)
	}
	return list
}

func has(list []jsonx.Member, name string) bool {
	value, _ := jsonx.Take(list, name)
	return value != ""
}

// fitChoice is Fit for the tool choice.
func (r *Rules) fitChoice(accepted Choice, o *api.Options, tools []content.Tool, note Note) []content.Tool {
	choice := o.ToolChoice
	named := choice.Tool()

	switch {
	case choice == api.ToolsAuto, accepted == EachChoice:
		return tools
	case choice == api.ToolsNone && accepted != ChoiceWords:
		// The model cannot call an undeclared tool.
		o.ToolChoice = api.ToolsAuto
		note("option", "no tool is declared: %s ignores that ToolChoice allows none", r.Name)
		return nil
	case choice == api.ToolsAny && accepted == NoChoice:
		o.ToolChoice = api.ToolsAuto
		note("option", "ToolChoice is left out: %s ignores it", r.Name)
		return tools
	case named == "": // any other word is accepted
		return tools
	}

	// For the name of one tool, declare it alone. The model can then call no other.
	only := only(tools, named)
	if len(only) == 0 {
		return tools // the provider notes the unknown name
	}
	if accepted == NoChoice {
		o.ToolChoice = api.ToolsAuto
		note("option", "the tool %q alone is declared: %s ignores ToolChoice, and need not call it", named, r.Name)
	} else {
		o.ToolChoice = api.ToolsAny
		note("option", "the tool %q alone is declared: %s does not accept its name as ToolChoice", named, r.Name)
	}
	return only
}

// only returns the tools with the given name.
func only(tools []content.Tool, name string) []content.Tool {
	var list []content.Tool
	for _, t := range tools {
		if t.Name == name {
			list = append(list, t)
		}
	}
	return list
}

// FormPrompt returns the system prompts and one more, asking for the form of the response. It is for a server without
// support for schemas of responses.
func (r *Rules) FormPrompt(system []string, form api.Schema, note Note) []string {
	note("option", "the schema of Output is a system prompt: %s does not apply it", r.Name)
	prompt := fmt.Sprintf("Respond with JSON that matches this schema, and with nothing else:\n%s", form.JSON)
	// Without spare capacity append copies: the caller's list stays as it is.
	return append(system[:len(system):len(system)], strings.TrimSpace(prompt))
}
