package anthropic

import (
	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

const (
	cacheControl = "cache_control"
	// maxMarks is how many cache_control markers the API takes.
	maxMarks = 4
)

// spot is where a cache_control marker can stand; its numbers begin at 1, and 0 is none.
type spot struct{ tool, system, message, block, inner int }

// marked is a marker that the conversation brought with it.
type marked struct {
	at   spot
	mark content.JSON
}

// markers decides where cache_control stands: where the conversation itself says it, or, when it says it nowhere, where
// Options.Cache wants it.
func (b *builder) markers() {
	own := b.ownMarks()
	whole, _ := take(b.further, cacheControl)
	b.marks = map[spot]content.JSON{}
	if len(own) == 0 && whole == "" {
		b.place()
		return
	}
	room := maxMarks
	if whole != "" {
		room--
	}
	for len(own) > room { // the oldest message's is the one that caches least
		oldest := 0
		for oldest < len(own)-1 && own[oldest].at.message == 0 {
			oldest++
		}
		own = append(own[:oldest:oldest], own[oldest+1:]...)
		b.note(api.RepairOption, "one cache_control too many is left out")
	}
	short := false
	for _, m := range own {
		var ttl struct {
			TTL string `json:"ttl"`
		}
		_ = m.mark.Decode(&ttl) // a marker without one is short
		long := ttl.TTL == string(CacheLong)
		if short && long {
			b.note(api.RepairOption, "a cache_control of an hour after one of 5 minutes is left out")
			continue
		}
		short = short || !long
		b.marks[m.at] = m.mark
	}
}

// ownMarks returns the markers in the tools and messages, in order, where they may stand.
func (b *builder) ownMarks() []marked {
	var found []marked
	add := func(at spot, e content.JSON) {
		if e == "" || e == "{}" {
			return
		}
		list, _ := members(e) // it was checked when the block was made
		if mark, _ := take(list, cacheControl); mark != "" && mark != "null" {
			found = append(found, marked{at, mark})
		}
	}
	for i, t := range b.tools {
		add(spot{tool: i + 1}, t.Extra.For(API))
	}
	for i, m := range b.messages {
		for j, block := range m.Blocks.All() {
			at := spot{message: i + 1, block: j + 1}
			if r, ok := block.(content.ToolResult); ok {
				for k, inner := range r.Content.All() {
					at.inner = k + 1
					add(at, extraOf(inner))
				}
				at.inner = 0
			}
			add(at, extraOf(block))
		}
	}
	return found
}

// extraOf returns the members of a block that may hold a marker.
func extraOf(b content.Block) content.JSON {
	switch b := b.(type) {
	case content.Text:
		return b.Extra.For(API)
	case content.Image:
		return b.Extra.For(API)
	case content.Document:
		return b.Extra.For(API)
	case content.ToolUse:
		return b.Extra.For(API)
	case content.ToolResult:
		return b.Extra.For(API)
	case content.Opaque:
		return b.JSON
	}
	return "" // thinking cannot be marked
}

// place sets the markers of Options.Cache: one at the end of what never changes, and one on each of the last two messages of the
// user's side. The earlier of the two stands where the request before this one had its last, so that what that one wrote is
// found, however many blocks came since.
func (b *builder) place() {
	var mark content.JSON
	switch b.options.Cache {
	case CacheOff:
		return
	case CacheLong:
		mark = `{"type":"ephemeral","ttl":"1h"}`
	default:
		mark = `{"type":"ephemeral"}`
	}
	if n := len(b.system); n > 0 {
		b.marks[spot{system: n}] = mark
	} else if n := len(b.tools); n > 0 && b.tools[n-1].Extra.For(API) == "" {
		b.marks[spot{tool: n}] = mark
	}
	left := 2
	for i := len(b.messages) - 1; i >= 0 && left > 0; i-- {
		if b.messages[i].Role != content.User {
			continue
		}
		left--
		if j := lastMarkable(b.messages[i]); j > 0 {
			b.marks[spot{message: i + 1, block: j}] = mark
		}
	}
}

// lastMarkable returns the number, from 1, of the last block of m that can have a marker; 0 when none can.
func lastMarkable(m content.Message) int {
	for j := m.Blocks.Len(); j > 0; j-- {
		switch block := m.Blocks.At(j - 1).(type) {
		case content.Text:
			if !blank(block.Text) {
				return j
			}
		case content.Image, content.Document, content.ToolResult:
			return j
		}
	}
	return 0
}

// appendMark writes the marker of a spot, if it has one.
func (b *builder) appendMark(dst []byte, at spot) []byte {
	mark, ok := b.marks[at]
	if !ok {
		return dst
	}
	return append(content.AppendRaw(dst, cacheControl), mark...)
}
