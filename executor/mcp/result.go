package mcp

import (
	"encoding/base64"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
)

// resultOf translates the result of a call.
func resultOf(answer *sdk.CallToolResult) (executor.Result, error) {
	result := executor.Result{IsError: answer.IsError}
	var blocks []content.Block
	for _, c := range answer.Content {
		blocks = append(blocks, checked(block(c)))
	}

	if answer.StructuredContent != nil {
		details, err := content.ToJSON(answer.StructuredContent)
		if err != nil {
			return result, fmt.Errorf("the structured result: %w", err)
		}
		result.Details = details

		// Servers should repeat a structured result as text, but some do not.
		if len(blocks) == 0 {
			blocks = append(blocks, content.Text{Text: string(details)})
		}
	}

	var err error
	result.Content, err = content.Of(blocks...)
	return result, err
}

// checked returns the block, or a text with the error if the block is not valid in a conversation.
func checked(b content.Block) content.Block {
	if _, err := content.Of(b); err != nil {
		return content.Text{Text: "[" + err.Error() + "]"}
	}
	return b
}

// block translates one item of a result or message. An item without content becomes a text with its kind.
func block(c sdk.Content) content.Block {
	switch c := c.(type) {
	case *sdk.TextContent:
		return content.Text{Text: c.Text}
	case *sdk.ImageContent:
		if len(c.Data) > 0 {
			return content.ImageOf(c.MIMEType, c.Data)
		}
	case *sdk.AudioContent:
		if len(c.Data) > 0 {
			// Plait has no block for audio.
			return content.DocumentOf(c.MIMEType, c.Data)
		}
	case *sdk.ResourceLink:
		return content.Text{Text: linkText(c)}
	case *sdk.EmbeddedResource:
		if c.Resource != nil {
			return resource(c.Resource)
		}
	}
	return content.Text{Text: fmt.Sprintf("[%s without content]", kind(c))}
}

// kind is the word for a content in texts for the model.
func kind(c sdk.Content) string {
	switch c.(type) {
	case *sdk.ImageContent:
		return "image"
	case *sdk.AudioContent:
		return "audio"
	case *sdk.EmbeddedResource:
		return "resource"
	}
	return "block of an unknown type"
}

// resource translates the contents of a resource. The title of a document is its URI.
func resource(r *sdk.ResourceContents) content.Block {
	switch {
	case len(r.Blob) > 0 && strings.HasPrefix(r.MIMEType, "image/"):
		return content.ImageOf(r.MIMEType, r.Blob)
	case len(r.Blob) > 0:
		return content.Document{Title: r.URI, Source: content.Source{
			MediaType: r.MIMEType, Data: base64.StdEncoding.EncodeToString(r.Blob),
		}}
	}
	return content.Text{Text: "Resource " + r.URI + ":\n" + r.Text}
}

func linkText(l *sdk.ResourceLink) string {
	text := "Resource " + l.URI
	for _, more := range []string{l.Title, l.Name, l.Description, l.MIMEType} {
		if more != "" {
			text += ", " + more
		}
	}
	return text
}
