package executor

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/safetext"
)

// Result is the result of a tool call. The zero value is an empty success.
type Result struct {
	// Content is what the model reads: texts, images, documents.
	Content content.Blocks
	// IsError reports that the call failed. The model sees it.
	IsError bool
	// Terminate ends the run without another request, if every result of the message sets it and no queue has a
	// message. It is not saved.
	Terminate bool
	// Details is any JSON value for the program. It is kept with the execution and never sent.
	Details content.JSON
	// Usage counts the tokens that the tool itself used. Runs inside the call are counted in any case.
	Usage content.Usage
	// Full is the whole output if Content is a part of it. It is kept with the execution and never sent.
	Full content.Blocks
	// Child is a conversation that the tool held for the call. It is kept with the execution. Defaults to the
	// conversation of a run inside the call.
	Child dag.DAG
}

// ResultOf converts the return value of a tool's function to a result:
//
//   - a Result or a *Result is used as it is,
//   - a string becomes a text; an empty one becomes no content,
//   - a content.Block, a []content.Block, content.Blocks, or a slice of one type of block such as []content.Image is
//     the content,
//   - a []byte is an error, because it may be a text, an image or a document,
//   - anything else is encoded as JSON and becomes a text, with U+FFFD for bytes that are not UTF-8; nil and nil
//     pointers become no content.
//
// The error names what cannot be encoded, or the block that cannot be part of a result.
func ResultOf(v any) (Result, error) {
	// Types whose nil value is no error come first.
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

	// A slice of one type of block, such as []content.Image, is no []content.Block.
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

// valid returns an error for a result that cannot be saved, or that has a block for messages only.
func (r Result) valid() error {
	if err := holdable(r.Content); err != nil {
		return fmt.Errorf("the tool's result: %w", err)
	}
	if err := holdable(r.Full); err != nil {
		return fmt.Errorf("the tool's result: its full output: %w", err)
	}
	if r.Details != "" && !r.Details.Valid() {
		return fmt.Errorf("the tool's result: its details: %w", content.ErrJSON)
	}
	if err := r.Child.Err(); err != nil {
		return fmt.Errorf("the tool's result: its conversation: %w", err)
	}
	return nil
}

// holdable returns an error for a block that only an assistant's message or a results message can have.
func holdable(blocks content.Blocks) error {
	for i, b := range blocks.All() {
		switch b.(type) {
		case content.ToolUse, content.CutToolUse, content.ToolResult, content.Thinking:
			return fmt.Errorf("block %d is a %T, which only a message can contain", i, b)
		}
	}
	return nil
}

// durations encodes a time.Duration as "1m30s".
var durations = json.WithMarshalers(json.MarshalFunc(func(d time.Duration) ([]byte, error) {
	return []byte(`"` + d.String() + `"`), nil
}))

func jsonResult(v any) (_ Result, err error) {
	defer func() {
		if panicked := recover(); panicked != nil { // in a MarshalJSON of v's
			err = fmt.Errorf("the tool's result cannot be encoded: %T panicked: %v", v, panicked)
		}
	}()
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true), durations)
	if err != nil {
		return Result{}, fmt.Errorf("the tool's result cannot be encoded: %w", err)
	}

	if bytes.Equal(text, []byte("null")) {
		return Result{}, nil
	}
	return Result{Content: content.Words(string(text))}, nil
}

// failure returns an error result with a text.
func failure(format string, args ...any) Result {
	return Result{Content: content.Words(fmt.Sprintf(format, args...)), IsError: true}
}

// marker follows a text that was cut.
const marker = "\n\n[truncated]"

// cutBlocks cuts the texts of blocks to a total of bytes and lines, including the marker of the cut. A limit of 0 or
// less does not apply. It reports whether anything was cut.
func cutBlocks(blocks content.Blocks, bytes, lines int) (content.Blocks, bool) {
	if newBudget(bytes, lines).fitAll(blocks) {
		return blocks, false
	}

	// After the first text that is cut, later texts are left out; other blocks stay.
	var kept []content.Block
	left := newBudget(bytes, lines)
	cut := false
	for _, b := range blocks.All() {
		t, ok := b.(content.Text)
		if !ok {
			kept = append(kept, b)
			continue
		}
		if cut {
			continue
		}

		if cut = !left.fitsBefore(left.mark(), t.Text); cut {
			t.Text = left.cut(t.Text)
		}
		if t.Text != "" {
			kept = append(kept, t)
		}
	}

	// Cutting a text may leave a list without content, which is fine in a result.
	made, err := content.Of(kept...)
	if err != nil {
		return blocks, false // they were blocks before
	}
	return made, true
}

// budget is the remaining number of bytes and lines. A negative number is no limit.
type budget struct{ bytes, lines int }

func newBudget(bytes, lines int) *budget {
	b := &budget{bytes, lines}
	if bytes <= 0 {
		b.bytes = -1
	}
	if lines <= 0 {
		b.lines = -1
	}
	return b
}

// fits takes text from the budget, and reports whether it fits. If it does not, the budget stays as it is.
func (b *budget) fits(text string) bool {
	lines := strings.Count(strings.TrimSuffix(text, "\n"), "\n") + 1
	if b.bytes >= 0 && len(text) > b.bytes || b.lines >= 0 && lines > b.lines {
		return false
	}
	if b.bytes >= 0 {
		b.bytes -= len(text)
	}
	if b.lines >= 0 {
		b.lines -= lines
	}
	return true
}

// fitAll reports whether all texts of blocks fit.
func (b *budget) fitAll(blocks content.Blocks) bool {
	for _, block := range blocks.All() {
		if t, ok := block.(content.Text); ok && !b.fits(t.Text) {
			return false
		}
	}
	return true
}

// fitsBefore takes text from the budget if the text and a mark on a line of its own fit. It reports whether they do.
func (b *budget) fitsBefore(mark, text string) bool {
	with := *b
	return with.fits(text) && (b.bytes < 0 || with.bytes >= len(mark)) && (b.lines < 0 || with.lines >= 1) && b.fits(text)
}

// mark returns the marker in the form appended to a text.
func (b *budget) mark() string {
	if b.lines >= 0 {
		return marker[1:] // on a line of its own
	}
	return marker
}

// cut returns the beginning of text followed by the marker, as much as fits.
func (b *budget) cut(text string) string {
	mark := b.mark()

	// The marker takes the last line.
	if b.lines >= 0 {
		keep := max(b.lines-1, 0)
		at := 0
		for range keep {
			next := strings.IndexByte(text[at:], '\n')
			if next < 0 {
				at = len(text)
				break
			}
			at += next + 1
		}
		text = strings.TrimSuffix(text[:at], "\n")
	}

	// The marker counts too. If even the marker does not fit, it is cut itself.
	if b.bytes >= 0 {
		if len(mark) > b.bytes {
			mark = strings.TrimLeft(mark, "\n")[:min(b.bytes, len(strings.TrimLeft(mark, "\n")))]
		}
		text = safetext.Head(text, b.bytes-len(mark))
	}

	if text == "" {
		return strings.TrimLeft(mark, "\n")
	}
	return text + mark
}
