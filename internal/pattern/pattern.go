// Package pattern has regular expressions that are compiled when they are first used: a program that uses few of them,
// such as a command that prints its help, does not compile the others when it starts.
//
//	var toolName = pattern.Of(`^[a-z]+$`)
//
//	ok := toolName().MatchString(name)
package pattern

import (
	"regexp"
	"sync"
)

// Of returns a function that compiles the regular expression when it is first called, and returns it. An expression
// with a mistake panics then. The function is safe for concurrent use.
func Of(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
