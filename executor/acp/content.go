package acp

import (
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// callID returns the client's ID of a call: its key, so that it is the same whenever the session is loaded.
func callID(key node.CallKey) sdk.ToolCallId { return sdk.ToolCallId(key.String()) }

// rawOf returns the arguments of a call, which are not always JSON: the model wrote them.
func rawOf(input content.JSON) any {
	if input.Valid() {
		return json.RawMessage(input)
	}
	return string(input)
}

// blocksOf translates a prompt. An item without content, or of a kind that Plait does not have, becomes a text for the
// model.
func blocksOf(prompt []sdk.ContentBlock) (content.Blocks, error) {
	var list []content.Block
	for _, c := range prompt {
		list = append(list, blockOf(c))
	}
	return content.Of(list...)
}

// blockOf translates one item of a prompt.
func blockOf(c sdk.ContentBlock) content.Block {
	switch {
	case c.Text != nil:
		return content.Text{Text: c.Text.Text}
	case c.Image != nil && c.Image.Data != "":
		return content.Image{Source: content.Source{MediaType: c.Image.MimeType, Data: c.Image.Data}}
	case c.Image != nil && c.Image.Uri != nil:
		return content.Image{Source: content.Source{MediaType: c.Image.MimeType, URL: *c.Image.Uri}}
	case c.Audio != nil:
		return content.Document{Source: content.Source{MediaType: c.Audio.MimeType, Data: c.Audio.Data}}
	case c.ResourceLink != nil:
		return content.Text{Text: "Resource " + c.ResourceLink.Uri + ", " + c.ResourceLink.Name}

	// The client sends the content of a file along.
	case c.Resource != nil && c.Resource.Resource.TextResourceContents != nil:
		r := c.Resource.Resource.TextResourceContents
		return content.Text{Text: "Resource " + r.Uri + ":\n" + r.Text}
	case c.Resource != nil && c.Resource.Resource.BlobResourceContents != nil:
		r := c.Resource.Resource.BlobResourceContents
		source := content.Source{Data: r.Blob}
		if r.MimeType != nil {
			source.MediaType = *r.MimeType
		}
		if strings.HasPrefix(source.MediaType, "image/") {
			return content.Image{Source: source}
		}
		return content.Document{Title: r.Uri, Source: source}
	}
	return content.Text{Text: "[A block of an unknown kind]"}
}

// partsOf translates blocks for the client, one by one. Thinking, calls and results have updates of their own.
func partsOf(blocks content.Blocks) (parts []sdk.ContentBlock) {
	for _, b := range blocks.All() {
		switch b := b.(type) {
		case content.Text:
			parts = append(parts, sdk.TextBlock(b.Text))
		case content.Image:
			parts = append(parts, imageOf(b.Source))
		case content.Document:
			parts = append(parts, sdk.TextBlock("[document "+b.Title+"]"))
		case content.Thinking, content.ToolUse, content.CutToolUse, content.ToolResult, content.Opaque, content.Unknown:
		}
	}
	return parts
}

func imageOf(s content.Source) sdk.ContentBlock {
	image := sdk.ImageBlock(s.Data, s.MediaType)
	if s.URL != "" {
		image.Image.Uri = &s.URL
	}
	return image
}

// contentOf translates blocks into the content of a call.
func contentOf(blocks content.Blocks) (list []sdk.ToolCallContent) {
	for _, part := range partsOf(blocks) {
		list = append(list, sdk.ToolContent(part))
	}
	return list
}

// view returns how the client shows a call.
func (s *session) view(call executor.Call) View {
	view, own := viewOf(s.agent.Tools, call)
	if !own && s.View != nil {
		view = s.View(call)
	}
	if view.Title == "" {
		view.Title = call.Name
	}
	if view.Kind == "" {
		view.Kind = sdk.ToolKindOther
	}

	// The protocol has absolute paths only. The view may share its lists with others.
	view.Locations, view.Content = slices.Clone(view.Locations), slices.Clone(view.Content)
	for i, l := range view.Locations {
		view.Locations[i].Path = s.path(l.Path)
	}
	for i, c := range view.Content {
		if c.Diff != nil {
			diff := *c.Diff
			diff.Path = s.path(diff.Path)
			view.Content[i].Diff = &diff
		}
	}
	return view
}

// replay sends the messages of a conversation. Of the plans it sends the last one.
func (s *session) replay(d dag.DAG) error {
	var calls []executor.Call // of the last message with calls
	var plan *sdk.SessionUpdate
	var err error
	send := func(u sdk.SessionUpdate) {
		if err == nil {
			err = s.update(u)
		}
	}

	for _, n := range d.Nodes() {
		m, is := n.Message()
		if !is {
			continue
		}
		say := sdk.UpdateUserMessage
		if m.Role == content.Assistant {
			say, calls = sdk.UpdateAgentMessage, nil
		}
		for index, block := range m.Blocks.All() {
			switch b := block.(type) {
			case content.Thinking:
				if b.Text != "" {
					send(sdk.UpdateAgentThoughtText(b.Text))
				}
			case content.ToolUse:
				call := executor.Call{Name: b.Name, Input: b.Input, Message: n.ID(), Index: index, ID: b.ID}
				calls = append(calls, call)
				if u := s.started(call, nil); u.Plan == nil {
					send(u)
				} else {
					plan = &u
				}
			case content.ToolResult:
				if len(calls) == 0 {
					continue
				}
				if _, is := s.planOf(calls[0]); !is {
					key := calls[0].Key()
					send(sdk.UpdateToolCall(callID(key), s.result(key, b.Content, b.IsError)...))
				}
				calls = calls[1:]
			case content.Text, content.Image, content.Document, content.CutToolUse, content.Opaque, content.Unknown:
				one, _ := content.Of(block)
				for _, part := range partsOf(one) {
					send(say(part))
				}
			}
		}
	}
	if plan != nil {
		send(*plan)
	}
	return err
}
