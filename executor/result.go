package executor

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/content"
)

// Result is what a tool call came to. The zero value is a success that says nothing.
type Result struct {
	// Content is what the model reads: texts, images, documents.
	Content content.Blocks
	// IsError tells the model that the call failed.
	IsError bool
}

// ResultOf makes a result of what a tool's function returned:
//
//   - a Result is taken as it is, and so is what a *Result points to,
//   - a string becomes a text; an empty one says nothing,
//   - a content.Block, []content.Block or content.Blocks is the content, and so is a slice of one type of block, such as []content.Image,
//   - a []byte is refused: it may be a text, an image or a document,
//   - anything else is encoded as JSON and becomes a text, with U+FFFD for bytes that are not UTF-8; nil and nil pointers say
//     nothing.
//
// The error says what cannot be encoded, or which block cannot be part of a result.
func ResultOf(v any) (Result, error) {
	switch v := v.(type) {
	case nil:
		return Result{}, nil
	case Result:
		return v, v.valid()
	case string:
		return Result{Content: content.Words(v)}, nil
	case content.Blocks:
		r := Result{Content: v}
		return r, r.valid()
	case []content.Block:
		return blocksResult(v...)
	case content.JSON:
		return Result{Content: content.Words(string(v))}, nil
	}
	if isNil(v) {
		return Result{}, nil
	}
	switch v := v.(type) {
	case *Result:
		return *v, v.valid()
	case []byte:
		return Result{}, errBytes
	}
	if block, ok := v.(content.Block); ok {
		return blocksResult(block)
	}
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice && list.Type().Elem().Implements(reflect.TypeFor[content.Block]()) {
		blocks := make([]content.Block, list.Len())
		for i := range blocks {
			blocks[i], _ = list.Index(i).Interface().(content.Block)
		}
		return blocksResult(blocks...)
	}
	return jsonResult(v)
}

var errBytes = errors.New("it returns []byte: return a string, or an image or document block")

func blocksResult(blocks ...content.Block) (Result, error) {
	made, err := content.Of(blocks...)
	if err != nil {
		return Result{}, err
	}
	r := Result{Content: made}
	return r, r.valid()
}

// valid refuses what only a message can hold.
func (r Result) valid() error {
	for i := range r.Content.Len() {
		switch b := r.Content.At(i).(type) {
		case content.ToolUse, content.ToolResult, content.Thinking:
			return fmt.Errorf("the tool's result: block %d is a %T, which only a message can hold", i, b)
		}
	}
	return nil
}

// durations lets a time.Duration be written as people write it.
var durations = json.WithMarshalers(json.MarshalFunc(func(d time.Duration) ([]byte, error) {
	return []byte(`"` + d.String() + `"`), nil
}))

func jsonResult(v any) (Result, error) {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), durations)
	if err != nil {
		return Result{}, fmt.Errorf("the tool's result cannot be encoded: %w", err)
	}
	if bytes.Equal(text, []byte("null")) {
		return Result{}, nil
	}
	return Result{Content: content.Words(string(text))}, nil
}

// failure is a result that says what went wrong.
func failure(format string, args ...any) Result {
	return Result{Content: content.Words(fmt.Sprintf(format, args...)), IsError: true}
}
