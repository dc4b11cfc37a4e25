package fake

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"
)

// checkTools checks the tools of a request.
func (c *anthropicCheck) checkTools(o object) {
	v, ok := o["tools"]
	if !ok {
		return
	}

	var strict strictSchemas
	for i, v := range c.list("tools", v) {
		path := fmt.Sprintf("tools.%d", i)
		tool := c.object(path, v, nil)

		// The members of a server tool depend on the tool.
		custom := true
		if kind, ok := tool["type"]; ok && string(kind) != "null" && text(kind) != "custom" {
			custom = false
		}
		if custom {
			path += ".custom"
			c.only(path, tool, anthropicCustom)
		}

		// A toolset has no name, and no member for one (BrowserToolset20260801Param and BetaMCPToolsetParam of the SDK).
		if kind := text(tool["type"]); strings.Contains(kind, "toolset") {
			path += "." + kind
			c.only(path, tool, anthropicToolset)
			if kind == "mcp_toolset" {
				c.text(path, tool, "mcp_server_name")
			}
			c.cacheControl(path, tool)
			c.tools = append(c.tools, kind)
			continue
		}

		name := c.text(path, tool, "name")
		if !anthropicName.MatchString(name) {
			c.fail("%s.name: String should match pattern '%s'", path, anthropicName)
		}
		if slices.Contains(c.tools, name) {
			c.fail("tools: Tool names must be unique.")
		}

		c.tools = append(c.tools, name)

		if custom {
			c.schema(path, tool)
			if string(tool["strict"]) == "true" {
				strict.add(tool["input_schema"])
			}
		}
		c.cacheControl(path, tool)
	}
	c.strict(strict)
}

func (c *anthropicCheck) schema(path string, tool object) {
	path += ".input_schema"
	v, ok := tool["input_schema"]
	if !ok {
		c.fail("%s: Field required", path)
		return
	}
	if v.Kind() != '{' {
		c.fail("%s: Input does not match the expected shape.", path)
		return
	}

	schema := c.object(path, v, nil)
	if kind, ok := schema["type"]; !ok {
		c.fail("%s.type: Field required", path)
	} else if text(kind) != "object" {
		c.fail("%s.type: Input should be 'object'", path)
	}

	for _, union := range []string{"oneOf", "allOf", "anyOf"} {
		if _, ok := schema[union]; ok {
			c.fail("%s: input_schema does not support oneOf, allOf, or anyOf at the top level", path)
		}
	}

	for name := range c.optional(path+".properties", schema, "properties") {
		if !anthropicProperty.MatchString(name) {
			c.fail("%s.properties: Property keys should match pattern '%s'", path, anthropicProperty)
		}
	}
}

func (c *anthropicCheck) strict(s strictSchemas) {
	switch {
	case s.tools > 20:
		c.fail("Too many strict tools (%d). The maximum number of strict tools supported is 20", s.tools)
	case s.optional > 24:
		c.fail("Schemas contains too many optional parameters (%d), which would make grammar compilation inefficient. "+
			"Reduce the number of optional parameters in your tool schemas (limit: 24).", s.optional)
	case s.unions > 16:
		c.fail("Schemas contains too many parameters with union types (%d parameters with type arrays or anyOf). "+
			"Reduce the number of nullable or union-typed parameters (limit: 16).", s.unions)
	case s.optional == 24:
		// The text above allows 24, but a recorded request with 24 was refused with this one.
		c.fail("Schema is too complex for compilation. Try reducing the number of tools or simplifying tool schemas.")
	}
}

// strictSchemas counts the limited parts of all strict tools.
type strictSchemas struct{ tools, optional, unions int }

func (s *strictSchemas) add(schema jsontext.Value) {
	s.tools++
	s.count(schema, 0)
}

func (s *strictSchemas) count(v jsontext.Value, depth int) {
	var schema struct {
		Type       jsontext.Value            `json:"type"`
		AnyOf      []jsontext.Value          `json:"anyOf"`
		Required   []string                  `json:"required"`
		Properties map[string]jsontext.Value `json:"properties"`
		Items      jsontext.Value            `json:"items"`
	}

	// Each level decodes all levels below it again: without a limit, a deep schema would take quadratic time.
	if depth > 100 || v.Kind() != '{' || json.Unmarshal(v, &schema) != nil {
		return
	}

	if schema.Type.Kind() == '[' || schema.AnyOf != nil {
		s.unions++
	}

	for name, property := range schema.Properties {
		if !slices.Contains(schema.Required, name) {
			s.optional++
		}
		s.count(property, depth+1)
	}

	s.count(schema.Items, depth+1)
	for _, one := range schema.AnyOf {
		s.count(one, depth+1)
	}
}
