package fake

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/content"
)

// bindings holds the bindings of the thinking in responses, by its signature or data.
type bindings map[string][]binding

// binding is the context of one block of thinking: its own content, and everything before it.
type binding struct {
	block    string
	system   string
	tools    string
	position int    // number of blocks other than thinking before its response
	digest   string // the digest of these blocks
	before   string // the thinking before it; "" for none
}

// anthropicPrefix holds the parts of a request to bind thinking to, without cache markers.
type anthropicPrefix struct {
	system, tools string
	blocks        []anthropicBound
	digests       []string // digests[n] is the digest of the first n blocks other than thinking
	drops         bool     // drop mismatched thinking, instead of refusing the request
}

// anthropicBound is one block of a message.
type anthropicBound struct {
	message, block int // its position
	user           bool
	position       int    // number of blocks other than thinking before it
	thinking       string // the signature or data of thinking; "" for another block
	whole          string
}

// anthropicPrefixOf reads a request that has passed CheckAnthropic.
func anthropicPrefixOf(body []byte) anthropicPrefix {
	var r struct {
		System   jsontext.Value   `json:"system"`
		Tools    []jsontext.Value `json:"tools"`
		Messages []struct {
			Role    string         `json:"role"`
			Content jsontext.Value `json:"content"`
		} `json:"messages"`
		Thinking struct {
			Binding struct {
				Mismatch string `json:"prefix_mismatch_behavior"`
			} `json:"block_binding"`
		} `json:"thinking"`
	}

	_ = json.Unmarshal(body, &r) // a request of another shape was refused
	p := anthropicPrefix{
		system: strings.Join(unmarkedBlocks(r.System), ","), digests: []string{""}, drops: r.Thinking.Binding.Mismatch == "drop_block",
	}

	for _, tool := range r.Tools {
		p.tools += unmarked(tool) + ","
	}

	// A digest chains everything before it: one comparison finds any change.
	for i, m := range r.Messages {
		for j, block := range unmarkedBlocks(m.Content) {
			b := anthropicBound{message: i, block: j, user: m.Role == "user", position: len(p.digests) - 1,
				thinking: thoughtIn(block), whole: block}

			p.blocks = append(p.blocks, b)
			if b.thinking == "" {
				sum := sha256.Sum256([]byte(p.digests[b.position] + m.Role + block))
				p.digests = append(p.digests, string(sum[:]))
			}
		}
	}
	return p
}

// unmarkedBlocks returns each block in canonical form without cache markers. A string counts as a text block.
func unmarkedBlocks(v jsontext.Value) []string {
	if v.Kind() == '"' {
		v = jsontext.Value(`[{"type":"text","text":` + string(v) + `}]`)
	}
	var list []jsontext.Value
	_ = json.Unmarshal(v, &list) // empty if there are none

	var blocks []string
	for _, b := range list {
		blocks = append(blocks, unmarked(b))
	}
	return blocks
}

func unmarked(v jsontext.Value) string {
	var o object
	if json.Unmarshal(v, &o) == nil {
		delete(o, "cache_control")
		// The blocks inside a tool result may have markers, too.
		if o["content"].Kind() == '[' {
			o["content"] = jsontext.Value("[" + strings.Join(unmarkedBlocks(o["content"]), ",") + "]")
		}
		v = written(o)
	}
	return string(content.JSON(v).Canonical())
}

// thoughtIn returns the signature or data of a block of thinking, or "" for another block.
func thoughtIn(block string) string {
	var b struct {
		Type      string `json:"type"`
		Signature string `json:"signature"`
		Data      string `json:"data"`
	}
	_ = json.Unmarshal([]byte(block), &b) // a block of another shape is not thinking

	switch b.Type {
	case "thinking":
		return b.Signature
	case "redacted_thinking":
		return b.Data
	}
	return ""
}

// add binds the thinking in a response to the request.
func (known bindings) add(request []byte, answer string) {
	var a struct {
		Content jsontext.Value `json:"content"`
	}
	if json.Unmarshal([]byte(answer), &a) != nil {
		return // a stream
	}

	p := anthropicPrefixOf(request)
	before, _ := known.check(p)
	position := len(p.digests) - 1

	// Each block of thinking is bound to the one before it, in the request or in this response.
	for _, block := range unmarkedBlocks(a.Content) {
		if thought := thoughtIn(block); thought != "" {
			known[thought] = append(known[thought], binding{block, p.system, p.tools, position, p.digests[position], before})
			before = thought
		}
	}
}

// check returns the last thinking in the request not dropped, and the error message if the request is refused.
func (known bindings) check(p anthropicPrefix) (last, message string) {
	turn := 0 // the number of blocks other than thinking before the assistant's current turn
	for _, b := range p.blocks {
		if b.user {
			turn = b.position + 1
		}
		if b.thinking == "" {
			continue
		}

		why := ""
		// The same thinking may have come more than once: one matching binding is enough.
		for _, bound := range known[b.thinking] {
			if why = bound.differs(p, b, turn, last); why == "" {
				break
			}
		}

		// Dropped thinking counts as absent for the thinking after it.
		switch {
		case why == "":
			last = b.thinking
		case !p.drops:
			return last, fmt.Sprintf("messages.%d.content.%d: %s", b.message, b.block, why)
		}
	}
	return last, ""
}

const (
	anthropicOtherThinking = "Invalid `signature` in `thinking` block"
	anthropicOtherPrefix   = "Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set " +
		"`thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\"."
)

// differs returns the error message if this binding does not allow b at its place, or "". Turn is the beginning of the
// assistant's turn, and last is the thinking before b.
func (want binding) differs(p anthropicPrefix, b anthropicBound, turn int, last string) string {
	what := ""
	switch {
	// The signature is known, so the block must be the one sent with it.
	case want.block != b.whole:
		return anthropicOtherThinking

	// The API binds thinking to the system prompts, the tools and every message before it.
	case want.system != p.system:
		what = "The system prompt differs."
	case want.tools != p.tools:
		what = "The tools differ."
	// The block may move within the assistant's turn of its response, but not into another turn.
	case want.position < turn || want.position > b.position || p.digests[want.position] != want.digest:
		what = "The messages before it differ."

	// Each block also records the thinking before it: all of that may be removed, but a gap is refused.
	case last != "" && last != want.before:
		what = "The thinking before it differs."
	default:
		return ""
	}
	return anthropicOtherPrefix + " " + what
}
