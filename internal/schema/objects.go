package schema

import (
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// deepestObjects is the maximum depth for Objects. dialect.Target replaces schemas with deeper nesting.
const deepestObjects = 100

// Objects returns schema with each subschema true replaced by {}. Both allow any value, but some servers accept only
// objects. In "additionalProperties" and similar keywords true is common, and stays.
func Objects(schema content.JSON) content.JSON {
	if !strings.Contains(string(schema), "true") {
		return schema
	}
	return objects(schema, 0)
}

// objects is Objects for a subschema at the given depth.
func objects(schema content.JSON, depth int) content.JSON {
	if schema == "true" && depth > 0 {
		return "{}"
	}
	if depth > deepestObjects {
		return schema
	}

	below := func(j content.JSON) content.JSON { return objects(j, depth+1) }
	return jsonx.MapMembers(schema, func(m jsonx.Member) content.JSON {
		switch m.Name {
		case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
			return jsonx.MapMembers(m.Value, func(n jsonx.Member) content.JSON { return below(n.Value) })
		case "items", "prefixItems", "allOf", "anyOf", "oneOf":
			if strings.HasPrefix(string(m.Value), "[") {
				return jsonx.MapItems(m.Value, below)
			}
			return below(m.Value)
		case "not", "if", "then", "else", "contains":
			return below(m.Value)
		case "additionalProperties":
			// Here true is common, and is kept.
			if m.Value != "true" {
				return below(m.Value)
			}
		}
		return m.Value
	})
}
