package openai

import (
	"slices"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// strictSchema reports whether OpenAI's APIs accept the schema as a strict one, to constrain the model's output. A
// strict schema
//
//   - is an object,
//   - requires all properties of every object and allows no others,
//   - has only keywords supported there by the APIs.
//
// In case of doubt strictSchema returns false.
func strictSchema(schema content.JSON) bool {
	list, err := jsonx.Members(schema)
	if err != nil {
		return false
	}
	kind, _, _ := jsonx.TakeText(list, "type")
	return kind == "object" && strictAt(schema, 0)
}

// strictDepth is the largest nesting depth of a strict schema.
const strictDepth = 5

// strictKeywords lists the keywords allowed in a strict schema.
var strictKeywords = []string{
	"type", "title", "description", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf",
	"$defs", "definitions", "$ref", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
	"multipleOf", "minItems", "maxItems",
}

// strictAt reports whether a schema at the given depth is strict. The root has depth 0.
func strictAt(schema content.JSON, depth int) bool {
	list, err := jsonx.Members(schema)
	if err != nil || depth > strictDepth {
		return false
	}

	object := false
	for _, m := range list {
		if !slices.Contains(strictKeywords, m.Name) || !strictBelow(m, depth) {
			return false
		}
		object = object || m.Name == "properties" || m.Name == "type" && isOfType(m.Value, "object")
	}

	return (depth == 0 || saysWhat(list)) && (!object || strictObject(list))
}

// saysWhat reports whether a schema restricts its values. Every schema below the root of a strict one must.
func saysWhat(list []jsonx.Member) bool {
	return slices.ContainsFunc(list, func(m jsonx.Member) bool {
		return slices.Contains([]string{"type", "$ref", "anyOf", "enum", "const"}, m.Name)
	})
}

// strictBelow reports whether the schemas inside a keyword are strict.
func strictBelow(m jsonx.Member, depth int) bool {
	switch m.Name {
	case "items":
		return strictAt(m.Value, depth+1)
	case "properties", "$defs", "definitions":
		named, err := jsonx.Members(m.Value)
		return err == nil &&
			!slices.ContainsFunc(named, func(n jsonx.Member) bool { return !strictAt(n.Value, depth+1) })
	case "anyOf":
		all, err := jsonx.Items(m.Value)
		return depth > 0 && err == nil &&
			!slices.ContainsFunc(all, func(one content.JSON) bool { return !strictAt(one, depth+1) })
	}
	return true
}

// strictObject reports whether all properties of an object are required and no others are allowed.
func strictObject(list []jsonx.Member) bool {
	further, _ := jsonx.Take(list, "additionalProperties")
	j, _ := jsonx.Take(list, "properties")
	properties, err := jsonx.Members(j)

	var required []string
	if listed, _ := jsonx.Take(list, "required"); listed != "" && listed.Decode(&required) != nil {
		return false
	}

	missing := func(p jsonx.Member) bool { return !slices.Contains(required, p.Name) }
	return further == "false" && (err == nil || j == "") && !slices.ContainsFunc(properties, missing)
}
