package schema

import (
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/jsonx/write"
)

// deepestObjects is the depth down to which Objects looks. dialect.Target replaces schemas that nest deeper.
const deepestObjects = 100

// Objects returns schema with each subschema true replaced by {}. Both allow any value, but some servers accept only
// objects. In "additionalProperties" and similar keywords, where true is common, it stays.
func Objects(schema content.JSON) content.JSON {
	if !strings.Contains(string(schema), "true") {
		return schema
	}
	return objects(schema, 0)
}

// objects is Objects for a subschema at that depth.
func objects(schema content.JSON, depth int) content.JSON {
	if schema == "true" && depth > 0 {
		return "{}"
	}
	list, err := jsonx.Members(schema)
	if err != nil || depth > deepestObjects {
		return schema
	}

	below := func(j content.JSON) content.JSON { return objects(j, depth+1) }
	return replaced(schema, list, func(m jsonx.Member) content.JSON {
		switch m.Name {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			named, err := jsonx.Members(m.Value)
			if err != nil {
				return m.Value
			}
			return replaced(m.Value, named, func(n jsonx.Member) content.JSON { return below(n.Value) })
		case "items", "prefixItems", "allOf", "anyOf", "oneOf":
			if strings.HasPrefix(string(m.Value), "[") {
				return eachReplaced(m.Value, below)
			}
			return below(m.Value)
		case "not", "if", "then", "else", "contains":
			return below(m.Value)
		case "additionalProperties":
			if m.Value != "true" {
				return below(m.Value)
			}
		}
		return m.Value
	})
}

// replaced returns the object with the members of list, each with the value that by returns for it. If no value
// changes, it returns object unchanged.
func replaced(object content.JSON, list []jsonx.Member, by func(jsonx.Member) content.JSON) content.JSON {
	changed := false
	list = slices.Clone(list)
	for i, m := range list {
		list[i].Value = by(m)
		changed = changed || list[i].Value != m.Value
	}

	if !changed {
		return object
	}
	return jsonx.Object(list)
}

// eachReplaced is replaced for the items of a list.
func eachReplaced(j content.JSON, by func(content.JSON) content.JSON) content.JSON {
	var items []jsonx.Raw
	if j.Decode(&items) != nil {
		return j
	}

	changed := false
	dst := []byte{'['}
	for _, item := range items {
		is := content.JSON(item)
		now := by(is)
		changed = changed || now != is
		dst = append(write.Comma(dst), now...)
	}

	if !changed {
		return j
	}
	return content.JSON(append(dst, ']'))
}
