package anthropic

import (
	"bytes"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/dialect"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

const cacheControl = "cache_control"

// policies are the cache policies of this API.
var policies = []api.Cache{api.CacheShort, api.CacheLong, api.CacheOff}

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

// policyOf returns the policy of an imported body: whether it has markers, and for how long.
func policyOf(body []byte) api.Cache {
	switch {
	case !bytes.Contains(body, []byte(`"`+cacheControl+`"`)):
		return api.CacheOff
	case bytes.Contains(body, []byte(`"1h"`)):
		return api.CacheLong
	}
	return api.CacheShort
}

// appendMark appends a marker, if there is one.
func appendMark(dst []byte, mark content.JSON) []byte {
	if mark == "" {
		return dst
	}
	return append(write.Name(dst, cacheControl), mark...)
}

// none is the index of no block.
const none = -1

// marked returns the index of the block of m with the marker of a policy, with end more messages after it. The last two
// user messages get one.
//
// The earlier of the two had the last marker of the previous request. So the API finds the cache entry of that request,
// even if many blocks were added since.
func marked(m content.Message, end int) int {
	if m.Role != content.User || end >= dialect.Far {
		return none
	}

	// The last block able to have a marker.
	for j := m.Blocks.Len() - 1; j >= 0; j-- {
		switch block := m.Blocks.At(j).(type) {
		case content.Text:
			if !blank(block.Text) {
				return j
			}
		case content.Image, content.Document, content.ToolResult:
			return j
		}
	}
	return none
}
