package executor

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/internal/schema"
)

// inferSchema infers the schema of arguments from their type.
func inferSchema(t reflect.Type) (*schema.Schema, error) {
	made, err := schema.Infer(t)
	switch {
	case err != nil:
		return nil, err
	case t.Kind() == reflect.Struct && schema.OwnForm(t):
		return nil, fmt.Errorf("its arguments are %s, which has an UnmarshalJSON, UnmarshalText or Enum method of its own", t)
	case made.Type() != "object":
		return nil, fmt.Errorf("its arguments are %s: take a struct", t)
	}
	return made, nil
}

// argumentError lists the problems with the arguments of a call. Its text is for the model.
type argumentError struct {
	tool     string
	problems []string
	input    content.JSON
}

// Limits on the text of an argumentError: problems, and bytes of each problem and of the arguments.
const (
	maxProblems = 20
	maxInput    = 1000
)

func (e *argumentError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Validation failed for tool %q:\n", e.tool)
	for i, problem := range e.problems {
		if i == maxProblems {
			fmt.Fprintf(&b, "  - and %d more\n", len(e.problems)-i)
			break
		}
		b.WriteString("  - " + safetext.Cut(problem, maxInput) + "\n")
	}
	b.WriteString("\nReceived arguments:\n" + safetext.Cut(string(e.input), maxInput))
	return b.String()
}
