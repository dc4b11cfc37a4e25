package anthropic

import (
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// noteMember is the member of the last block of a response with facts about the response that later requests need. It is
// never sent. A fact must be in a block, because a request consists of nothing else.
const noteMember = "plait"

// containerMember is the member of a request and of a response for the container of code execution.
const containerMember = "container"

// withContainer returns the last block of an unfinished response with the ID of its container. The API refuses the
// next request of the turn without it. The container of a finished response is not kept: it expires after minutes,
// and requests with an expired one are refused.
func withContainer(last content.Block, stop content.Stop, container content.JSON) content.Block {
	if stop != content.StopToolUse && stop != content.StopPause {
		return last
	}
	list, _ := jsonx.Members(container) // nil without a container
	id, _, _ := jsonx.TakeText(list, "id")
	if id == "" {
		return last
	}
	note := jsonx.Member{Name: noteMember, Value: jsonx.Object(member(containerMember, jsonx.Quote(id)))}

	if b, ok := last.(content.Opaque); ok {
		list, _ := jsonx.Members(b.JSON) // it was decoded before
		b.JSON = jsonx.Object(append(list, note))
		return b
	}
	list, _ = jsonx.Members(roundtrip.Extra(last).For(API)) // none without an Extra
	return roundtrip.WithExtra(last, content.Extra{API: API, JSON: jsonx.Object(append(list, note))})
}

// containerOf returns the container noted in a message, or "".
func containerOf(m content.Message) string {
	for _, b := range m.Blocks.All() {
		block := roundtrip.Extra(b).For(API)
		if o, ok := b.(content.Opaque); ok {
			block = o.JSON
		}

		var noted struct {
			Own struct {
				Container string `json:"container"`
			} `json:"plait"`
		}
		if block != "" && block.Decode(&noted) == nil && noted.Own.Container != "" {
			return noted.Own.Container
		}
	}
	return ""
}

// setContainer adds the container of the unfinished turn, if there is one, unless Options.Body has another. The
// messages of the turn are those after the user's last message without tool results.
func (b *builder) setContainer() {
	if given, _ := jsonx.Take(b.Further, containerMember); given != "" {
		return
	}
	for _, m := range b.encoded.Backward() {
		if m.Role == content.User && !answersCalls(m) {
			return
		}
		if id := containerOf(m); id != "" && m.Role == content.Assistant {
			b.Further = append(b.Further, member(containerMember, jsonx.Quote(id))...)
			return
		}
	}
}
