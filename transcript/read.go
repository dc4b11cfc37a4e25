package transcript

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-json/jsontext"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/wire"
	"github.com/plait-dev/plait/node"
)

// bom is what some editors put before a text.
const bom = "\uFEFF"

// whole reads all of r.
func (im *importer) whole(r io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, im.opts.Limit))
	if err != nil {
		return "", err
	}
	if err := im.ended(r, int64(len(data))); err != nil {
		return "", err
	}
	return strings.TrimPrefix(string(data), bom), nil
}

// ended returns ErrLimit where the limit was reached and r has more.
func (im *importer) ended(r io.Reader, read int64) error {
	if read < im.opts.Limit {
		return nil
	}
	if n, _ := io.ReadFull(r, make([]byte, 1)); n == 0 {
		return nil
	}
	return im.errorf(0, "", ErrLimit, "more than %d bytes", im.opts.Limit)
}

// line is a line of a file that is not blank.
type line struct {
	at   int
	text string
}

// lines calls each with every line that is not blank. A file without any is an error: somebody named the wrong one.
//
// A program that appends to a file may be caught in the middle of its last line: a last line that ends in the middle of its JSON is left
// out and noted.
func (im *importer) lines(r io.Reader, each func(line) error) error {
	limited := &io.LimitedReader{R: r, N: im.opts.Limit}
	in := bufio.NewReaderSize(limited, 64<<10)
	empty := true
	var torn error // that of the line before, which is an error unless it was the last
	for at := 1; ; at++ {
		text, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return im.errorf(at, "", err, "")
		}
		last := err != nil
		if last && limited.N <= 0 {
			if err := im.ended(r, im.opts.Limit); err != nil {
				return err
			}
		}
		if at == 1 {
			text = bytes.TrimPrefix(text, []byte(bom))
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			if torn != nil {
				return torn
			}
			err := each(line{at, string(text)})
			switch {
			case err != nil && !empty && errors.Is(err, errTorn):
				torn = err
			case err != nil:
				return err
			}
			empty = false
		}
		if last && empty {
			return im.errorf(at, "", ErrSyntax, "the file is empty")
		}
		if last {
			im.noteTorn(torn)
			return nil
		}
	}
}

// errTorn marks text that ends in the middle of its JSON.
var errTorn = fmt.Errorf("%w: it ends in the middle", ErrSyntax)

// noteTorn notes that the last line of a file is left out, where it is torn.
func (im *importer) noteTorn(err error) {
	var torn *Error
	if errors.As(err, &torn) {
		im.note(torn.Line, "", NoteLeftOut, "the last line ends in the middle: it was not written to its end")
	}
}

// valid returns the text as JSON that everything else can rely on. What programs in JavaScript leave behind when they cut a text
// in the middle of a letter becomes U+FFFD.
func (im *importer) valid(at int, text string) (content.JSON, error) {
	j := content.JSON(text)
	if j.Valid() {
		return j, nil
	}
	v := jsontext.Value(text)
	if err := v.Format(jsontext.AllowInvalidUTF8(true)); err != nil {
		var where *jsontext.SyntacticError
		if errors.As(err, &where) && where.ByteOffset <= int64(len(text)) {
			at = max(at, 1) + strings.Count(text[:where.ByteOffset], "\n")
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return "", im.errorf(at, "", errTorn, "")
		}
		return "", im.errorf(at, "", ErrSyntax, "%s", strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	if j = content.JSON(v); !j.Valid() {
		return "", im.errorf(at, "", ErrSyntax, "")
	}
	im.note(at, "", NoteChanged, "bytes that are no text were replaced by U+FFFD")
	return j, nil
}

// members reads an object, one of a place that is named.
func (im *importer) members(at int, where string, j content.JSON) ([]wire.Member, error) {
	if !strings.HasPrefix(strings.TrimLeft(string(j), " \t\r\n"), "{") {
		return nil, im.errorf(at, where, ErrShape, "an object was expected, and not %s", excerpt(j))
	}
	list, err := wire.Members(j)
	if err != nil {
		return nil, im.errorf(at, where, ErrSyntax, "%v", err)
	}
	return list, nil
}

// object reads an object, of which there may be none.
func object(j content.JSON) ([]wire.Member, error) {
	if !strings.HasPrefix(strings.TrimLeft(string(j), " \t\r\n"), "{") {
		return nil, content.ErrJSON
	}
	return wire.Members(j)
}

// items reads a list.
func items(j content.JSON) ([]content.JSON, bool) {
	if !strings.HasPrefix(strings.TrimLeft(string(j), " \t\r\n"), "[") {
		return nil, false
	}
	var raw []wire.Raw
	if j.Decode(&raw) != nil {
		return nil, false
	}
	list := make([]content.JSON, len(raw))
	for i, r := range raw {
		list[i] = content.JSON(r)
	}
	return list, true
}

func excerpt(j content.JSON) string {
	if j == "" {
		return "nothing"
	}
	return safetext.Cut(string(j), 60)
}

// get returns a member's value; "" where there is none, or it is null.
func get(list []wire.Member, name string) content.JSON {
	for _, m := range list {
		if m.Name == name {
			if m.Value == "null" {
				return ""
			}
			return m.Value
		}
	}
	return ""
}

// text returns a member that is a string; "" where it is none.
func text(list []wire.Member, name string) string {
	s, _ := wire.Text(get(list, name))
	return s
}

// has reports whether one of the members is there.
func has(list []wire.Member, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return get(list, name) != "" })
}

func isTrue(list []wire.Member, name string) bool { return get(list, name) == "true" }

// number returns a member that is a number; 0 where it is none.
func number(list []wire.Member, name string) float64 {
	var f float64
	if j := get(list, name); j == "" || j.Decode(&f) != nil {
		return 0
	}
	return f
}

// count returns a member that counts something.
func count(list []wire.Member, name string) int64 {
	f := number(list, name)
	if !(f > 0) || f > math.MaxInt32*1024 {
		return 0
	}
	return int64(f)
}

// without is list but for the members of these names and those that are null.
func without(list []wire.Member, names ...string) []wire.Member {
	var rest []wire.Member
next:
	for _, m := range list {
		for _, name := range names {
			if m.Name == name {
				continue next
			}
		}
		if m.Value != "null" {
			rest = append(rest, m)
		}
	}
	return rest
}

// furthest are the seconds since 1970 that a time of a node can have: those of four-digit years.
const furthest = 253_402_300_799 // the end of 9999

// seconds is a time in seconds since 1970; the zero time where it is none.
func seconds(s float64) time.Time {
	if !(s > 0) || s > furthest {
		return time.Time{}
	}
	whole, part := math.Modf(s)
	return time.Unix(int64(whole), int64(math.Round(part*1e6))*1000).UTC()
}

// stamp is a time as RFC 3339 writes it, or in milliseconds since 1970; the zero time where it is neither.
func stamp(j content.JSON) time.Time {
	if s, ok := wire.Text(j); ok {
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil || t.Unix() > furthest || t.Unix() < -62_135_596_800 {
			return time.Time{}
		}
		return t.UTC()
	}
	var ms float64
	if j == "" || j.Decode(&ms) != nil {
		return time.Time{}
	}
	return seconds(ms / 1000)
}

// maxMetaDepth is how deep a value of metadata may nest.
const maxMetaDepth = 256

// metaOf is metadata with the members under key; empty where there are none.
func metaOf(meta node.Meta, key string, list []wire.Member) node.Meta {
	if len(list) == 0 {
		return meta
	}
	return metaWith(meta, key, wire.Object(list))
}

// metaWith is metadata with a value under key, as text where it nests too deep.
func metaWith(meta node.Meta, key string, j content.JSON) node.Meta {
	if j.Depth() > maxMetaDepth {
		j = wire.Quote(string(j))
	}
	if with, err := meta.With(key, j); err == nil {
		return with
	}
	return meta
}

// recognize notes whether a line is one that the program itself writes. Lines of unknown types are kept as records, so that a file of
// another program would otherwise become a conversation of records alone.
func (im *importer) recognize(line int, own bool) {
	im.own = im.own || own
	if !own && im.foreign == 0 {
		im.foreign = line
	}
}

// unrecognized returns an error if there are lines, and none is one that the program itself writes.
func (im *importer) unrecognized() error {
	if im.own || im.foreign == 0 {
		return nil
	}
	return im.errorf(im.foreign, "", ErrShape, "no line of the file is one of %s: it has another format", im.format)
}
