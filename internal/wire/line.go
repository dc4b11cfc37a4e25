package wire

import (
	"strings"
	"unicode"

	"github.com/plait-dev/plait/content"
)

// OneLine returns text from outside in a form that cannot forge lines of a log, drive a terminal, or fill a disk.
func OneLine(s string) string {
	const most = 1000
	cut := len(s) > most
	if cut {
		s = s[:most]
	}
	s = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return ' '
	}, content.Clean(s))
	if cut {
		s += "…"
	}
	return s
}
