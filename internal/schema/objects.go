package schema

import (
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// MapBelow returns the value of a keyword with each schema directly in it replaced by the result of to. The value of a
// keyword without schemas is returned as it is.
func MapBelow(keyword jsonx.Member, to func(content.JSON) content.JSON) content.JSON {
	switch keyword.Name {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return jsonx.MapMembers(keyword.Value, func(m jsonx.Member) content.JSON { return to(m.Value) })
	case "items", "prefixItems", "allOf", "anyOf", "oneOf":
		// "items" is one schema or, in older versions of JSON Schema, a list.
		if strings.HasPrefix(string(keyword.Value), "[") {
			return jsonx.MapItems(keyword.Value, to)
		}
		return to(keyword.Value)
	case "not", "if", "then", "else", "contains", "propertyNames", "additionalProperties", "additionalItems",
		"unevaluatedItems", "unevaluatedProperties", "contentSchema":
		return to(keyword.Value)
	}
	return keyword.Value
}

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
	if depth > deepestObjects {
		return schema
	}
	return jsonx.MapMembers(schema, func(m jsonx.Member) content.JSON {
		return MapBelow(m, func(below content.JSON) content.JSON {
			if below != "true" {
				return objects(below, depth+1)
			}
			switch m.Name {
			case "additionalProperties", "additionalItems", "unevaluatedItems", "unevaluatedProperties":
				return below
			}
			return "{}"
		})
	})
}
