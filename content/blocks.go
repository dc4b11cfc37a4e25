package content

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/plait-dev/plait/internal/memo"
	"github.com/plait-dev/plait/internal/safetext"
)

// ErrBlock is in the chain of every error about a block that cannot be part of a conversation.
var ErrBlock = errors.New("invalid block")

// invalid is the text of an ErrBlock.
type invalid string

func (e invalid) Error() string { return string(e) }

func (invalid) Unwrap() error { return ErrBlock }

// blockError returns the ErrBlock for the block at an index of a list. A nil block has no type.
func blockError(index int, b Block, reason string) error {
	kind := ""
	if name := kindOf(b); name != "" {
		kind = " (" + name + ")"
	}
	return invalid(fmt.Sprintf("block %d%s: %s", index, kind, reason))
}

// Blocks is an unchangeable list of blocks. The zero value is the empty list. Two Blocks are compared with
// [Blocks.Equal]; == compares identity and never panics.
type Blocks struct {
	list *list
}

type list struct {
	blocks []Block // never written after Of
	memo   memo.Memo
}

// Of returns a list of the given blocks. Bytes that are not UTF-8 are replaced by U+FFFD. Of returns an ErrBlock, with the index and the reason, for
//
//   - a nil block or nil pointer,
//   - a source with none or several of Data, Text, URL and FileID set,
//   - an Extra, Opaque or Unknown without a JSON object,
//   - an Extra or Opaque without an API,
//   - an Unknown of a known type,
//   - a tool call, tool result or thinking inside a tool result.
func Of(bs ...Block) (Blocks, error) {
	if len(bs) == 0 {
		return Blocks{}, nil
	}

	made := make([]Block, len(bs))
	for i, b := range bs {
		clean, err := checkAt(i, b)
		if err != nil {
			return Blocks{}, err
		}
		made[i] = clean
	}
	return newList(made), nil
}

// newList returns a list of blocks returned by check or readPlain. It keeps the slice.
func newList(checked []Block) Blocks {
	if len(checked) == 0 {
		return Blocks{}
	}
	return Blocks{&list{blocks: checked}}
}

// checkAt is check for the block at an index of a list. The error of an invalid block is an ErrBlock.
func checkAt(index int, b Block) (Block, error) {
	clean, reason := check(b)
	if reason != "" {
		return nil, blockError(index, b, reason)
	}
	return clean, nil
}

// Words returns a list of one text block, or the empty list if text is empty.
func Words(text string) Blocks {
	if text == "" {
		return Blocks{}
	}
	return Blocks{&list{blocks: []Block{Text{Text: safetext.UTF8(text)}}}}
}

// Len returns the number of blocks.
func (b Blocks) Len() int {
	if b.list == nil {
		return 0
	}
	return len(b.list.blocks)
}

// At returns block i. It panics if i is out of range.
func (b Blocks) At(i int) Block { return b.list.blocks[i] }

// All yields each block with its index.
func (b Blocks) All() iter.Seq2[int, Block] {
	return func(yield func(int, Block) bool) {
		for i := range b.Len() {
			if !yield(i, b.At(i)) {
				return
			}
		}
	}
}

// Slice returns a new slice of the blocks.
func (b Blocks) Slice() []Block {
	if b.list == nil {
		return nil
	}
	return append([]Block(nil), b.list.blocks...)
}

// Text returns all texts except empty ones, joined by line breaks.
func (b Blocks) Text() string {
	var texts []string
	for _, block := range b.All() {
		if t, ok := block.(Text); ok && t.Text != "" {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// String returns the blocks as JSON, in their saved form, for logs and test messages. [Blocks.Text] returns only the
// texts.
func (b Blocks) String() string { return string(b.Append(nil)) }

// ToolUses returns the tool calls, in order.
func (b Blocks) ToolUses() []ToolUse { return only[ToolUse](b) }

// ToolResults returns the tool results, in order.
func (b Blocks) ToolResults() []ToolResult { return only[ToolResult](b) }

// only returns the blocks of one variant. It counts them first, so that it allocates the result once, or not at all.
func only[T Block](b Blocks) []T {
	n := 0
	for _, block := range b.All() {
		if _, ok := block.(T); ok {
			n++
		}
	}
	if n == 0 {
		return nil
	}

	found := make([]T, 0, n)
	for _, block := range b.All() {
		if t, ok := block.(T); ok {
			found = append(found, t)
		}
	}
	return found
}

// Equal reports whether both lists hold equal blocks in the same order. JSON is compared byte for byte.
func (b Blocks) Equal(other Blocks) bool {
	if b.list == other.list {
		return true
	}
	if b.Len() != other.Len() {
		return false
	}
	for i, block := range b.All() {
		if !equal(block, other.At(i)) {
			return false
		}
	}
	return true
}

func equal(a, b Block) bool {
	x, ok := a.(ToolResult)
	y, too := b.(ToolResult)
	if !ok || !too {
		return a == b
	}

	// With ==, lists are compared by identity. Compare them by content first, and then the rest without them.
	if !x.Content.Equal(y.Content) {
		return false
	}
	x.Content, y.Content = Blocks{}, Blocks{}
	return x == y
}

// check returns the block in the form it is stored in, with valid UTF-8 and as a value. For an invalid block it returns
// the reason.
func check(given Block) (Block, string) {
	// A pointer to a variant fits the interface too. Only values are stored.
	given = value(given)
	switch b := given.(type) {
	case nil:
		return nil, "is nil"

	case Text:
		was := b
		b.Text, b.Extra = safetext.UTF8(b.Text), b.Extra.clean()
		return unlessEqual(given, was, b), b.Extra.check()
	case Image:
		was := b
		b.Source, b.Extra = b.Source.clean(), b.Extra.clean()
		return unlessEqual(given, was, b), first(b.Source.check(), b.Extra.check())
	case Document:
		was := b
		b.Title, b.Source, b.Extra = safetext.UTF8(b.Title), b.Source.clean(), b.Extra.clean()
		return unlessEqual(given, was, b), first(b.Source.check(), b.Extra.check())
	case Thinking:
		was := b
		b.Text, b.Signature, b.Redacted, b.Extra = safetext.UTF8(b.Text), safetext.UTF8(b.Signature), safetext.UTF8(b.Redacted), b.Extra.clean()
		return unlessEqual(given, was, b), b.Extra.check()

	// The input may be any text: a model can write arguments that are not JSON.
	case ToolUse:
		was := b
		b.ID, b.Name, b.Input, b.Extra = safetext.UTF8(b.ID), safetext.UTF8(b.Name), JSON(safetext.UTF8(string(b.Input))), b.Extra.clean()
		return unlessEqual(given, was, b), b.Extra.check()
	case CutToolUse:
		was := b
		b.Name, b.Input = safetext.UTF8(b.Name), JSON(safetext.UTF8(string(b.Input)))
		return unlessEqual(given, was, b), ""

	case ToolResult:
		was := b
		b.CallID, b.Extra = safetext.UTF8(b.CallID), b.Extra.clean()
		for _, inner := range b.Content.All() {
			switch inner.(type) {
			case ToolUse, CutToolUse, ToolResult, Thinking:
				return nil, "holds a " + inner.kind() + ", which only a message can"
			}
		}
		return unlessEqual(given, was, b), b.Extra.check()

	case Opaque:
		was := b
		if b.API = safetext.UTF8(b.API); b.API == "" {
			return nil, "names no API"
		}
		return unlessEqual(given, was, b), object(b.JSON)
	case Unknown:
		return given, first(object(b.JSON), b.foreign())
	}
	panic("content: a variant of Block that check does not know")
}

// unlessEqual returns given if b is unchanged, and b otherwise. given holds the same value as was: converting b to an
// interface again would allocate.
func unlessEqual[B interface {
	comparable
	Block
}](given Block, was, b B) Block {
	if b == was {
		return given
	}
	return b
}

// value replaces a pointer to a variant by a copy of the variant, and a nil pointer by nil. Pointers satisfy Block too.
func value(b Block) Block {
	switch p := b.(type) {
	case *Text:
		return deref(p)
	case *Image:
		return deref(p)
	case *Document:
		return deref(p)
	case *Thinking:
		return deref(p)
	case *ToolUse:
		return deref(p)
	case *CutToolUse:
		return deref(p)
	case *ToolResult:
		return deref(p)
	case *Opaque:
		return deref(p)
	case *Unknown:
		return deref(p)
	}
	return b
}

func deref[T Block](p *T) Block {
	if p == nil {
		return nil
	}
	return *p
}

// kindOf returns the block's type, or "" for a nil block or pointer.
func kindOf(b Block) string {
	if b = value(b); b == nil {
		return ""
	}
	return b.kind()
}

func (s Source) clean() Source {
	return Source{safetext.UTF8(s.MediaType), safetext.UTF8(s.Data), safetext.UTF8(s.Text), safetext.UTF8(s.URL), safetext.UTF8(s.FileID)}
}

// check returns the reason why s is not valid, or "".
func (s Source) check() string {
	set := 0
	for _, place := range []string{s.Data, s.Text, s.URL, s.FileID} {
		if place != "" {
			set++
		}
	}
	if set != 1 {
		return fmt.Sprintf("its source needs exactly one of data, text, URL and file ID; it has %d", set)
	}
	return ""
}

func (e Extra) clean() Extra {
	e.API = safetext.UTF8(e.API)
	return e
}

// check returns the reason why e is not valid, or "".
func (e Extra) check() string {
	switch {
	case e == Extra{}:
		return ""
	case e.API == "":
		return "its extra names no API"
	}
	return object(e.JSON)
}

// foreign returns the reason why u would not become an Unknown when it is read again, or "".
func (u Unknown) foreign() string {
	switch kind, err := typeOf([]byte(u.JSON)); {
	case err != nil:
		return err.Error()
	case empty(kind) != nil:
		return "has the type " + kind + ", which is a known type"
	}
	return ""
}

// object returns the reason why j is not accepted as a JSON object, or "".
func object(j JSON) string {
	if !j.IsObject() {
		return "needs a JSON object, has " + safetext.Quote(string(j), maxQuoted)
	}
	return ""
}

// first returns the first reason that is not empty, or "".
func first(reasons ...string) string {
	for _, r := range reasons {
		if r != "" {
			return r
		}
	}
	return ""
}
