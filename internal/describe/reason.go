package describe

import (
	"strings"
	"unicode"

	"github.com/plait-dev/plait/internal/safetext"
)

// Reason returns the most telling line of a failure: of a call's error, or of a stop's detail. See Telling. more reports
// whether the text has further lines. The line is "" if d did not fail, or if nothing is known.
func (d Node) Reason() (line string, more bool) {
	if !d.Failed {
		return "", false
	}

	text := d.Text
	if d.Sort == Call {
		text = Text(d.Blocks)
	}
	line, _ = Telling(text)
	return line, line != strings.TrimSpace(text)
}

// toldIn is how much of the beginning and of the end of a failure is searched, in bytes.
const toldIn = 16 << 10

// Telling returns the line of a failure that tells most about its reason, and the text after it. It is the first of the
// lines that name an error, such as "--- FAIL: TestX", "main.go:3: error: …" or "panic: …"; in a Python traceback, the
// line after it. Without such a line, it is the first one that is more than a heading, such as "exit status 1". The line
// has no spaces at its ends. It is "" only for a blank text.
func Telling(text string) (line, rest string) {
	text = middleLeftOut(strings.TrimSpace(text))

	// A traceback is the position in the program. The error is the next line that is not indented.
	if i := strings.LastIndex(text, "Traceback (most recent call last):"); i >= 0 {
		_, position, _ := strings.Cut(text[i:], "\n")
		for line, rest := range linesOf(position) {
			if line != "" && line[0] != ' ' && line[0] != '\t' {
				return strings.TrimSpace(line), rest
			}
		}
	}

	best := 0
	for l, after := range linesOf(text) {
		l = strings.TrimSpace(l)
		if weight := tells(l); weight > best || line == "" {
			line, rest, best = l, after, weight
		}
		if best == names {
			break
		}
	}
	return line, rest
}

// middleLeftOut returns the beginning and the end of a long text.
func middleLeftOut(text string) string {
	if len(text) <= 2*toldIn {
		return text
	}
	return safetext.UTF8(text[:toldIn] + "\n" + text[len(text)-toldIn:])
}

// linesOf yields each line of a text and the text after it.
func linesOf(text string) func(yield func(line, rest string) bool) {
	return func(yield func(line, rest string) bool) {
		for text != "" {
			line, rest, _ := strings.Cut(text, "\n")
			if !yield(line, rest) {
				return
			}
			text = rest
		}
	}
}

// What a line tells about a failure.
const (
	nothing  = iota // no letters
	headings        // what every failure of a kind begins or ends with
	says            // something
	names           // the error itself
)

// Beginnings of lines, in lower case.
var (
	errorStarts = []string{"--- fail:", "fail:", "panic:", "fatal", "error:", "error ", "error[", "e   ", "failed ", "caused by:", "assertionerror",
		"uncaught", "exception in", "npm err! ", "✗", "✕", "✘"}
	headingStarts = []string{"exit status", "exit code", "exited with", "process exited", "command failed", "command exited", "error: exit status",
		"error: process", "error: command failed", "make:", "make[", "fail\t", "stdout", "stderr", "output:", "goroutine ", "at ", "file \"", "$ ", "+ ",
		"# ", "> ", "===", "collected ", "platform ", "npm err! code", "failed (", "failed with exit"}
	errorSigns = []string{": error:", ": error ", " error: ", ": fatal error:", "error ts", ": undefined:", "exception:", "error: "}
)

// tells returns what a line tells about a failure.
func tells(line string) int {
	if !strings.ContainsFunc(line, unicode.IsLetter) {
		return nothing
	}

	line = strings.ToLower(safetext.Head(line, 300))
	begins := func(starts []string) bool {
		for _, s := range starts {
			if strings.HasPrefix(line, s) {
				return true
			}
		}
		return false
	}
	switch {
	case begins(headingStarts), line == "fail", line == "failed", line == "error", line == "failure", line == "error:":
		return headings
	case begins(errorStarts):
		return names
	}
	for _, s := range errorSigns {
		if strings.Contains(line, s) {
			return names
		}
	}
	return says
}
