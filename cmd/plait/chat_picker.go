package main

import (
	"errors"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/plait-dev/plait/internal/safetext"
)

// choice is a row of a picker.
type choice struct {
	value string // what is chosen
	text  string // what is shown beside it
}

// picker lets the user choose a row. What is typed narrows the rows.
type picker struct {
	title   string
	choices []choice
	free    bool // what was typed may be chosen too
	typed   string
	at      int // the chosen one of the rows found
	reply   chan<- input
}

// errNoChoice is the reason if the user chose nothing.
var errNoChoice = errors.New("nothing was chosen")

// found returns the choices with all words that were typed.
func (p *picker) found() []choice {
	var found []choice
	words := strings.Fields(strings.ToLower(p.typed))
	for _, c := range p.choices {
		all := true
		for _, word := range words {
			all = all && strings.Contains(strings.ToLower(c.value+" "+c.text), word)
		}
		if all {
			found = append(found, c)
		}
	}
	if p.free && p.typed != "" {
		found = append(found, choice{p.typed, "as typed"})
	}
	return found
}

// press handles a key. After the choice, p has no reply.
func (p *picker) press(key tea.KeyPressMsg) {
	if p.reply == nil {
		return
	}

	found := p.found()
	switch key.String() {
	case "up", "ctrl+p":
		p.at = max(p.at-1, 0)
	case "down", "ctrl+n":
		p.at = min(p.at+1, max(len(found)-1, 0))
	case "enter":
		if p.at < len(found) {
			p.reply <- input{text: found[p.at].value}
			p.reply = nil
		}
	case "esc", "ctrl+c", "ctrl+d":
		p.reply <- input{err: errNoChoice}
		p.reply = nil
	case "backspace", "ctrl+h":
		starts := clusters(p.typed)
		p.typed, p.at = string([]rune(p.typed)[:starts[max(len(starts)-2, 0)]]), 0
	default:
		if key.Text != "" {
			p.typed, p.at = p.typed+visible(key.Text), 0
		}
	}
}

// rows draws the rows around the chosen one.
func (p *picker) rows(v *view) []string {
	rows := []string{safetext.Line(p.title, v.columns()-1)}
	found := p.found()
	shown := max(v.rows()/2, 1)
	from := max(min(p.at-shown/2, len(found)-shown), 0)
	for i, c := range found[from:min(from+shown, len(found))] {
		text := safetext.Line(c.value+"  "+c.text, v.columns()-3)
		switch {
		case from+i == p.at && v.color:
			text = "\x1b[1m> " + text + "\x1b[0m"
		case from+i == p.at:
			text = "> " + text
		default:
			text = "  " + text
		}
		rows = append(rows, text)
	}
	return append(rows, v.dim("narrow: "+p.typed+"▏  Enter chooses, Escape leaves"))
}
