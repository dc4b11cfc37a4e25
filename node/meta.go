package node

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/safetext"
)

// maxMetaDepth is the maximum nesting of a value. It keeps a node below maxDepth, so that it can be read again.
const maxMetaDepth = 256

// Meta is the metadata of a node or of a whole conversation: JSON values by name, for the program's own use. It is
// never sent, and no digest covers it. The zero value is empty.
type Meta struct {
	entries *[]entry // sorted by key, never written after it is set
}

type entry struct {
	key   string
	value content.JSON
}

func (e entry) compare(key string) int { return strings.Compare(e.key, key) }

// With returns the metadata with value, encoded as JSON, under key. If the value cannot be encoded, or is nested deeper
// than 256, it returns an error with content.ErrJSON in its chain.
func (m Meta) With(key string, value any) (Meta, error) {
	j, err := content.ToJSON(value)
	if err == nil && jsonx.Depth(j) > maxMetaDepth {
		err = fmt.Errorf("%w that can be saved: it nests deeper than %d", content.ErrJSON, maxMetaDepth)
	}
	if err != nil {
		return m, fmt.Errorf("metadata %q: %w", key, err)
	}
	return m.with(safetext.UTF8(key), j), nil
}

func (m Meta) with(key string, j content.JSON) Meta {
	// The entries are shared with other Metas: change a copy.
	entries := make([]entry, 0, m.Len()+1)
	if m.entries != nil {
		entries = append(entries, *m.entries...)
	}
	i, found := slices.BinarySearchFunc(entries, key, entry.compare)
	if found {
		entries[i].value = j
	} else {
		entries = slices.Insert(entries, i, entry{key, j})
	}
	return Meta{&entries}
}

// Get returns the value under key as JSON, or "" if there is none.
func (m Meta) Get(key string) content.JSON {
	if m.entries == nil {
		return ""
	}
	i, found := slices.BinarySearchFunc(*m.entries, key, entry.compare)
	if !found {
		return ""
	}
	return (*m.entries)[i].value
}

// Len returns the number of entries.
func (m Meta) Len() int {
	if m.entries == nil {
		return 0
	}
	return len(*m.entries)
}

// All yields each name with its value, sorted by name.
func (m Meta) All() func(yield func(string, content.JSON) bool) {
	return func(yield func(string, content.JSON) bool) {
		if m.entries == nil {
			return
		}
		for _, e := range *m.entries {
			if !yield(e.key, e.value) {
				return
			}
		}
	}
}

// Append appends the saved form to dst: a JSON object, its members sorted by name.
func (m Meta) Append(dst []byte) []byte {
	dst = append(dst, '{')
	for key, value := range m.All() {
		dst = append(write.Name(dst, key), value...)
	}
	return append(dst, '}')
}

// MarshalJSON returns the saved form, as Append does.
func (m Meta) MarshalJSON() ([]byte, error) { return m.Append(nil), nil }

// UnmarshalJSON reads the saved form. Values keep their bytes.
func (m *Meta) UnmarshalJSON(data []byte) error {
	var values map[string]jsontext.Value
	if err := json.Unmarshal(data, &values); err != nil {
		return err
	}

	entries := make([]entry, 0, len(values))
	for key, value := range values {
		entries = append(entries, entry{key, content.JSON(value)})
	}
	slices.SortFunc(entries, func(a, b entry) int { return a.compare(b.key) })

	*m = Meta{}
	if len(entries) > 0 {
		m.entries = &entries
	}
	return nil
}
