package content

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/internal/blockcodec"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/safetext"
)

// wire is the saved form of all variants, distinguished by Type.
type wire struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Title     string `json:"title"`
	Signature string `json:"signature"`
	Redacted  string `json:"redacted"`
	ID        string `json:"id"`
	Name      string `json:"name"`
	CallID    string `json:"call_id"`
	API       string `json:"api"`
	IsError   bool   `json:"is_error"`

	Source    *wireSource    `json:"source"`
	Content   []innerItem    `json:"content"`
	Input     jsontext.Value `json:"input"`
	InputText string         `json:"input_text"`
	JSON      jsontext.Value `json:"json"`
	JSONText  string         `json:"json_text"`
	Extra     *wireExtra     `json:"extra"`
}

type wireSource struct {
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
	Text      string `json:"text"`
	URL       string `json:"url"`
	FileID    string `json:"file_id"`
}

type wireExtra struct {
	API      string         `json:"api"`
	JSON     jsontext.Value `json:"json"`
	JSONText string         `json:"json_text"`
}

// MarshalJSON returns the saved form: an array with one object per block, its "type" first.
func (b Blocks) MarshalJSON() ([]byte, error) { return b.Append(nil), nil }

// Append appends the saved form to dst.
func (b Blocks) Append(dst []byte) []byte {
	return b.append(dst, form{})
}

// Package node needs more of the codec than users do.
func init() {
	blockcodec.Append = func(dst []byte, b Block) []byte { return form{}.block(dst, b) }
	blockcodec.Parse = func(saved []byte) (Block, error) { return parseBlock(saved, false) }
	blockcodec.AppendCanonical = Blocks.appendCanonical
	blockcodec.ReadPlain = readPlain
	blockcodec.Check = func(b Block) (Block, error) { return checkAt(0, b) }
	blockcodec.List = newList
}

func (b Blocks) appendCanonical(dst []byte, ref func(result bool, id string, earlier int) string) []byte {
	return b.append(dst, form{write.Form{Canonical: true}, ref, &seenIDs{}})
}

// form selects the form of a list: the saved form (the zero value), or the form for digests.
type form struct {
	write.Form
	ref  func(result bool, id string, earlier int) string // set in the form for digests
	seen *seenIDs                                         // set in the form for digests
}

// seenIDs counts the calls and the results so far, by ID.
type seenIDs struct{ uses, results map[string]int }

// id returns the ID to write for a call or a result.
func (f form) id(result bool, id string) string {
	if !f.Canonical {
		return id
	}

	seen := &f.seen.uses
	if result {
		seen = &f.seen.results
	}
	if *seen == nil {
		*seen = map[string]int{}
	}

	// An ID may be used twice: ref gets the number of earlier uses.
	(*seen)[id]++
	return f.ref(result, id, (*seen)[id]-1)
}

func (b Blocks) append(dst []byte, f form) []byte {
	dst = append(dst, '[')
	for _, block := range b.All() {
		dst = f.block(write.Comma(dst), block)
	}
	return append(dst, ']')
}

func (f form) block(dst []byte, b Block) []byte {
	// An unknown block is written as it was read, if it fits on one line.
	if u, ok := b.(Unknown); ok {
		if f.Canonical {
			return append(dst, u.JSON.Canonical()...)
		}
		if write.Inline(string(u.JSON)) {
			return append(dst, u.JSON...)
		}
	}

	dst = write.OptString(append(dst, '{'), "type", b.kind())
	var extra Extra
	switch b := b.(type) {
	case Text:
		dst, extra = write.String(dst, "text", b.Text), b.Extra
	case Image:
		dst, extra = appendSource(dst, b.Source), b.Extra
	case Document:
		dst, extra = write.OptString(appendSource(dst, b.Source), "title", b.Title), b.Extra
	case Thinking:
		dst, extra = write.OptString(dst, "text", b.Text), b.Extra
		dst = write.OptString(write.OptString(dst, "signature", b.Signature), "redacted", b.Redacted)
	case ToolUse:
		dst, extra = write.OptString(write.OptString(dst, "id", f.id(false, b.ID)), "name", b.Name), b.Extra
		dst = f.JSON(dst, "input", string(b.Input))
	case CutToolUse:
		dst = f.JSON(write.OptString(dst, "name", b.Name), "input", string(b.Input))
	case ToolResult:
		dst, extra = write.OptString(dst, "call_id", f.id(true, b.CallID)), b.Extra
		dst = b.Content.append(write.Name(dst, "content"), f)
		dst = write.OptTrue(dst, "is_error", b.IsError)
	case Opaque:
		dst = f.JSON(write.OptString(dst, "api", b.API), "json", string(b.JSON))
	case Unknown:
		dst = f.JSON(dst, "json", string(b.JSON)) // does not fit on one line
	}

	return append(f.Extra(dst, extra.API, string(extra.JSON)), '}')
}

func appendSource(dst []byte, s Source) []byte {
	dst = append(write.Name(dst, "source"), '{')
	dst = write.OptString(write.OptString(dst, "media_type", s.MediaType), "data", s.Data)
	dst = write.OptString(write.OptString(dst, "text", s.Text), "url", s.URL)
	return append(write.OptString(dst, "file_id", s.FileID), '}')
}

// UnmarshalJSON reads the saved form. A block of an unknown type becomes an [Unknown]. An invalid block of a known type
// is an ErrBlock. After an error b is unchanged.
func (b *Blocks) UnmarshalJSON(data []byte) error {
	var items []item
	if err := json.Unmarshal(data, &items); err != nil {
		return err
	}
	made, err := listOf(items)
	if err != nil {
		return err
	}
	*b = made
	return nil
}

// item is a block after reading. It keeps an error of reading, for listOf to report it with the block's index.
type item struct {
	block Block
	err   error
}

func (i *item) UnmarshalJSON(saved []byte) error {
	i.block, i.err = parseBlock(saved, false)
	return nil
}

// innerItem is an item inside a tool result.
type innerItem item

func (i *innerItem) UnmarshalJSON(saved []byte) error {
	i.block, i.err = parseBlock(saved, true)
	return nil
}

// listOf returns the list of items, or the error of the first invalid one.
func listOf[I item | innerItem](items []I) (Blocks, error) {
	list := make([]Block, len(items))
	for i, each := range items {
		read := item(each)
		if read.err != nil {
			return Blocks{}, blockError(i, read.block, read.err.Error())
		}
		list[i] = read.block
	}
	return Of(list...)
}

// parseBlock reads the saved form of one block, without checking its fields. It refuses a tool result inside a tool
// result before reading it, so that deep nesting costs nothing.
func parseBlock(v []byte, inner bool) (Block, error) {
	kind, err := typeOf(v)
	if err != nil {
		return nil, err
	}

	// A newer version may have written a type that is unknown here: keep the block as it is.
	block := empty(kind)
	switch {
	case block == nil && !jsontext.Value(v).IsValid():
		return nil, ErrJSON
	case block == nil:
		return Unknown{JSON: JSON(v)}, nil
	case inner && kind == (ToolResult{}).kind():
		return block, errors.New("is inside another tool result")
	}

	var w wire
	if err := json.Unmarshal(v, &w); err != nil {
		return block, err
	}
	w.Type = kind // the type checked above
	return w.block()
}

// typeOf returns the type of a saved block. If the type is the first member, as Plait writes it, the rest is not
// parsed.
func typeOf(v []byte) (string, error) {
	if rest, ok := bytes.CutPrefix(v, []byte(`{"type":"`)); ok {
		// A backslash begins an escape: such a type is decoded below.
		if i := bytes.IndexAny(rest, `"\`); i > 0 && rest[i] == '"' {
			return string(rest[:i]), nil
		}
	}

	var tag struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(v, &tag); err != nil {
		return "", err
	}
	if tag.Type == "" {
		return "", fmt.Errorf("it has no type: %s", safetext.Quote(string(v), maxQuoted))
	}
	return tag.Type, nil
}

// empty returns the zero value of the variant saved under a type, or nil for an unknown type.
func empty(kind string) Block {
	switch kind {
	case "text":
		return Text{}
	case "image":
		return Image{}
	case "document":
		return Document{}
	case "thinking":
		return Thinking{}
	case "tool_use":
		return ToolUse{}
	case "cut_tool_use":
		return CutToolUse{}
	case "tool_result":
		return ToolResult{}
	case "opaque":
		return Opaque{}
	case "unknown":
		return Unknown{}
	}
	return nil
}

// block returns w as a variant.
func (w wire) block() (Block, error) {
	var extra Extra
	if w.Extra != nil {
		extra = Extra{API: w.Extra.API, JSON: write.Either[JSON](w.Extra.JSON, w.Extra.JSONText)}
	}
	var source Source
	if w.Source != nil {
		source = Source(*w.Source)
	}

	switch w.Type {
	case "text":
		return Text{Text: w.Text, Extra: extra}, nil
	case "image":
		return Image{Source: source, Extra: extra}, nil
	case "document":
		return Document{Source: source, Title: w.Title, Extra: extra}, nil
	case "thinking":
		return Thinking{Text: w.Text, Signature: w.Signature, Redacted: w.Redacted, Extra: extra}, nil
	case "tool_use":
		return ToolUse{ID: w.ID, Name: w.Name, Input: write.Either[JSON](w.Input, w.InputText), Extra: extra}, nil
	case "cut_tool_use":
		return CutToolUse{Name: w.Name, Input: write.Either[JSON](w.Input, w.InputText)}, nil
	case "tool_result":
		return w.result(extra)
	case "opaque":
		return Opaque{API: w.API, JSON: write.Either[JSON](w.JSON, w.JSONText)}, nil
	case "unknown":
		// An unknown block of several lines: see form.block.
		return Unknown{JSON: write.Either[JSON](w.JSON, w.JSONText)}, nil
	}
	panic("content: a type that is known and that block does not read")
}

func (w wire) result(extra Extra) (Block, error) {
	inner, err := listOf(w.Content)
	if err != nil {
		err = fmt.Errorf("content: %w", err)
	}
	return ToolResult{CallID: w.CallID, Content: inner, IsError: w.IsError, Extra: extra}, err
}
