package openai

import (
	"slices"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/schema"
	"github.com/plait-dev/plait/internal/wire"
)

// completed returns the tool with a schema acceptable to OpenAI's APIs, and the reason for a change to note, or "".
func completed(t content.Tool) (content.Tool, string) {
	if t.Server() {
		return t, ""
	}

	full, listed := withProperties(t.Schema)
	t.Schema = full
	if listed {
		return t, `arrays without "items" in its schema are sent with "items" of any type`
	}
	return t, ""
}

// also joins two reasons, each of which may be "".
func also(why, further string) string {
	if why == "" || further == "" {
		return why + further
	}
	return why + "; " + further
}

// withProperties adds the parts required by OpenAI's APIs to a schema: "properties" of the root, and "items" of every
// list. The schema still allows the same values. The result listed reports whether "items" were added.
func withProperties(tree content.JSON) (full content.JSON, listed bool) {
	f := fulls.Get(tree, func(content.JSON) fullSchema {
		full := withItems(tree, 0)
		listed := full != tree

		if list, err := jsonx.Members(full); err == nil && value(list, "properties") == "" {
			full = jsonx.Object(append(list, jsonx.Member{Name: "properties", Value: "{}"}))
		}
		return fullSchema{full, listed}
	})
	return f.schema, f.listed
}

type fullSchema struct {
	schema content.JSON
	listed bool
}

// fulls caches the results of withProperties: the same tools are declared in every request.
var fulls wire.Cache[content.JSON, fullSchema]

// deepestItems is the depth down to which lists are searched. dialect.Target replaces schemas nested deeper.
const deepestItems = 100

// withItems adds "items" to the lists in a schema without them. The added "items" allow anything.
func withItems(tree content.JSON, depth int) content.JSON {
	list, err := jsonx.Members(tree)
	if err != nil || depth > deepestItems {
		return tree
	}

	changed := false
	for i, m := range list {
		list[i].Value = schema.MapBelow(m, func(below content.JSON) content.JSON { return withItems(below, depth+1) })
		changed = changed || list[i].Value != m.Value
	}

	if kind := value(list, "type"); kind != "" && isOfType(kind, "array") && value(list, "items") == "" {
		list, changed = append(list, jsonx.Member{Name: "items", Value: "{}"}), true
	}

	if !changed {
		return tree
	}
	return jsonx.Object(list)
}

// isOfType reports whether the value of "type" is kind or a list with it.
func isOfType(j content.JSON, kind string) bool {
	if one, ok := jsonx.Text(j); ok {
		return one == kind
	}
	var several []string
	return j.Decode(&several) == nil && slices.Contains(several, kind)
}
