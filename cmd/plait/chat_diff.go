package main

import (
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
)

// diffStyle returns the style of a line of a diff.
func diffStyle(line string) string {
	switch {
	case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "+++ "), strings.HasPrefix(line, "--- "):
		return cyan
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "-"):
		return red
	}
	return faint
}

// isDiff reports whether a text is a unified diff.
func isDiff(text string) bool {
	return strings.HasPrefix(text, "--- ") && strings.Contains(text, "\n+++ ") ||
		strings.Contains(text, "\n--- ") && strings.Contains(text, "\n@@ ")
}

// edit is a replacement of text, in the arguments of a call.
type edit struct{ old, new string }

// editNames are the members with the old and the new text, as tools for editing files have them.
var editNames = [][2]string{{"old_string", "new_string"}, {"oldText", "newText"}, {"old_str", "new_str"}, {"old_text", "new_text"}}

// edits returns the replacements in the arguments of a call, and the arguments without them.
func edits(input content.JSON) (found []edit, rest map[string]any) {
	// Invalid JSON, such as a name twice, is shown as it is: a tool may read the other one.
	if !input.Valid() || input.Decode(&rest) != nil {
		return nil, nil
	}

	take := func(members map[string]any) {
		for _, names := range editNames {
			before, okOld := members[names[0]].(string)
			after, okNew := members[names[1]].(string)
			if okOld && okNew {
				found = append(found, edit{before, after})
				delete(members, names[0])
				delete(members, names[1])
			}
		}
	}
	take(rest)

	list, _ := rest["edits"].([]any)
	for _, e := range list {
		if members, ok := e.(map[string]any); ok {
			take(members)
		}
	}
	return found, rest
}

// lines returns the lines of an edit: removed, added and kept ones.
func (e edit) lines() []string {
	before, after := strings.Split(e.old, "\n"), strings.Split(e.new, "\n")

	// What both begin and end with is kept.
	head := 0
	for head < min(len(before), len(after)) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < min(len(before), len(after))-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}

	var lines []string
	add := func(sign string, of []string) {
		for _, line := range of {
			lines = append(lines, sign+safetext.Row(line))
		}
	}
	add(" ", before[:head])
	add("-", before[head:len(before)-tail])
	add("+", after[head:len(after)-tail])
	add(" ", before[len(before)-tail:])
	return lines
}
