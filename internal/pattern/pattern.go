// Package pattern has regular expressions compiled on first use. A program that uses few of them, such as a command
// printing its help, does not compile the others at its start.
//
//	var toolName = pattern.Of(`^[a-z]+$`)
//
//	ok := toolName().MatchString(name)
package pattern

import (
	"regexp"
	"sync"
)

// Of returns a function for the regular expression. It compiles the expression at its first call, and panics then if
// the expression is invalid. The function is safe for concurrent use.
func Of(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
