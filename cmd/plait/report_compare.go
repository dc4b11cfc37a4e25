package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/report"
)

// maxCompared is the maximum number of conversations in a comparison: each has a letter.
const maxCompared = 26

// compare prints the conversations of a report beside each other, from the point where they part.
func (s *streams) compare(rows []report.Row, as string) error {
	var readable []report.Row
	// An unreadable conversation has no steps.
	for _, r := range rows {
		if r.Error == "" {
			readable = append(readable, r)
		}
	}

	switch {
	case len(readable) < 2:
		return errors.New("--compare needs two or more conversations that can be read")
	case len(readable) > maxCompared:
		return fmt.Errorf("--compare takes %d conversations, not %d: choose some with --where, --sort and -n", maxCompared, len(readable))
	}

	found := report.Compare(readable)
	if as == "json" {
		return s.printJSON(found)
	}

	t := reportText{width: s.reportWidth(), color: colorOf(s.out)}
	t.comparison(found, readable)
	_, err := s.out.Write(t.out.Bytes())
	return err
}

// comparison writes a line for each step, with the letters of its conversations.
func (t *reportText) comparison(c report.Comparison, rows []report.Row) {
	for i, r := range rows {
		name := safetext.Line(r.Name, t.width-len("A  ")-len("  ")-safetext.Width(outcomeText(r)))
		fmt.Fprintf(&t.out, "%c  %s  %s\n", 'A'+i, t.paint(outcomeColor(r.Outcome), outcomeText(r)), name)
	}

	t.out.WriteByte('\n')
	if c.Last == nil {
		t.indented(0, "They share nothing from the beginning.", "")
	} else {
		t.indented(0, "They share "+describe.Count(c.Same, "step")+", up to "+stepText(*c.Last), "")
	}
	for _, line := range c.Lines {
		t.compared(line, len(rows))
	}
	if c.Cut {
		t.indented(0, "Only the first 400 steps of each are compared.", grayText)
	}
}

// compared writes the steps of a line. Equal steps share a line of text.
func (t *reportText) compared(line []*report.Step, conversations int) {
	written := make([]bool, len(line))
	for i, step := range line {
		if step == nil || written[i] {
			continue
		}

		letters := bytes.Repeat([]byte{' '}, conversations)
		everywhere := true
		for k, other := range line {
			if other != nil && other.Label == step.Label && other.Text == step.Text {
				written[k], letters[k] = true, 'A'+byte(k)
			} else {
				everywhere = false
			}
		}

		// A step with the same text in all is less interesting than a difference.
		color := ""
		switch {
		case step.Failed:
			color = redText
		case everywhere:
			color = grayText
		}
		prefix := string(letters) + "  " + step.Node + "  "
		t.out.WriteString(prefix + t.paint(color, safetext.Line(stepText(*step), t.width-len(prefix))) + "\n")
	}
}

func stepText(s report.Step) string { return strings.TrimSuffix(s.Label+" · "+s.Text, " · ") }
