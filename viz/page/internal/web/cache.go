package web

import (
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

// caches sets Cache of the responses among the new nodes.
func (m *Model) caches(nodes []Node, keys map[node.ID]int) {
	responses := map[int]int{} // the index of a response, by key
	for i, n := range nodes {
		if n.Sort == "assistant" {
			responses[n.Key] = i
		}
	}
	if len(responses) == 0 {
		return
	}

	for _, call := range promptcache.Calls(m.d, &promptcache.Options{Cache: m.Cache}) {
		i, ok := responses[keys[call.Node.ID()]]
		if !ok {
			continue
		}

		c := &Cache{Input: call.Input, Estimated: call.Estimated, Predicted: call.Predicted, Text: clip(call.String())}

		// The first request of a conversation is compared with requests of other conversations. It does not break their
		// cache.
		c.Broke = call.Break.Lost() && CallBefore(call.Node) != nil
		if call.Break.Node != nil {
			if key, ok := keys[call.Break.Node.ID()]; ok {
				c.At = &key
			}
		}

		nodes[i].Cache = c
	}
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
