package main

import (
	"bytes"
	"slices"
	"strings"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/dag/sessions"
)

// sessionNames returns the names of the formats of sessions that export writes.
func sessionNames() []string {
	var names []string
	for _, f := range sessions.ExportFormats() {
		names = append(names, string(f))
	}
	return names
}

// isSession reports whether a format is one of sessions.
func isSession(name string) bool { return slices.Contains(sessionNames(), name) }

// exportSession prints a conversation as a session of another program, and what it lacks. The model may have the name of
// its provider in front: PROVIDER/MODEL.
func (s *streams) exportSession(format string, d dag.DAG, model, folder string, asJSON bool) error {
	provider, name, named := strings.Cut(model, "/")
	if !named {
		provider, name = "", model
	}
	var text bytes.Buffer
	lost, err := sessions.Export(sessions.Format(format), &text, d, &sessions.ExportOptions{
		Folder: folder, Model: name, Provider: provider,
	})
	if err != nil {
		return err
	}

	if asJSON {
		type loss struct {
			Code  sessions.LossCode `json:"code"`
			Count int               `json:"count"`
		}
		all := []loss{}
		for _, l := range lost {
			all = append(all, loss(l))
		}
		return s.printJSON(struct {
			Session string `json:"session"`
			Lost    []loss `json:"lost"`
		}{text.String(), all})
	}
	for _, l := range lost {
		s.say("lost: %s (%d)", l.Code, l.Count)
	}
	_, err = s.out.Write(text.Bytes())
	return err
}
