package fake

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/content"
)

// bindings is what the thinking in answers is bound to, by its signature or its data.
type bindings map[string][]binding

// binding is what one block of thinking is bound to: that it comes back as it was, and after what.
type binding struct {
	block  string
	system string
	tools  string
	said   int    // how many blocks other than thinking stood before its answer
	digest string // and the digest of them
	before string // the thinking before it; "" is none
}

// anthropicPrefix is a request as far as thinking is bound to it, without markers for the cache.
type anthropicPrefix struct {
	system, tools string
	blocks        []anthropicBound
	digests       []string // of the blocks other than thinking: of the first n of them at n
	drops         bool     // thinking that does not fit is to be dropped
}

// anthropicBound is one block of a message.
type anthropicBound struct {
	message, block int // its place
	user           bool
	said           int    // how many blocks other than thinking stand before it
	thinking       string // its signature or data, where it is thinking
	whole          string
}

// anthropicPrefixOf reads a request that was checked.
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
	for i, m := range r.Messages {
		for j, block := range unmarkedBlocks(m.Content) {
			b := anthropicBound{message: i, block: j, user: m.Role == "user", said: len(p.digests) - 1, thinking: thoughtIn(block), whole: block}
			p.blocks = append(p.blocks, b)
			if b.thinking == "" {
				sum := sha256.Sum256([]byte(p.digests[b.said] + m.Role + block))
				p.digests = append(p.digests, string(sum[:]))
			}
		}
	}
	return p
}

// unmarkedBlocks returns each block without markers for the cache, in a form in which equal ones are equal. What is a string is a text.
func unmarkedBlocks(v jsontext.Value) []string {
	if v.Kind() == '"' {
		v = jsontext.Value(`[{"type":"text","text":` + string(v) + `}]`)
	}
	var list []jsontext.Value
	_ = json.Unmarshal(v, &list) // there may be none
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
		if o["content"].Kind() == '[' {
			o["content"] = jsontext.Value("[" + strings.Join(unmarkedBlocks(o["content"]), ",") + "]")
		}
		v = written(o)
	}
	return string(content.JSON(v).Canonical())
}

// thoughtIn is what a block of thinking is known by; "" for another block.
func thoughtIn(block string) string {
	var b struct {
		Type      string `json:"type"`
		Signature string `json:"signature"`
		Data      string `json:"data"`
	}
	_ = json.Unmarshal([]byte(block), &b) // a block of another shape is none
	switch b.Type {
	case "thinking":
		return b.Signature
	case "redacted_thinking":
		return b.Data
	}
	return ""
}

// add binds the thinking in an answer to the request.
func (known bindings) add(request []byte, answer string) {
	var a struct {
		Content jsontext.Value `json:"content"`
	}
	if json.Unmarshal([]byte(answer), &a) != nil {
		return // a stream
	}
	p := anthropicPrefixOf(request)
	before, _ := known.check(p)
	said := len(p.digests) - 1
	for _, block := range unmarkedBlocks(a.Content) {
		if thought := thoughtIn(block); thought != "" {
			known[thought] = append(known[thought], binding{block, p.system, p.tools, said, p.digests[said], before})
			before = thought
		}
	}
}

// check returns the last thinking in the request that is not dropped, and why the request is refused; "" where it is not.
func (known bindings) check(p anthropicPrefix) (last, message string) {
	turn := 0 // where the turn of the assistant begins, counted as said is
	for _, b := range p.blocks {
		if b.user {
			turn = b.said + 1
		}
		if b.thinking == "" {
			continue
		}
		why := ""
		for _, bound := range known[b.thinking] {
			if why = bound.differs(p, b, turn, last); why == "" {
				break
			}
		}
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

// differs says why b, in a turn of the assistant that begins at turn and after the thinking last, is not where it was; "" where it is.
func (want binding) differs(p anthropicPrefix, b anthropicBound, turn int, last string) string {
	what := ""
	switch {
	case want.block != b.whole:
		return anthropicOtherThinking
	case want.system != p.system:
		what = "The system prompt differs."
	case want.tools != p.tools:
		what = "The tools differ."
	case want.said < turn || want.said > b.said || p.digests[want.said] != want.digest:
		what = "The messages before it differ."
	case last != "" && last != want.before:
		what = "The thinking before it differs."
	default:
		return ""
	}
	return anthropicOtherPrefix + " " + what
}
