package openai

import (
	"errors"
	"fmt"

	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// errNoText is the error for a part of a system prompt other than text.
var errNoText = errors.New("it is not text")

// importTexts reads the texts of content: absent, a string, or a list of parts. Further members of the parts are
// dropped.
func importTexts(where string, j content.JSON) ([]string, error) {
	if text, ok := jsonx.Text(j); ok {
		return []string{text}, nil
	}
	if j == "" || j == "null" {
		return nil, nil
	}

	parts, err := roundtrip.ImportObjects(where, j)
	if err != nil {
		return nil, err
	}

	var texts []string
	for i, part := range parts {
		text, ok := jsonx.Text(value(part.List, "text"))
		if !ok {
			return nil, roundtrip.NotRead(fmt.Sprintf("%s[%d]", where, i), errNoText)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// noArguments is the schema of a function without declared arguments.
const noArguments content.JSON = `{"type":"object","properties":{}}`

// sides joins consecutive blocks of one role to a message. The results of a tool phase and the user's text after them
// are therefore one message.
type sides struct {
	messages []content.Message // the finished messages
	role     content.Role      // the role and
	blocks   []content.Block   // the blocks of the message under construction
}

// say adds blocks of a role.
func (s *sides) say(role content.Role, blocks ...content.Block) error {
	if role != s.role {
		if err := s.end(); err != nil {
			return err
		}
		s.role = role
	}
	s.blocks = append(s.blocks, blocks...)
	return nil
}

// end finishes the message under construction. An empty message is dropped.
func (s *sides) end() error {
	list, err := content.Of(s.blocks...)
	if err != nil {
		return roundtrip.NotRead("what the "+string(s.role)+" says", err)
	}
	if list.Len() > 0 {
		s.messages = append(s.messages, content.Message{Role: s.role, Blocks: list})
	}

	s.role, s.blocks = "", nil
	return nil
}
