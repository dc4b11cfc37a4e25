package content

import "github.com/plait-dev/plait/internal/jsonx/plain"

// readPlain reads one block in exactly the form written by form.block. The reader fails for any other form, and for
// rare blocks: documents, opaque and unknown blocks, and blocks with an Extra. parseBlock reads those. With inResult,
// only blocks of a tool result are accepted.
func readPlain(r *plain.Reader, inResult bool) Block {
	var b Block
	switch {
	case r.Has(`{"type":"text","text":`):
		b = Text{Text: r.String()}

	case r.Has(`{"type":"image","source":{`):
		s := Source{MediaType: r.OptString("media_type"), Data: r.OptString("data"), Text: r.OptString("text"),
			URL: r.OptString("url"), FileID: r.OptString("file_id")}
		r.Expect("}")

		// newList does not check the blocks again, so only those that check accepts may be read.
		r.FailIf(s.check() != "")
		b = Image{Source: s}

	case inResult: // the blocks below are not allowed in a result
		r.FailIf(true)
		return nil

	case r.Has(`{"type":"thinking"`):
		b = Thinking{Text: r.OptString("text"), Signature: r.OptString("signature"), Redacted: r.OptString("redacted")}
	case r.Has(`{"type":"tool_use"`):
		b = ToolUse{ID: r.OptString("id"), Name: r.OptString("name"), Input: JSON(r.OptJSON("input"))}

	case r.Has(`{"type":"tool_result"`):
		result := ToolResult{CallID: r.OptString("call_id")}
		r.Expect(`,"content":[`)
		var inner []Block
		for r.Item() {
			inner = append(inner, readPlain(r, true))
		}
		result.Content = newList(inner)
		result.IsError = r.OptTrue("is_error")
		b = result

	default:
		r.FailIf(true)
		return nil
	}

	r.Expect("}")
	return b
}
