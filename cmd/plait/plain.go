package main

import (
	"strings"

	"github.com/plait-dev/plait/internal/pattern"
	"github.com/plait-dev/plait/internal/secret"
)

// Errors of the library begin with the name of their package, as Go errors do, and some end in a Go type. Neither helps
// a user of the command.
var (
	packagePrefix = pattern.Of(`(^|: |\n)(?:dag|executor|api|content|node|transcript|viz|page|live|json|jsontext): `)
	methodPrefix  = pattern.Of(`(^|: )(?:FromTranscript|Merge|Resume|resume): `)
	goType        = pattern.Of(`cannot unmarshal JSON (\w+) into Go .+?( within "[^"]*")?$`)
	methodHint    = pattern.Of(` \([^()]*\bwith Tools\)`)
	optionsHint   = pattern.Of(`, or give one in Options\.\w+`)
)

// plain returns an error's text without the names of packages, methods and types, and without the secrets of addresses.
func plain(err error) string {
	text := secret.InText(strings.TrimPrefix(err.Error(), "load "))
	for {
		// Removing one prefix may show another: "dag: node: …".
		shorter := packagePrefix().ReplaceAllString(text, "$1")
		shorter = methodPrefix().ReplaceAllString(shorter, "$1")
		if shorter == text {
			break
		}
		text = shorter
	}
	text = goType().ReplaceAllString(text, "a JSON $1 does not belong there$2")
	text = methodHint().ReplaceAllString(text, "")
	text = optionsHint().ReplaceAllString(text, "")

	// An empty file is an unexpected end of JSON to the library.
	if before, ok := strings.CutSuffix(text, " cannot be read: EOF"); ok {
		text = before + " is empty"
	}
	return text
}
