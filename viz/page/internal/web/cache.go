package web

import (
	"slices"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/node"
	"github.com/plait-dev/plait/report/promptcache"
)

// Cache is the use of the provider's prompt cache by the request of a response.
type Cache struct {
	Input     int64  `json:"input"` // tokens of the request
	Estimated bool   `json:"estimated,omitempty"`
	Predicted int64  `json:"predicted,omitempty"` // about how many of them could be read
	Text      string `json:"text"`
	Broke     bool   `json:"broke,omitempty"` // cached tokens could not be read: they changed, or were no longer kept
	At        *int   `json:"at,omitempty"`    // the node that changed it
}

// caches returns the use of the prompt cache by the responses among the new nodes.
func (c *Changes) caches() map[node.ID]*Cache {
	isResponse := func(i int) bool {
		m, ok := c.view.nodes[i].node.Message()
		return ok && m.Role == content.Assistant
	}
	if !slices.ContainsFunc(c.fresh, isResponse) {
		return nil
	}

	caches := map[node.ID]*Cache{}
	for _, call := range promptcache.Calls(c.view.d, &promptcache.Options{Cache: c.cache}) {
		// The first request of a conversation is compared with requests of other conversations. It does not break their
		// cache.
		cache := &Cache{Input: call.Input, Estimated: call.Estimated, Predicted: call.Predicted, Text: clip(call.String())}
		cache.Broke = call.Break.Lost() && CallBefore(call.Node) != nil
		if call.Break.Node != nil {
			if key, ok := c.view.key(call.Break.Node.ID()); ok {
				cache.At = &key
			}
		}
		caches[call.Node.ID()] = cache
	}
	return caches
}

// CallBefore returns the response before n on its line of first parents, or nil if there is none.
func CallBefore(n *node.Node) *node.Node {
	for n.NumParents() > 0 {
		n = n.Parent(0)
		if m, ok := n.Message(); ok && m.Role == content.Assistant {
			return n
		}
	}
	return nil
}
