package fake

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"
)

var (
	// The error text limits a name to 64 characters, the SDK's documentation to 128. The strictest counts.
	geminiName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)

	geminiTool = geminiMembers{"function_declarations": nil, "google_search": nil, "google_search_retrieval": nil, "google_maps": nil,
		"code_execution": nil, "url_context": nil, "computer_use": nil, "file_search": nil, "retrieval": nil, "enterprise_web_search": nil,
		"mcp_servers": nil, "exa_ai_search": nil, "parallel_ai_search": nil}
	geminiFunction = geminiMembers{"name": gString, "description": gString, "parameters": nil, "parameters_json_schema": nil,
		"response": nil, "response_json_schema": nil, "behavior": gString}
)

// checkTools checks the list of tools, and notes whether the API itself runs any of them.
func (c *geminiCheck) checkTools(v jsontext.Value) {
	for i, v := range repeated(v) {
		path := fmt.Sprintf("tools[%d]", i)
		o := c.message(path, "Tool", v, geminiTool)
		for j, v := range repeated(o["function_declarations"]) {
			c.function(fmt.Sprintf("%s.function_declarations[%d]", path, j), v)
		}
		delete(o, "function_declarations")
		c.served = c.served || len(o) > 0
	}
}

func (c *geminiCheck) function(path string, v jsontext.Value) {
	o := c.message(path, "FunctionDeclaration", v, geminiFunction)

	name := text(o["name"])
	if !geminiName.MatchString(name) {
		c.field(path+".name",
			"Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), underscores (_), "+
				"dots (.), colons (:), or dashes (-), with a maximum length of 64.")
	}

	// Names are unique in all entries of "tools" together.
	if c.functions[name] {
		c.fail("Duplicate function declaration found: %s", name)
	}
	c.functions[name] = true

	// Only "parameters" is in the API's own form. A JSON schema may have any keyword.
	if o["parameters"] != nil && o["parameters_json_schema"] != nil {
		c.field(path, "parameters and parameters_json_schema cannot be set together.")
	}
	if o["parameters"] != nil {
		c.schema(path+".parameters", o["parameters"], 0)
	}
	if v := o["parameters_json_schema"]; v != nil && v.Kind() != '{' {
		c.field(path+".parameters_json_schema", "schema must be an object.")
	}
}

// toolConfig checks how functions may be called, and whether they may be combined with the API's own tools.
func (c *geminiCheck) toolConfig(v jsontext.Value) {
	config := object{}
	if v != nil {
		config = c.message("tool_config", "ToolConfig", v,
			geminiMembers{"function_calling_config": nil, "retrieval_config": nil,
				"include_server_side_tool_invocations": gBool})
	}

	c.callingConfig(config["function_calling_config"])

	// Gemini 3 accepts functions beside the API's own tools, on request. The older models do not.
	if c.served && len(c.functions) > 0 && string(config["include_server_side_tool_invocations"]) != "true" {
		if beforeGemini3.MatchString(c.model) {
			c.fail("Tool use with function calling is unsupported")
		}
		c.fail("Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling.")
	}
}

func (c *geminiCheck) callingConfig(v jsontext.Value) {
	if v == nil {
		return
	}
	const path = "tool_config.function_calling_config"
	o := c.message(path, "FunctionCallingConfig", v,
		geminiMembers{"allowed_function_names": gList(gString), "stream_function_call_arguments": gBool,
			"mode": gEnum("FunctionCallingConfig.Mode", "MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")})

	if len(c.functions) == 0 {
		c.fail("Function calling config is set without function_declarations.")
	}

	// The fake also accepts names in the mode VALIDATED, which the error text does not mention.
	names := repeated(o["allowed_function_names"])
	if mode := strings.ToUpper(text(o["mode"])); len(names) > 0 && mode != "ANY" && mode != "VALIDATED" {
		c.fail("Allowed function names should be set only when function calling mode is ANY.")
	}

	for i, name := range names {
		if !c.functions[text(name)] {
			c.field(fmt.Sprintf("%s.allowed_function_names[%d]", path, i), "function '%s' is not declared.", text(name))
		}
	}
}

var geminiSchema = geminiMembers{
	"type":   gEnum("Type", "TYPE_UNSPECIFIED", "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"),
	"any_of": nil, "default": nil, "description": gString, "enum": gList(gString), "example": nil, "format": gString, "items": nil,
	"max_items": nil, "max_length": nil, "max_properties": nil, "maximum": nil, "min_items": nil, "min_length": nil, "min_properties": nil,
	"minimum": nil, "nullable": gBool, "pattern": gString, "properties": nil, "property_ordering": gList(gString),
	"required": gList(gString), "title": gString,
}

// schema checks a schema in the API's own form. It has fewer keywords than JSON schema.
func (c *geminiCheck) schema(path string, v jsontext.Value, depth int) {
	if depth > maxSchemaDepth {
		c.field(path, "the schema nests too deeply.")
		return
	}
	o := c.message(path, "Schema", v, geminiSchema)

	kind := strings.ToUpper(text(o["type"]))
	var properties object
	if v := o["properties"]; v != nil && json.Unmarshal(v, &properties) != nil {
		c.value(path+".properties", "type.googleapis.com/google.ai.generativelanguage.v1beta.Schema.PropertiesEntry", v)
	}

	c.schemaWords(path, kind, o, properties)

	// An error text numbers the properties: in alphabetical order, the same schema always gets the same text.
	for i, name := range slices.Sorted(maps.Keys(properties)) {
		c.schema(fmt.Sprintf("%s.properties[%d].value", path, i), properties[name], depth+1)
	}
	if o["items"] != nil {
		c.schema(path+".items", o["items"], depth+1)
	}
	for i, v := range repeated(o["any_of"]) {
		c.schema(fmt.Sprintf("%s.any_of[%d]", path, i), v, depth+1)
	}
}

// schemaWords checks that the keywords of a schema fit its type.
func (c *geminiCheck) schemaWords(path, kind string, o, properties object) {
	// A schema without a type may have properties and an enum.
	switch {
	case kind == "ARRAY" && o["items"] == nil:
		c.field(path+".items", "missing field.")
	case kind != "" && kind != "OBJECT" && o["properties"] != nil:
		c.field(path+".properties", "only allowed for OBJECT type")
	case o["enum"] != nil && kind != "STRING" && kind != "":
		c.field(path+".enum", "only allowed for STRING type")
	}

	for i, v := range repeated(o["enum"]) {
		if text(v) == "" {
			c.field(fmt.Sprintf("%s.enum[%d]", path, i), "cannot be empty")
		}
	}
	if format := text(o["format"]); kind == "STRING" && format != "" && format != "enum" && format != "date-time" {
		c.field(path+".format", "only 'enum' and 'date-time' are supported for STRING type")
	}
	for i, v := range repeated(o["required"]) {
		if _, ok := properties[text(v)]; !ok {
			c.field(fmt.Sprintf("%s.required[%d]", path, i), "property is not defined")
		}
	}
}
