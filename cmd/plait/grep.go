package main

import (
	"bufio"
	"fmt"
	"iter"
	"math"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/describe"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/node"
)

func grepCommand(s *streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "grep PATTERN FILE…",
		Short: "Find text in conversations: messages, tools, arguments, results",
		Long: `Prints each line of text that matches PATTERN, with FILE, the NODE for plait
show, and what the line belongs to:

  runs/7.json:3f2a91bc: result of get_weather: connection refused

It searches all branches and the conversations of sub-agents: messages, prompts,
thinking, the names and the arguments of tool calls, results, the details of a
stop, and records. FILE may also be a folder or a database, as for plait report.

PATTERN is a regular expression of Go (RE2). It begins with (?i) to ignore case.

The exit code is that of grep: 0 if there is a match, 1 if there is none, 2 if a
FILE cannot be read.`,
		Example: `  plait grep 'connection refused' runs/
  plait grep '(?i)refund' sessions.db --json | jq -r '.[].file' | uniq -c`,
		Args: takes("PATTERN and at least one FILE", 2, math.MaxInt),
		RunE: func(_ *cobra.Command, args []string) error { return s.grep(args[0], args[1:], asJSON) },
	}
	jsonFlag(cmd, &asJSON)
	return cmd
}

// match is a matching line, in the output of grep --json.
type match struct {
	File string `json:"file"`
	// Node is the short name of the node. Command plait show accepts it.
	Node string `json:"node"`
	// Where names the text with the line, such as "user" or "result of get_weather".
	Where string `json:"where"`
	// Line is the number of the line in this text, from 1.
	Line int    `json:"line"`
	Text string `json:"text"`

	begin, end int // of the first match in Text
}

// grep prints the matching lines.
func (s *streams) grep(pattern string, names []string, asJSON bool) error {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return fmt.Errorf("PATTERN: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	if err := readOnce(names); err != nil {
		return err
	}

	list := []match{}
	found, unread := false, false
	out := bufio.NewWriter(s.out)
	for c := range s.conversations(names) {
		if c.err != nil {
			unread = true
			s.say("plait: %s", plain(c.err))
			continue
		}
		short := c.dag.ShortIDs()
		for _, n := range everyNode(c.dag).WithChildren() {
			for m := range matches(re, n) {
				m.File, m.Node, found = c.name, short(n), true
				// JSON is one list, printed at the end. Lines are printed as they are found.
				if asJSON {
					list = append(list, m)
					continue
				}
				fmt.Fprintln(out, m.line(colorOf(s.out)))
			}
		}
	}

	if asJSON {
		err = s.printJSON(list)
	} else {
		err = out.Flush()
	}
	switch {
	case err != nil:
		return err
	case unread:
		return &exitError{code: exitBad}
	case !found:
		return &exitError{code: exitFinding}
	}
	return nil
}

// matches yields the matching lines of a node.
func matches(re *regexp.Regexp, n *node.Node) iter.Seq[match] {
	return func(yield func(match) bool) {
		for where, text := range searched(n) {
			number := 0
			for line := range strings.Lines(text) {
				number++
				line = strings.TrimRight(line, "\r\n")
				at := re.FindStringIndex(line)
				if at == nil {
					continue
				}
				m := match{Where: where, Line: number, Text: line, begin: at[0], end: at[1]}
				if !yield(m) {
					return
				}
			}
		}
	}
}

// searched yields the texts of a node with their names, such as "user". The results of a tool phase are searched in its
// executions.
func searched(n *node.Node) iter.Seq2[string, string] {
	return func(yield func(where, text string) bool) {
		d := describe.Of(n)
		switch d.Sort {
		case describe.Call:
			if d.Called.Changed && !yield("executed "+d.Called.RanTool, string(d.Called.RanInput)) {
				return
			}
			inBlocks("result of "+d.Called.Tool, d.Blocks, yield)

		case describe.Results:
			// The results repeat the executions before, and these are searched themselves. Only the text beside the
			// results is left.
			if n.NumParents() > 0 && describe.Of(n.Parent(0)).Sort == describe.Call {
				for p := range describe.Parts(d.Blocks) {
					if p.Form == describe.Said && !yield(d.Word, p.Text) {
						return
					}
				}
				return
			}
			inBlocks(d.Word, d.Blocks, yield)

		default:
			if d.Text != "" || d.Title != "" {
				yield(strings.TrimSpace(d.Word+" "+d.Title), d.Text)
				return
			}
			inBlocks(d.Word, d.Blocks, yield)
		}
	}
}

// inBlocks yields the texts of blocks. It reports whether to continue.
func inBlocks(where string, blocks content.Blocks, yield func(where, text string) bool) bool {
	more := true
	for p := range describe.Parts(blocks) {
		switch p.Form {
		case describe.Said:
			more = yield(where, p.Text)
		case describe.Thought:
			more = yield("thinking", p.Text)
		case describe.Asked:
			more = yield("call", p.Name) && yield("call of "+p.Name, string(p.JSON))
		case describe.Returned:
			more = inBlocks("result", p.Content, yield)
		case describe.Shown:
			more = yield(p.Label(), p.Text+string(p.JSON))
		}
		if !more {
			return false
		}
	}
	return true
}

// line returns the match for a terminal. A long text is cut around the match.
func (m match) line(color bool) string {
	const before, after = 40, 160 // bytes around the match

	// Begin between two characters.
	begin := max(m.begin-before, 0)
	for begin > 0 && !utf8.RuneStart(m.Text[begin]) {
		begin--
	}
	left := m.Text[begin:m.begin]
	if begin > 0 {
		left = "…" + left
	}
	right := m.Text[m.end:]
	if len(right) > after {
		right = safetext.Head(right, after) + "…"
	}

	hit := safetext.Row(safetext.Cut(m.Text[m.begin:m.end], after))
	if color && hit != "" {
		hit = "\x1b[1;31m" + hit + "\x1b[0m"
	}
	return safetext.Row(m.File) + ":" + m.Node + ": " + safetext.Line(m.Where, 60) + ": " +
		safetext.Row(strings.TrimLeft(left, " \t")) + hit + safetext.Row(right)
}
