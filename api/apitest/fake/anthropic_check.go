package fake

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"
)

// CheckAnthropic returns nil for a request body acceptable to Anthropic's Messages API. Otherwise it returns an
// *[api.Error] with status 400 and the API's own error text, with the API's numbers for messages and blocks. It checks
// these rules, observed at the API:
//
//   - Every tool call has its own single result, first in the next message of the user. Every result belongs to a call
//     of the message before it. Call IDs are unique and well formed. Calls come last in their message.
//   - Every message has content. Text is not empty or blank. A block is in a message of the right role. The last
//     message is the user's, or an assistant's waiting for a server tool. A message does not end with thinking.
//   - A call of a server tool has its result before the turn ends. A message with more than results ends it. A request
//     with a waiting call of code execution names the container, if the code made calls itself. The caller of a block is
//     in the request.
//   - The temperature is from 0 to 1.
//   - Thinking is signed. While it is enabled, an open tool loop begins with it, and budget, temperature and
//     tool_choice fit.
//   - Tool names are well formed and unique. Schemas are objects in a form accepted by the API. At most 20 tools are
//     strict.
//   - Images and documents have an accepted type, contain data of that type, and are not too large.
//   - At most 4 blocks have cache_control. None of one hour comes after one of five minutes.
//   - There are no members unknown to the API.
//
// If the behavior of the API is unknown, or differs between models, the strictest behavior observed counts. The limits
// of an account, and signatures, cannot be checked.
func CheckAnthropic(body []byte) error {
	c := anthropicCheck{called: map[string]bool{}}
	c.request(body)
	if c.message == "" {
		return nil
	}
	return refuseAnthropic(http.StatusBadRequest, "invalid_request_error", c.message)
}

// anthropicCheck is the state of a check. Only the first failure counts.
type anthropicCheck struct {
	message   string
	maxTokens int
	thinking  string // "enabled", "adaptive" or "disabled"
	tools     []string
	container bool // the request names a container
	cached    int  // blocks with cache_control
	short     bool // one of them has a TTL of five minutes
	blocks    []anthropicRequestBlock
	called    map[string]bool // the IDs of the calls of server tools
}

// anthropicRequestBlock is one block of a message.
type anthropicRequestBlock struct {
	message, block int // its position
	role, kind     string
	id             string // of a call, or of a result's call
	caller         string // the call of a server tool that made this call
	name           string
}

func (c *anthropicCheck) fail(format string, args ...any) {
	if c.message == "" {
		c.message = fmt.Sprintf(format, args...)
	}
}

var (
	anthropicRequest = members("model messages max_tokens system tools tool_choice stream stop_sequences temperature top_k top_p " +
		"metadata thinking service_tier container context_management mcp_servers output_config output_format cache_control " +
		"inference_geo speed")
	anthropicBlocks = map[string]map[string]bool{
		"text":              members("type text cache_control citations"),
		"image":             members("type source cache_control"),
		"document":          members("type source title context citations cache_control"),
		"search_result":     members("type source title content citations cache_control"),
		"tool_use":          members("type id name input cache_control caller toolset_name"),
		"tool_result":       members("type tool_use_id content is_error cache_control"),
		"thinking":          members("type thinking signature"),
		"redacted_thinking": members("type data"),
		"server_tool_use":   members("type id name input cache_control caller"),
		"mcp_tool_use":      members("type id name input server_name cache_control"),
		"mcp_tool_result":   members("type tool_use_id content is_error cache_control"),
		"container_upload":  members("type file_id cache_control"),
		"tool_reference":    members("type tool_name cache_control"),
		"compaction":        members("type content encrypted_content signature tool_changes cache_control"),
	}
	anthropicServerResult = members("type tool_use_id content cache_control caller")
	anthropicCustom       = members("type name description input_schema cache_control strict defer_loading eager_input_streaming " +
		"input_examples allowed_callers")
	anthropicToolset      = members("type configs mcp_server_name tools default_config cache_control")
	anthropicUserBlocks   = members("text image document search_result tool_result container_upload")
	anthropicResultBlocks = members("text image document search_result tool_reference")

	anthropicID       = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	anthropicServerID = regexp.MustCompile(`^srvtoolu_[a-zA-Z0-9_]+$`)
	// Newer error texts allow names of 128 characters, older ones of 64. The strictest counts.
	anthropicName     = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	anthropicProperty = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
)

func members(names string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		set[name] = true
	}
	return set
}

type object map[string]jsontext.Value

// object decodes an object with only the allowed members; nil allows all.
func (c *anthropicCheck) object(path string, v jsontext.Value, allowed map[string]bool) object {
	var o object
	if v.Kind() != '{' || json.Unmarshal(v, &o) != nil {
		c.fail("%s: Input should be a valid dictionary", path)
		return object{}
	}
	c.only(path, o, allowed)
	return o
}

// only checks that an object has only the allowed members; nil allows all.
func (c *anthropicCheck) only(path string, o object, allowed map[string]bool) {
	if allowed == nil {
		return
	}
	for name := range o {
		if !allowed[name] {
			// Report the first one in alphabetical order: the same body must fail the same way each time.
			names := slices.Sorted(maps.Keys(o))
			name = names[slices.IndexFunc(names, func(n string) bool { return !allowed[n] })]
			c.fail("%s: Extra inputs are not permitted", strings.TrimPrefix(path+"."+name, "."))
			return
		}
	}
}

func (c *anthropicCheck) list(path string, v jsontext.Value) []jsontext.Value {
	var list []jsontext.Value
	if v.Kind() != '[' || json.Unmarshal(v, &list) != nil {
		c.fail("%s: Input should be a valid list", path)
	}
	return list
}

// text returns a required string member.
func (c *anthropicCheck) text(path string, o object, name string) string {
	v, ok := o[name]
	if !ok {
		c.fail("%s.%s: Field required", path, name)
	} else if v.Kind() != '"' {
		c.fail("%s.%s: Input should be a valid string", path, name)
	}
	return text(v)
}

// integer returns a required member, a whole number.
func (c *anthropicCheck) integer(path string, o object, name string) int {
	v, ok := o[name]
	if !ok {
		c.fail("%s: Field required", path)
		return 0
	}
	n, err := strconv.Atoi(string(v))
	if err != nil {
		c.fail("%s: Input should be a valid integer", path)
	}
	return n
}

func (c *anthropicCheck) request(body []byte) {
	if !jsontext.Value(body).IsValid() {
		c.fail("The request body is not valid JSON")
		return
	}

	o := c.object("", jsontext.Value(body), anthropicRequest)
	if model, ok := o["model"]; !ok {
		c.fail("model: Field required")
	} else if text(model) == "" {
		c.fail("model: String should have at least 1 character")
	}

	if c.maxTokens = c.integer("max_tokens", o, "max_tokens"); c.maxTokens < 1 {
		c.fail("max_tokens: must be greater than or equal to 1")
	}
	if v, ok := o["stream"]; ok && v.Kind() != 't' && v.Kind() != 'f' {
		c.fail("stream: Input should be a valid boolean")
	}

	_, c.container = o["container"]

	// Only the first failure counts: this order decides about the reported one.
	c.checkTools(o)
	c.checkSystem(o)
	c.checkTemperature(o)
	c.checkThinking(o)
	c.checkToolChoice(o)

	if v, ok := o["cache_control"]; ok {
		c.cacheControl("cache_control", object{"cache_control": v})
	}
	if v, ok := o["messages"]; ok {
		c.checkMessages(v)
	} else {
		c.fail("messages: Field required")
	}

	if c.cached > 4 {
		c.fail("A maximum of 4 blocks with cache_control may be provided. Found %d.", c.cached)
	}

	// The relations between blocks are checked only if each block is valid by itself.
	if c.message == "" {
		c.conversation()
	}
}

func (c *anthropicCheck) checkSystem(o object) {
	v, ok := o["system"]
	if !ok {
		return
	}

	// The API takes a string or a list of text blocks.
	if v.Kind() == '"' {
		c.systemText(text(v))
		return
	}

	for i, b := range c.list("system", v) {
		path := fmt.Sprintf("system.%d", i)
		block := c.object(path, b, anthropicBlocks["text"])
		if kind := c.text(path, block, "type"); kind != "text" {
			c.fail("%s.type: Input should be 'text'", path)
		}

		// A marker on empty text has an error text of its own, so look for it before the empty text itself.
		prompt := c.text(path, block, "text")
		if _, marked := block["cache_control"]; marked && prompt == "" {
			c.fail("%s: cache_control cannot be set for empty text blocks", path)
		}
		c.systemText(prompt)
		c.cacheControl(path, block)
	}
}

func (c *anthropicCheck) systemText(prompt string) {
	switch {
	case prompt == "":
		c.fail("system: text content blocks must be non-empty")
	case strings.TrimSpace(prompt) == "":
		c.fail("system: text content blocks must contain non-whitespace text")
	}
}

// cacheControl checks and counts the cache marker of a block. It must be called in the order tools, system, messages.
func (c *anthropicCheck) cacheControl(path string, block object) {
	v, ok := block["cache_control"]
	if !ok || string(v) == "null" {
		return
	}

	mark := c.object(path+".cache_control", v, members("type ttl"))
	if text(mark["type"]) != "ephemeral" {
		c.fail("%s.cache_control.type: Input should be 'ephemeral'", path)
	}

	c.cached++

	// A marker without a TTL counts as one of five minutes.
	ttl := "5m"
	if v, ok := mark["ttl"]; ok {
		ttl = text(v)
	}

	switch ttl {
	case "5m":
		c.short = true
	case "1h":
		if c.short {
			c.fail("%s.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "+
				"Note that blocks are processed in the following order: `tools`, `system`, `messages`.", path)
		}
	default:
		c.fail("%s.cache_control.ttl: Input should be '5m' or '1h'", path)
	}
}

func (c *anthropicCheck) checkTemperature(o object) {
	v, ok := o["temperature"]
	if !ok {
		return
	}

	// Parsing a number fails only if it is beyond float64, and so out of range.
	if t, err := strconv.ParseFloat(string(v), 64); v.Kind() != '0' {
		c.fail("temperature: Input should be a valid number")
	} else if err != nil || t < 0 || t > 1 {
		c.fail("temperature: range: 0..1")
	}
}

func (c *anthropicCheck) checkThinking(o object) {
	v, ok := o["thinking"]
	if !ok {
		return
	}

	t := c.object("thinking", v, members("type budget_tokens display block_binding"))
	c.thinking = text(t["type"])

	switch c.thinking {
	case "enabled":
		budget := c.integer("thinking.enabled.budget_tokens", t, "budget_tokens")
		if budget < 1024 {
			c.fail("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
		}
		// The API counts thinking as part of max_tokens.
		if budget >= c.maxTokens {
			c.fail("`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at " +
				"https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size")
		}
		if v, ok := o["temperature"]; ok && string(v) != "1" && string(v) != "1.0" {
			c.fail("`temperature` may only be set to 1 when thinking is enabled. Please consult our documentation at " +
				"https://docs.claude.com/en/docs/build-with-claude/extended-thinking#important-considerations-when-using-extended-thinking")
		}
		if _, ok := o["top_k"]; ok {
			c.fail("`top_k` must be unset when thinking is enabled. Please consult our documentation at " +
				"https://docs.claude.com/en/docs/build-with-claude/extended-thinking#important-considerations-when-using-extended-thinking")
		}
	case "adaptive", "disabled":
		if _, ok := t["budget_tokens"]; ok {
			c.fail("thinking.%s.budget_tokens: Extra inputs are not permitted", c.thinking)
		}
	case "":
		// A request may set block_binding and leave out the type.
		if _, ok := t["block_binding"]; !ok {
			c.fail("thinking.type: Field required")
		}
	default:
		c.fail("thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'", c.thinking)
	}
}

func (c *anthropicCheck) checkToolChoice(o object) {
	v, ok := o["tool_choice"]
	if !ok {
		return
	}

	choice := c.object("tool_choice", v, members("type name disable_parallel_tool_use"))
	if len(c.tools) == 0 {
		c.fail("tool_choice: tool_choice may only be specified while providing tools.")
	}

	kind := text(choice["type"])
	switch kind {
	case "auto", "none":
		return
	case "any":
	case "tool":
		if name := c.text("tool_choice.tool", choice, "name"); !slices.Contains(c.tools, name) {
			c.fail("Tool '%s' not found in provided tools", name)
		}
	default:
		c.fail("tool_choice: Input tag '%s' found using 'type' does not match any of the expected tags: 'any', 'auto', 'none', 'tool'", kind)
	}

	// The choices "any" and "tool" arrive here: they force a call, and the API refuses that beside thinking.
	if c.thinking == "enabled" || c.thinking == "adaptive" {
		c.fail("Thinking may not be enabled when tool_choice forces tool use.")
	}
}

func (c *anthropicCheck) checkMessages(v jsontext.Value) {
	messages := c.list("messages", v)
	if len(messages) == 0 {
		c.fail("messages: at least one message is required")
	}
	if len(messages) > 100_000 {
		c.fail("messages: List should have at most 100000 items after validation, not %d", len(messages))
	}

	for i, v := range messages {
		path := fmt.Sprintf("messages.%d", i)
		m := c.object(path, v, nil)

		// A system message stands between others: instructions and changes of the tools (BetaMessageParamRoleSystem of
		// the SDK; recorded with claude-opus-4-8). Older models refuse it.
		role := c.text(path, m, "role")
		if role == "system" && i > 0 {
			c.systemMessage(path, m)
			continue
		}
		c.only(path, m, members("role content"))
		if role != "user" && role != "assistant" {
			c.fail("%s.role: Input should be 'user' or 'assistant'", path)
		}

		body, ok := m["content"]
		switch {
		case !ok:
			c.fail("%s.content: Field required", path)
		// A string counts as one text block.
		case body.Kind() == '"':
			if text(body) == "" {
				c.emptyMessage(i)
			}
			c.blank(!isBlank(text(body)))
			c.blocks = append(c.blocks, anthropicRequestBlock{message: i, role: role, kind: "text"})
		default:
			c.content(i, role, body)
		}
	}
}

// systemMessage checks a system message between others.
func (c *anthropicCheck) systemMessage(path string, m object) {
	c.only(path, m, members("role content clear_at output_config"))

	// A string counts as one text block.
	body := m["content"]
	if body.Kind() == '"' {
		c.blank(!isBlank(text(body)))
		return
	}

	for j, v := range c.list(path+".content", body) {
		at := fmt.Sprintf("%s.content.%d", path, j)
		block := c.object(at, v, nil)
		switch kind := c.text(at, block, "type"); kind {
		case "text":
			c.blank(!isBlank(c.text(at, block, "text")))
		case "tool_addition", "tool_removal":
		default:
			c.fail("%s: Input tag '%s' found using 'type' does not match any of the expected tags: 'text', 'tool_addition', 'tool_removal'", at, kind)
		}
		c.cacheControl(at, block)
	}
}

func (c *anthropicCheck) emptyMessage(i int) {
	c.fail("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
}

func (c *anthropicCheck) blank(ok bool) {
	if !ok {
		c.fail("messages: text content blocks must contain non-whitespace text")
	}
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// content checks the blocks of message i.
func (c *anthropicCheck) content(i int, role string, v jsontext.Value) {
	list := c.list(fmt.Sprintf("messages.%d.content", i), v)
	if len(list) == 0 {
		c.emptyMessage(i)
	}

	// A blank text is accepted beside another text or a tool call, but not alone.
	blank, solid := false, false
	for j, v := range list {
		path := fmt.Sprintf("messages.%d.content.%d", i, j)
		block := c.block(path, v)
		block.message, block.block, block.role = i, j, role
		c.side(path, role, block.kind)
		c.blocks = append(c.blocks, block)
		if block.kind == "text" && isBlank(block.name) {
			blank = true
		}
		solid = solid || block.kind == "text" && !isBlank(block.name) || block.kind == "tool_use"
	}

	c.blank(!blank || solid)
}

// side checks that a message of the role may contain a block of the kind.
func (c *anthropicCheck) side(path, role, kind string) {
	switch {
	case role == "user" && !anthropicUserBlocks[kind]:
		c.fail("%s: `%s` blocks can only be in `assistant` messages", path, kind)
	case role == "assistant" && kind != "text" && kind != "container_upload" && anthropicUserBlocks[kind]:
		c.fail("%s: `%s` blocks can only be in `user` messages", path, kind)
	}
}

// isServerResult reports whether a block of the kind is the result of a server tool.
func isServerResult(kind string) bool {
	return strings.HasSuffix(kind, "_tool_result")
}

// block checks one block by itself. The name of the returned block is the text if the block is a text.
func (c *anthropicCheck) block(path string, v jsontext.Value) anthropicRequestBlock {
	o := c.object(path, v, nil)
	block := anthropicRequestBlock{kind: c.text(path, o, "type")}
	allowed, known := anthropicBlocks[block.kind]

	// The API has more server tools than are listed. Their results have one form.
	if !known && isServerResult(block.kind) {
		allowed, known = anthropicServerResult, true
	}
	// A tool_reference is valid only inside a tool result.
	if !known || block.kind == "tool_reference" {
		c.fail("%s: Input tag '%s' found using 'type' does not match any of the expected tags: 'text', 'image', 'document', "+
			"'tool_use', 'tool_result', 'thinking', 'redacted_thinking' and those of server tools", path, block.kind)
		return block
	}

	// From here on the API's own paths name the kind of the block.
	path += "." + block.kind
	c.only(path, o, allowed)
	block.caller = text(c.optional(path+".caller", o, "caller")["tool_id"])
	c.marked(path, block.kind, o)

	switch block.kind {
	case "text":
		block.name = c.text(path, o, "text")
		c.textBlock(path, o)
	case "image", "document":
		c.source(path, block.kind, o)
	case "tool_use", "server_tool_use", "mcp_tool_use":
		block.id, block.name = c.call(path, block.kind, o)
	case "tool_result":
		block.id = c.text(path, o, "tool_use_id")
		c.result(path, o)
	case "thinking":
		c.text(path, o, "thinking")
		if c.text(path, o, "signature") == "" {
			c.fail("%s: Invalid `signature` in `thinking` block", strings.TrimSuffix(path, ".thinking"))
		}
	case "redacted_thinking":
		if c.text(path, o, "data") == "" {
			c.fail("%s: Invalid `data` in `redacted_thinking` block", strings.TrimSuffix(path, ".redacted_thinking"))
		}
	default:
		if isServerResult(block.kind) {
			block.id = c.text(path, o, "tool_use_id")
		}
	}
	return block
}

func (c *anthropicCheck) optional(path string, o object, name string) object {
	v, ok := o[name]
	if !ok || string(v) == "null" {
		return object{}
	}
	return c.object(path, v, nil)
}

// marked checks the cache marker of a block.
func (c *anthropicCheck) marked(path, kind string, o object) {
	if v, ok := o["cache_control"]; ok && kind == "text" && text(o["text"]) == "" && string(v) != "null" {
		c.fail("%s: cache_control cannot be set for empty text blocks", path)
	}
	c.cacheControl(path, o)
}

func (c *anthropicCheck) textBlock(path string, o object) {
	if text(o["text"]) == "" {
		c.fail("messages: text content blocks must be non-empty")
	}
	if v, ok := o["citations"]; ok && string(v) != "null" {
		c.list(path+".citations", v)
	}
}

func (c *anthropicCheck) call(path, kind string, o object) (id, name string) {
	id, name = c.text(path, o, "id"), c.text(path, o, "name")

	// IDs of server tools have a prefix. Names are checked only for the program's tools: the API names the others.
	pattern := anthropicID
	if kind == "server_tool_use" {
		pattern = anthropicServerID
	}
	if !pattern.MatchString(id) {
		c.fail("%s.id: String should match pattern '%s'", path, pattern)
	}
	if kind == "tool_use" && !anthropicName.MatchString(name) {
		c.fail("%s.name: String should match pattern '%s'", path, anthropicName)
	}

	if input, ok := o["input"]; !ok {
		c.fail("%s.input: Field required", path)
	} else if input.Kind() != '{' {
		c.fail("%s.input: Input should be a valid dictionary", path)
	}
	return id, name
}

// result checks the content of a tool result.
func (c *anthropicCheck) result(path string, o object) {
	failed := string(o["is_error"]) == "true"
	if v, ok := o["is_error"]; ok && v.Kind() != 't' && v.Kind() != 'f' {
		c.fail("%s.is_error: Input should be a valid boolean", path)
	}

	// A result may be empty unless it is an error. As a string it may be empty, but not blank.
	v, ok := o["content"]
	empty := !ok
	switch {
	case !ok:
	case v.Kind() == '"':
		empty = isBlank(text(v))
		c.blank(!empty || text(v) == "")
	default:
		list := c.list(path+".content", v)
		empty = len(list) == 0
		c.resultBlocks(path, list, failed)
	}

	if failed && empty {
		c.fail("%s: content cannot be empty if `is_error` is true", path)
	}
}

func (c *anthropicCheck) resultBlocks(path string, list []jsontext.Value, failed bool) {
	solid := len(list) == 0 // it has something beside blank texts, or nothing at all
	for k, v := range list {
		at := fmt.Sprintf("%s.content.%d", path, k)
		o := c.object(at, v, nil)
		kind := c.text(at, o, "type")
		if !anthropicResultBlocks[kind] {
			c.fail("%s: Input tag '%s' found using 'type' does not match any of the expected tags: 'document', 'image', "+
				"'search_result', 'text', 'tool_reference'", at, kind)
			return
		}

		if failed && kind != "text" {
			c.fail("%s: all content must be type `text` if `is_error` is true", path)
		}

		// A block in a result keeps the rules of its kind, as in a message.
		at += "." + kind
		c.only(at, o, anthropicBlocks[kind])
		c.marked(at, kind, o)

		switch kind {
		case "text":
			c.text(at, o, "text")
			c.textBlock(at, o)
			solid = solid || !isBlank(text(o["text"]))
		case "image", "document":
			c.source(at, kind, o)
			solid = true
		default:
			solid = true
		}
	}
	c.blank(solid)
}

const anthropicImageMax = 5 << 20 // bytes of base64 text

// source checks the source of an image or a document.
func (c *anthropicCheck) source(path, kind string, o object) {
	v, ok := o["source"]
	if !ok {
		c.fail("%s.source: Field required", path)
		return
	}

	path += ".source"
	s := c.object(path, v, nil)
	place := c.text(path, s, "type")
	at := path + "." + place

	switch place {
	case "base64":
		c.only(at, s, members("type media_type data"))
		if kind == "image" {
			c.image(at, c.text(at, s, "media_type"), c.text(at, s, "data"))
		} else {
			c.pdf(at, c.text(at, s, "media_type"), c.text(at, s, "data"))
		}
	case "url":
		c.only(at, s, members("type url"))
		if !strings.HasPrefix(c.text(at, s, "url"), "https://") {
			c.fail("%s: Only HTTPS URLs are supported.", at)
		}
	case "file":
		c.only(at, s, members("type file_id"))
		if c.text(at, s, "file_id") == "" {
			c.fail("%s.file_id: String should have at least 1 character", at)
		}
	case "text", "content":
		// Only a document may contain its text, or blocks.
		if kind == "image" {
			c.fail("%s: Input tag '%s' found using 'type' does not match any of the expected tags: 'base64', 'file', 'url'", path, place)
		}
		c.inlineDocument(at, place, s)
	default:
		c.fail("%s: Input tag '%s' found using 'type' does not match any of the expected tags: 'base64', 'file', 'url'",
			path, place)
	}
}

func (c *anthropicCheck) inlineDocument(at, place string, s object) {
	if place == "content" {
		c.only(at, s, members("type content"))
		return
	}
	c.only(at, s, members("type media_type data"))
	if c.text(at, s, "media_type") != "text/plain" {
		c.fail("%s.media_type: Input should be 'text/plain'", at)
	}
	if isBlank(c.text(at, s, "data")) {
		c.fail("%s.data: String should have at least 1 character", at)
	}
}

func (c *anthropicCheck) image(at, mediaType, data string) {
	if !slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp"}, mediaType) {
		c.fail("%s.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'", at)
		return
	}
	if len(data) > anthropicImageMax {
		c.fail("%s: image exceeds 5 MB maximum: %d bytes > %d bytes", at, len(data), anthropicImageMax)
		return
	}

	// The API looks at the bytes: they must be an image, and of the declared type.
	found := http.DetectContentType(c.base64(at, data))
	if !strings.HasPrefix(found, "image/") {
		c.fail("%s.data: Could not process image", at)
	} else if found != mediaType {
		c.fail("%s: The image was specified using the %s media type, but the image appears to be a %s image", at,
			mediaType, found)
	}
}

func (c *anthropicCheck) pdf(at, mediaType, data string) {
	if mediaType != "application/pdf" {
		c.fail("%s.media_type: Input should be 'application/pdf'", at)
		return
	}
	if http.DetectContentType(c.base64(at, data)) != mediaType {
		c.fail("%s.data: The PDF specified was not valid.", at)
	}
}

func (c *anthropicCheck) base64(at, data string) []byte {
	// Go's decoder skips line breaks, so they are looked for apart.
	b, err := base64.StdEncoding.Strict().DecodeString(data)
	if err != nil || len(b) == 0 || strings.ContainsAny(data, "\r\n") {
		c.fail("%s: invalid base64 data", at)
	}
	return b
}
