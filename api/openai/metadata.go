package openai

import (
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx/write"
	"github.com/plait-dev/plait/internal/safetext"
)

// The limits of OpenAI's APIs for metadata: the number of pairs, and the letters in a key and in a value.
const (
	maxMetadata      = 16
	maxMetadataKey   = 64
	maxMetadataValue = 512
)

// metadata returns the pairs within the API's limits as an object, or "" if there are none. If there are too many
// pairs, the first ones in the order of their keys are kept. Dropped pairs are noted.
func metadata(pairs map[string]string, note func(kind api.RepairKind, format string, args ...any)) content.JSON {
	// In the order of the keys, because equal requests must have equal bytes.
	dst := []byte{'{'}
	kept, left := 0, []string(nil)
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		value := pairs[key]
		if kept == maxMetadata ||
			utf8.RuneCountInString(key) > maxMetadataKey || utf8.RuneCountInString(value) > maxMetadataValue {
			left = append(left, key)
			continue
		}
		kept++
		dst = write.String(dst, key, value)
	}

	if len(left) > 0 {
		note(api.RepairOption,
			"%d pairs of Metadata are left out, the first with the key %s: the API accepts %d, with keys of %d and values of %d characters",
			len(left), safetext.Quote(left[0], maxMetadataKey), maxMetadata, maxMetadataKey, maxMetadataValue)
	}

	if kept == 0 {
		return ""
	}
	return content.JSON(append(dst, '}'))
}
