package registry

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/safetext"
)

// parseCall reads a tool call in the form of the Chat Completions API. The Input is the arguments byte for byte. With an
// error, the Call has the tool's name, if that could be read.
func parseCall(data []byte) (executor.Call, error) {
	var c struct {
		ID       string `json:"id"`
		Function struct {
			Name      string         `json:"name"`
			Arguments jsontext.Value `json:"arguments"`
		} `json:"function"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		return executor.Call{}, notACall(err)
	}
	call := executor.Call{Name: c.Function.Name, ID: c.ID}
	if call.Name == "" {
		return call, notACall(errors.New("function.name is missing or empty"))
	}

	// The arguments are a string with the JSON. Some servers send the object itself.
	value := content.JSON(c.Function.Arguments)
	if text, quoted := jsonx.Text(value); quoted {
		value = content.JSON(text)
	}
	var err error
	if call.Input, err = object(value); err != nil {
		return call, notACall(fmt.Errorf("function.arguments are %w", err))
	}
	return call, nil
}

// notACall returns the error for a call that cannot be read, safe to print.
func notACall(err error) error {
	return errors.New("not a tool call that can be executed: " + safetext.Escape(err.Error(), 200))
}

var errNoObject = errors.New("not a JSON object")

// object returns j if it is a valid JSON object, and {} for an empty text and null.
func object(j content.JSON) (content.JSON, error) {
	if text := strings.TrimSpace(string(j)); text == "" || text == "null" {
		return "{}", nil
	}
	if !j.IsObject() {
		return "", errNoObject
	}
	return j, nil
}
