package sessions

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
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

// bom is the byte order mark. Some editors write it at the beginning of a file.
const bom = "\uFEFF"

// readAll returns the whole file as text.
func (im *importer) readAll(r io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, im.opts.Limit))
	if err != nil {
		return "", err
	}
	if err := im.checkLimit(r, int64(len(data))); err != nil {
		return "", err
	}
	return strings.TrimPrefix(string(data), bom), nil
}

// checkLimit returns dag.ErrLimit if the limit was reached and r has more.
func (im *importer) checkLimit(r io.Reader, read int64) error {
	if read < im.opts.Limit {
		return nil
	}
	if n, _ := io.ReadFull(r, make([]byte, 1)); n == 0 {
		return nil
	}
	return im.errorf(0, "", dag.ErrLimit, "more than %d bytes", im.opts.Limit)
}

// line is a nonblank line of a file.
type line struct {
	at   int // its number, from 1
	text string
}

// lines calls each with every nonblank line. A file without such lines is an error, because it is most likely the wrong
// file.
//
// Another program may still be writing the last line. If it ends in the middle of its JSON, it is therefore left out,
// with a note.
func (im *importer) lines(r io.Reader, each func(line) error) error {
	limited := &io.LimitedReader{R: r, N: im.opts.Limit}
	in := bufio.NewReaderSize(limited, 64<<10)
	empty := true
	var torn error // the error of a torn line; returned unless the line is the last

	for at := 1; ; at++ {
		text, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return im.errorf(at, "", err, "")
		}

		last := err != nil
		// The end may come from the limit instead of the file.
		if last && limited.N <= 0 {
			if err := im.checkLimit(r, im.opts.Limit); err != nil {
				return err
			}
		}

		if at == 1 {
			text = bytes.TrimPrefix(text, []byte(bom))
		}

		if text = bytes.TrimSpace(text); len(text) > 0 {
			// Another line follows the torn one, so it is not the last.
			if torn != nil {
				return torn
			}

			err := each(line{at, string(text)})
			if err != nil && (empty || !errors.Is(err, errTorn)) {
				return err
			}
			torn, empty = err, false
		}

		if last && empty {
			return im.errorf(at, "", errSyntax, "the file is empty")
		}
		if last {
			im.noteTorn(torn)
			return nil
		}
	}
}

// objectLine is a line with a JSON object that has a type.
type objectLine struct {
	at   int
	json content.JSON
	list []jsonx.Member
	kind string
}

// objects calls each with the object on every line. At least one line must be of the format's own program: see recognize.
func (im *importer) objects(r io.Reader, each func(objectLine) error) error {
	err := im.lines(r, func(l line) error {
		j, err := im.valid(l.at, l.text)
		if err != nil {
			return err
		}
		list, err := im.members(l.at, "", j)
		if err != nil {
			return err
		}
		kind := text(list, "type")
		if kind == "" {
			return im.errorf(l.at, "", errShape, "the line has no type")
		}
		return each(objectLine{l.at, j, list, kind})
	})
	if err != nil {
		return err
	}
	return im.unrecognized()
}

// errTorn marks text with its end in the middle of its JSON.
var errTorn = fmt.Errorf("%w: it is cut off", errSyntax)

// noteTorn adds a note about a torn last line. A nil error is ignored.
func (im *importer) noteTorn(err error) {
	var torn *Error
	if errors.As(err, &torn) {
		im.note(torn.Line, "", noteLeftOut, "the last line is incomplete")
	}
}

// valid returns the text as valid JSON. Invalid UTF-8 and lone surrogates become U+FFFD: programs in JavaScript write
// them when they cut a text in the middle of a character.
func (im *importer) valid(at int, text string) (content.JSON, error) {
	j := content.JSON(text)
	if j.Valid() {
		return j, nil
	}

	v := jsontext.Value(text)
	if err := v.Format(jsontext.AllowInvalidUTF8(true)); err != nil {
		// The text may be a document of several lines: count those before the error.
		var where *jsontext.SyntacticError
		if errors.As(err, &where) && where.ByteOffset <= int64(len(text)) {
			at = max(at, 1) + strings.Count(text[:where.ByteOffset], "\n")
		}

		if errors.Is(err, io.ErrUnexpectedEOF) {
			return "", im.errorf(at, "", errTorn, "")
		}
		return "", im.errorf(at, "", errSyntax, "%s", strings.TrimPrefix(err.Error(), "jsontext: "))
	}

	if j = content.JSON(v); !j.Valid() {
		return "", im.errorf(at, "", errSyntax, "")
	}

	im.note(at, "", noteChanged, "invalid characters were replaced by U+FFFD")
	return j, nil
}

// members returns the members of an object. Errors name the line and the position.
func (im *importer) members(at int, where string, j content.JSON) ([]jsonx.Member, error) {
	if !strings.HasPrefix(strings.TrimLeft(string(j), " \t\r\n"), "{") {
		return nil, im.errorf(at, where, errShape, "expected an object, got %s", excerpt(j))
	}

	list, err := jsonx.Members(j)
	if err != nil {
		return nil, im.errorf(at, where, errSyntax, "%v", err)
	}
	return list, nil
}

// object returns the members of an object. The caller handles all other values.
func object(j content.JSON) ([]jsonx.Member, error) {
	if !strings.HasPrefix(strings.TrimLeft(string(j), " \t\r\n"), "{") {
		return nil, content.ErrJSON
	}
	return jsonx.Members(j)
}

// items returns the elements of a list, and false if j is not a list.
func items(j content.JSON) ([]content.JSON, bool) {
	if !strings.HasPrefix(strings.TrimLeft(string(j), " \t\r\n"), "[") {
		return nil, false
	}

	list, err := jsonx.Items(j)
	return list, err == nil
}

// excerpt returns the beginning of j, for errors and notes.
func excerpt(j content.JSON) string {
	if j == "" {
		return "nothing"
	}
	return safetext.Cut(strings.TrimSpace(string(j)), 60)
}

// get returns the value of a member, or "" if it is absent or null.
func get(list []jsonx.Member, name string) content.JSON {
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

// text returns the value of a string member, or "" if it is not a string.
func text(list []jsonx.Member, name string) string {
	s, _ := jsonx.Text(get(list, name))
	return s
}

// has reports whether at least one of the members is present.
func has(list []jsonx.Member, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return get(list, name) != "" })
}

func isTrue(list []jsonx.Member, name string) bool { return get(list, name) == "true" }

// number returns the value of a number member, or 0 if it is not a number.
func number(list []jsonx.Member, name string) float64 {
	var f float64
	if j := get(list, name); j == "" || j.Decode(&f) != nil {
		return 0
	}
	return f
}

// count returns the value of a counter, or 0 if it is negative or absurdly large.
func count(list []jsonx.Member, name string) int64 {
	// The negation is also true for NaN.
	f := number(list, name)
	if !(f > 0) || f > math.MaxInt32*1024 {
		return 0
	}
	return int64(f)
}

// without returns the members except null ones and these names.
func without(list []jsonx.Member, names ...string) []jsonx.Member {
	var rest []jsonx.Member
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

// The first and the last second of the years 1 to 9999, counted from 1970: the range of a node's time.
const (
	minTime = -62_135_596_800
	maxTime = 253_402_300_799
)

// seconds converts seconds since 1970 to a time. It returns the zero time if s is out of range.
func seconds(s float64) time.Time {
	if !(s > 0) || s > maxTime {
		return time.Time{}
	}

	// A float64 of seconds since 1970 is exact to less than a microsecond. Further digits are noise of the conversion.
	whole, part := math.Modf(s)
	return time.Unix(int64(whole), int64(math.Round(part*1e6))*1000).UTC()
}

// stamp converts a text in RFC 3339 form, or milliseconds since 1970, to a time. It returns the zero time if j is
// neither.
func stamp(j content.JSON) time.Time {
	if s, ok := jsonx.Text(j); ok {
		t, err := time.Parse(time.RFC3339Nano, s)
		if err != nil || t.Unix() > maxTime || t.Unix() < minTime {
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

// maxMetaDepth limits the nesting of a metadata value.
const maxMetaDepth = 256

// metaOf returns meta with the members as an object under key. Without members, it returns meta.
func metaOf(meta node.Meta, key string, list []jsonx.Member) node.Meta {
	if len(list) == 0 {
		return meta
	}
	return metaWith(meta, key, jsonx.Object(list))
}

// metaWith returns meta with a value under key. A too deeply nested value is stored as text.
func metaWith(meta node.Meta, key string, j content.JSON) node.Meta {
	if jsonx.Depth(j) > maxMetaDepth {
		j = jsonx.Quote(string(j))
	}
	if with, err := meta.With(key, j); err == nil {
		return with
	}
	return meta
}

// recognize records whether the format's own program writes such lines; see unrecognized.
func (im *importer) recognize(line int, own bool) {
	im.own = im.own || own
	if !own && im.foreign == 0 {
		im.foreign = line
	}
}

// unrecognized returns an error if the file has lines, and the format's own program writes none of them. Lines of
// unknown types are kept as records; without this check, a file of another program would become a conversation of
// nothing but records.
func (im *importer) unrecognized() error {
	if im.own || im.foreign == 0 {
		return nil
	}
	return im.errorf(im.foreign, "", errShape, "the file has another format: no line is in the format %s", im.format)
}
