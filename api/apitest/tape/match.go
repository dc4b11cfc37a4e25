package tape

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/safetext"
)

// same reports whether a request equals a recorded one.
func same(recorded, sent taped) bool {
	place, _ := differ(recorded, sent)
	return place == ""
}

// differ returns the first difference between a request and a recorded one, or "", and a measure of how much before it
// is equal.
func differ(recorded, sent taped) (place string, alike int) {
	// The measure is 0 for another method, 1 for another URL, and above that what is equal in the bodies.
	if recorded.method != sent.method {
		return changed("method", recorded.method, sent.method), 0
	}

	was, is := resource(recorded.url), resource(sent.url)
	if was != is {
		return changed("URL", was, is), 1
	}

	if bytes.Equal(recorded.body, sent.body) {
		return "", 2
	}

	a, b := content.JSON(recorded.body), content.JSON(sent.body)
	if !isJSON(a) || !isJSON(b) {
		return changed("body", string(a), string(b)), 2 + prefix(recorded.body, sent.body)
	}

	d := difference{}
	d.find("body", value(a), value(b))
	return d.place, 2 + d.alike
}

// resource returns the path and the query of a URL.
func resource(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.RequestURI()
}

func isJSON(j content.JSON) bool { return jsonx.Depth(j) < 1000 && j.Valid() }

// value decodes j. Numbers keep their written form.
func value(j content.JSON) (v any) {
	dec := json.NewDecoder(strings.NewReader(string(j)))
	dec.UseNumber()
	_ = dec.Decode(&v) // checked by isJSON
	return v
}

func prefix(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

func changed(place, was, is string) string {
	return fmt.Sprintf("%s: it was %s, and is %s", place, shown(was), shown(is))
}

func shown(s string) string { return safetext.Cut(s, 200) }

// difference is the first difference between two values. Alike counts the equal strings, numbers and other scalars
// before it.
type difference struct {
	place string
	alike int
}

// find sets d to the first difference, and reports whether there is one.
func (d *difference) find(place string, was, is any) bool {
	switch was := was.(type) {
	case map[string]any:
		if is, ok := is.(map[string]any); ok {
			return d.members(place, was, is)
		}
	case []any:
		if is, ok := is.([]any); ok {
			return d.elements(place, was, is)
		}
	default:
		if reflect.DeepEqual(was, is) {
			d.alike++
			return false
		}
	}

	// The values differ, or are not of one type.
	d.place = changed(place, jsonText(was), jsonText(is))
	return true
}

func (d *difference) members(place string, was, is map[string]any) bool {
	// Look at the names of both, in order: the first difference is then the same each time.
	names := maps.Clone(was)
	maps.Copy(names, is)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, before := was[name]
		b, now := is[name]

		switch at := place + "." + name; {
		case !now:
			d.place = shown(at) + ": it was " + shown(jsonText(a)) + ", and is not there any more"
		case !before:
			d.place = shown(at) + ": it was not there, and is " + shown(jsonText(b))
		case !d.find(at, a, b):
			continue
		}
		return true
	}
	return false
}

func (d *difference) elements(place string, was, is []any) bool {
	for i := range min(len(was), len(is)) {
		if d.find(fmt.Sprintf("%s[%d]", place, i), was[i], is[i]) {
			return true
		}
	}

	if len(was) != len(is) {
		d.place = fmt.Sprintf("%s: it had %d items, and has %d", shown(place), len(was), len(is))
		return true
	}
	return false
}

func jsonText(v any) string {
	b, _ := json.Marshal(v) // it was decoded from JSON
	return string(b)
}

// nearest describes the recording most like the request, and the first difference to it.
func (t *Tape) nearest(sent taped) string {
	what := sent.method + " " + shown(resource(sent.url))

	// Look at all recordings, even if only the next one may be played: the error then shows a wrong order.
	best, longest, next, why := -1, -1, -1, ""

	for i, made := range t.tracks {
		if made.played {
			continue
		}
		if next < 0 {
			next = i
		}

		place, alike := differ(made.request, sent)
		// An equal recording is on the tape, but it is not the next one.
		if place == "" {
			return fmt.Sprintf("%s: it is recording %d of %d, and recording %d comes next", what, i+1,
				len(t.tracks), next+1)
		}

		if alike > longest {
			best, longest, why = i, alike, place
		}
	}

	if best < 0 {
		return fmt.Sprintf("%s: all %d recordings were played", what, len(t.tracks))
	}
	return fmt.Sprintf("%s: the nearest is recording %d of %d: %s", what, best+1, len(t.tracks), why)
}
