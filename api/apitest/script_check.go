package apitest

import (
	"errors"
	"fmt"

	"github.com/plait-dev/plait/api"
)

// refuse returns an *api.Error if no model would accept req, or nil. It does not check the messages, because providers
// repair them.
func refuse(req api.Request) error {
	// The error of Check names no API.
	var e *api.Error
	if err := req.Options.Check(); errors.As(err, &e) {
		e.API = scriptAPI
		return e
	}

	declared := map[string]bool{}
	for _, tool := range req.Tools {
		if err := tool.Check(); err != nil {
			return badRequest(err)
		}
		if declared[tool.Name] {
			return badRequest(fmt.Errorf("two tools have the name %q", tool.Name))
		}
		declared[tool.Name] = true
	}

	// A forced call needs a tool to call.
	choice := req.Options.ToolChoice
	if name := choice.Tool(); name != "" && !declared[name] {
		return badRequest(fmt.Errorf("Options.ToolChoice names the tool %q, which is not declared", name))
	}
	if choice == api.ToolsAny && len(declared) == 0 {
		return badRequest(errors.New("Options.ToolChoice requires a call, and no tool is declared"))
	}
	return nil
}

func badRequest(err error) error {
	return &api.Error{Kind: api.ErrInvalidRequest, API: scriptAPI, Status: 400, Type: "invalid_request_error", Err: err}
}
