package roundtrip

import (
	"bytes"
	"slices"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// usageMember is the member of api.Finish.Details for the usage that content.Usage does not have.
const usageMember = "usage"

// AddUsage keeps the members of the API's usage that content.Usage does not have: costs, tiers, tokens of a kind of
// their own. Counted names the members that it has; a dot separates the names of nested ones. Members that count nothing
// are left out: null, 0, empty texts, lists and objects. A later usage replaces an earlier one member by member.
func (d *Details) AddUsage(usage jsonx.Raw, counted ...string) {
	if len(usage) == 0 || bytes.Equal(usage, d.lastUsage) {
		return
	}
	d.lastUsage = usage
	d.usage = Over(d.usage, uncounted(content.JSON(usage), "", counted))
}

// uncounted returns a usage without the members that are counted, or "" if nothing remains. Path is its name, with a dot
// at the end.
func uncounted(usage content.JSON, path string, counted []string) content.JSON {
	list, err := jsonx.Members(usage)
	if err != nil {
		return ""
	}

	var kept Header
	for _, m := range list {
		switch {
		case slices.Contains(counted, path+m.Name), slices.Contains([]content.JSON{"null", "0", "0.0", `""`, "[]"}, m.Value):
		case m.Value[0] == '{':
			kept.Set(m.Name, uncounted(m.Value, path+m.Name+".", counted))
		default:
			kept.Set(m.Name, m.Value)
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return jsonx.Object(kept)
}
