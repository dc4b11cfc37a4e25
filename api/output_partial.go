package api

import (
	"reflect"
	"unicode/utf8"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/pattern"
	"github.com/plait-dev/plait/internal/schema"
)

// Partial reads a response in the form [Output][T] while it streams. The zero value is ready for one response:
//
//	var part api.Partial[Plan]
//	… case api.Delta:
//		if plan, ok := part.Add(e.Text); ok { show(plan) }
//
// A T is what is known so far: the last text may be incomplete, a number is there when it has ended, and nothing is
// checked against the schema. [Decode] checks the whole response.
//
// The response is read once. A T is made when a sixteenth of it is new, so all of them together take time in proportion
// to its length. Beyond 1 MiB there is none any more.
type Partial[T any] struct {
	text  []byte // from the first brace on
	read  int    // bytes of text that were read
	made  int    // known of the last T
	next  int    // the length at which the next T is made
	open  []byte // the braces that end what is open
	ended bool   // the object has ended, or is broken

	known  int  // what comes before is whole, and can be closed by open
	key    bool // the next text is a name
	quoted bool // inside a text or a name
	escape int  // bytes until an escape has ended
	began  int  // where the last escape began
	scalar bool // inside a number, true, false or null
}

const maxPartial = 1 << 20

// Add adds a piece of the response. It reports whether there is a new T.
func (p *Partial[T]) Add(piece string) (value T, ok bool) {
	if p.ended || len(p.text)+len(piece) > maxPartial {
		p.ended = true
		return value, false
	}
	p.text = append(p.text, piece...)
	for ; p.read < len(p.text) && !p.ended; p.read++ {
		p.byte(p.text[p.read])
	}

	if p.known == p.made || len(p.text) < p.next && !p.ended {
		return value, false
	}
	p.made, p.next = p.known, len(p.text)+len(p.text)/16
	return p.value()
}

// byte reads the next byte. Bytes before the first brace are not JSON.
func (p *Partial[T]) byte(c byte) {
	if len(p.open) == 0 {
		if c == '{' {
			p.text = p.text[p.read:]
			p.read = 0
			p.begin('}')
		}
		return
	}

	if p.quoted {
		switch {
		case p.escape > 0:
			if p.escape--; c == 'u' && p.text[p.read-1] == '\\' {
				p.escape = 4
			}
		case c == '\\':
			p.escape, p.began = 1, p.read
			return
		case c == '"':
			p.quoted = false
		}
		half := p.read-p.began == 5 && halfPair().Match(p.text[p.began:p.read+1])
		if p.escape == 0 && !p.key && !half {
			p.known = p.read + 1
		}
		return
	}

	if p.scalar && (c <= ' ' || c == ',') {
		p.scalar, p.known = false, p.read
	}
	switch c {
	case '{':
		p.begin('}')
	case '[':
		p.begin(']')
	case '}', ']':
		last := len(p.open) - 1
		p.ended = last == 0 || p.open[last] != c
		p.open, p.key, p.scalar, p.known = p.open[:last], false, false, p.read+1
	case ',':
		p.key = p.open[len(p.open)-1] == '}'
	case ':':
		p.key = false
	case '"':
		if p.quoted = true; !p.key {
			p.known = p.read + 1
		}
	default:
		p.scalar = p.scalar || c > ' '
	}
}

// begin opens an object or a list.
func (p *Partial[T]) begin(end byte) {
	p.open = append(p.open, end)
	p.known, p.key = p.read+1, end == '}'
}

// value makes a T of what is known. There is none if T cannot hold it, such as the beginning of a time.
func (p *Partial[T]) value() (value T, ok bool) {
	f := formOf(reflect.TypeFor[T]())
	known := p.text[:p.known:p.known]
	if p.quoted && !p.key {
		known = append(wholeText(known), '"')
	}
	for i := range p.open {
		known = append(known, p.open[len(p.open)-1-i])
	}

	text := content.JSON(known)
	if f.wrapped {
		list, _ := jsonx.Members(text) // none for another value
		if text, _ = jsonx.Take(list, wrap); text == "" {
			return value, false
		}
	}
	if f.err != nil || schema.Decode(text, &value) != nil {
		var none T
		return none, false
	}
	return value, true
}

// halfPair matches the escape of a high surrogate, the first half of two.
var halfPair = pattern.Of(`^\\[u][dD][89abAB][0-9a-fA-F]{2}$`)

// wholeText returns the beginning of a text without half a character at its end.
func wholeText(text []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if c := text[len(text)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(text[len(text)-n:]) {
				return text[: len(text)-n : len(text)-n]
			}
			break
		}
	}
	return text
}
