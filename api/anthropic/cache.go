package anthropic

import (
	"slices"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

const (
	cacheControl = "cache_control"
	// maxMarks is the API's limit on cache_control markers in a request.
	maxMarks = 4
	shortTTL = "5m"
	longTTL  = "1h"
)

// markOf returns the marker of a policy; "" for none.
func markOf(policy api.Cache) content.JSON {
	switch policy {
	case api.CacheShort:
		return `{"type":"ephemeral"}`
	case api.CacheLong:
		return `{"type":"ephemeral","ttl":"1h"}`
	}
	return ""
}

// spot is a possible position of a cache_control marker. Its numbers begin at 1; 0 is none.
type spot struct{ tool, system, message, block, inner int }

// marks maps positions to their markers.
type marks map[spot]content.JSON

// append appends the marker of a position, if it has one.
func (m marks) append(dst []byte, at spot) []byte {
	if mark, ok := m[at]; ok {
		return append(write.Name(dst, cacheControl), mark...)
	}
	return dst
}

// frontMarks sets the marker of a policy at the end of the tools and system prompts: these do not change during a
// conversation. lastMarks sets the markers on messages.
func frontMarks(mark content.JSON, tools []content.Tool, system []string) marks {
	if mark == "" {
		return nil
	}
	if n := len(system); n > 0 {
		return marks{{system: n}: mark}
	}

	if n := len(tools); n > 0 && tools[n-1].Extra.For(API) == "" {
		return marks{{tool: n}: mark}
	}
	return nil
}

// lastMarks returns the marker of a policy for m, with end more messages after it. The last two user messages get one.
//
// The earlier of the two had the last marker of the previous request. So the API finds the cache entry of that request,
// even if many blocks were added since.
func lastMarks(mark content.JSON, m content.Message, end int) marks {
	if mark == "" || m.Role != content.User || end >= dialect.Far {
		return nil
	}
	if at := lastMarkable(m); at > 0 {
		return marks{{block: at}: mark}
	}
	return nil
}

// lastMarkable returns the number, from 1, of the last block of m able to have a marker; 0 if there is none.
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

// marked is a marker of the conversation itself.
type marked struct {
	at   spot
	mark content.JSON
}

// ownMarks returns the acceptable markers of tools, system prompts and messages, at most room, and a note for each of
// the others.
func ownMarks(tools []content.Tool, system []content.JSON, messages []content.Message, room int) (marks, []string) {
	// Drop the markers the API would refuse: one of them would fail the whole request.
	own, kept := foundMarks(tools, system, messages), marks{}

	var left []string
	own = slices.DeleteFunc(own, func(m marked) bool {
		_, ok := ttlOf(m.mark)
		if !ok {
			left = append(left, "an invalid cache_control is left out")
		}
		return !ok
	})

	// Markers of messages go first, the oldest before the others: it caches the least.
	for len(own) > room {
		oldest := 0
		for oldest < len(own)-1 && own[oldest].at.message == 0 {
			oldest++
		}

		own = append(own[:oldest:oldest], own[oldest+1:]...)
		left = append(left, "a cache_control beyond the limit of the API is left out")
	}

	// The API refuses a marker of an hour after one of 5 minutes.
	short := false
	for _, m := range own {
		ttl, _ := ttlOf(m.mark)
		if short && ttl == longTTL {
			left = append(left, "a cache_control of 1 hour after one of 5 minutes is left out")
			continue
		}
		short = short || ttl != longTTL
		kept[m.at] = m.mark
	}
	return kept, left
}

// ttlOf returns how long the API caches up to a marker. It is not ok if the API would refuse the marker.
func ttlOf(mark content.JSON) (ttl string, ok bool) {
	list, err := jsonx.Members(mark)
	if err != nil {
		return "", false
	}
	kind, list, _ := jsonx.TakeText(list, "type")
	ttl, list, given := jsonx.TakeText(list, "ttl")
	if !given {
		ttl = shortTTL
	}

	return ttl, kind == "ephemeral" && (ttl == shortTTL || ttl == longTTL) && len(list) == 0
}

// markIn returns the marker in a block's further members; "" for none.
func markIn(further content.JSON) content.JSON {
	if further == "" || further == "{}" {
		return ""
	}
	list, _ := jsonx.Members(further) // without members if it is not an object
	mark, _ := jsonx.Take(list, cacheControl)
	if mark == "null" {
		return ""
	}
	return mark
}

// foundMarks returns the markers of tools, system prompts and messages, in order, as far as they may have one.
func foundMarks(tools []content.Tool, system []content.JSON, messages []content.Message) []marked {
	var found []marked
	add := func(at spot, further content.JSON) {
		if mark := markIn(further); mark != "" {
			found = append(found, marked{at, mark})
		}
	}

	for i, t := range tools {
		add(spot{tool: i + 1}, t.Extra.For(API))
	}
	for i, further := range system {
		add(spot{system: i + 1}, further)
	}

	for i, m := range messages {
		for j, block := range m.Blocks.All() {
			at := spot{message: i + 1, block: j + 1}

			// The markers inside a result come before its own.
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

// of returns the markers of message i, with positions relative to it.
func (m marks) of(i int) marks {
	var own marks
	for at, mark := range m {
		if at.message == i+1 {
			if own == nil {
				own = marks{}
			}
			at.message = 0
			own[at] = mark
		}
	}
	return own
}
