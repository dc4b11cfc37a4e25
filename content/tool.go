package content

import (
	"errors"
	"fmt"

	"github.com/plait-dev/plait/internal/pattern"
)

// ErrTool is in the chain of every error about a tool definition that cannot be declared.
var ErrTool = errors.New("invalid tool definition")

// toolName matches the names accepted by all supported APIs.
var toolName = pattern.Of(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)

// Tool declares a tool to a model.
type Tool struct {
	// Name identifies the tool in calls: a letter or underscore, then letters, digits, "_" and "-", at most 64
	// characters in all.
	Name string
	// Description explains to the model how and when to use the tool.
	Description string
	// Schema is the JSON Schema of the arguments: an object with the "type" "object".
	Schema JSON
	// Extra holds a provider's further members of the definition. A server tool, executed by the provider itself, is
	// declared by Extra alone: it has a "type" member there, and no Schema.
	Extra Extra
}

// Server reports whether the provider itself executes the tool.
func (t Tool) Server() bool { return t.Schema == "" && t.Extra != (Extra{}) }

// Check returns an error if an API would refuse the definition: its name or its schema. The error's chain holds
// ErrTool.
func (t Tool) Check() error {
	if !toolName().MatchString(t.Name) {
		return fmt.Errorf("%w: the name %q does not match %s", ErrTool, t.Name, toolName())
	}
	if reason := t.Extra.check(); reason != "" {
		return fmt.Errorf("%w: %s: %s", ErrTool, t.Name, reason)
	}

	// A server tool has no schema: the provider defines it.
	if t.Server() {
		return nil
	}

	// Arguments are always an object. APIs refuse any other schema.
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

// Definition returns t itself, so that a definition can be declared as a tool without a function.
func (t Tool) Definition() Tool { return t }
