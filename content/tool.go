package content

import (
	"errors"
	"fmt"
	"regexp"
)

// ErrTool is in the chain of every error about a tool definition that cannot be declared.
var ErrTool = errors.New("invalid tool definition")

// toolName is what all supported APIs accept as a name.
var toolName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)

// Tool declares a tool to a model.
type Tool struct {
	// Name is what the model calls it by: a letter or underscore, then letters, digits, "_" and "-", 64 in all.
	Name string
	// Description tells the model what it does and when to use it.
	Description string
	// Schema is the JSON Schema of the arguments: an object whose "type" is "object".
	Schema JSON
	// Extra holds a provider's further members of the definition. A tool that the provider itself runs (a server tool) is
	// declared by Extra alone: it has a "type" member there, and no Schema.
	Extra Extra
}

// Server reports whether the provider itself runs the tool, so that no program needs to.
func (t Tool) Server() bool { return t.Schema == "" && t.Extra != (Extra{}) }

// Check returns an error in whose chain ErrTool stands when t cannot be declared: a name or a schema that an API refuses.
func (t Tool) Check() error {
	if !toolName.MatchString(t.Name) {
		return fmt.Errorf("%w: the name %q does not match %s", ErrTool, t.Name, toolName)
	}
	if reason := t.Extra.check(); reason != "" {
		return fmt.Errorf("%w: %s: %s", ErrTool, t.Name, reason)
	}
	if t.Server() {
		return nil
	}
	var schema struct {
		Type string `json:"type"`
	}
	if err := t.Schema.Decode(&schema); err != nil {
		return fmt.Errorf("%w: %s: its schema: %w", ErrTool, t.Name, err)
	}
	if schema.Type != "object" {
		return fmt.Errorf("%w: %s: its schema's type is %q, not \"object\"", ErrTool, t.Name, schema.Type)
	}
	return nil
}

// Definition returns t itself, so that a definition can be declared as a tool that no program runs.
func (t Tool) Definition() Tool { return t }
