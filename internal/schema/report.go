package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
)

// report collects the problems of a value.
type report struct {
	problems []string
	limit    int // of problems
	inner    int // reports around this one, which is about one of several alternatives
}

// place is a place in a value, for the problems found there. A nil place reports nothing.
type place struct {
	*report
	up    *place // nil for the value itself
	name  string // of a member; "" for an element
	index int    // of an element; -1 for a member
}

func (p *place) member(name string) *place {
	if p == nil {
		return nil
	}
	return &place{p.report, p, name, -1}
}

func (p *place) element(i int) *place {
	if p == nil {
		return nil
	}
	return &place{p.report, p, "", i}
}

// full reports whether no further problem is wanted.
func (p *place) full() bool { return p == nil || len(p.problems) >= p.limit }

// fail adds a problem. It returns false.
func (p *place) fail(format string, args ...any) bool {
	if !p.full() {
		p.problems = append(p.problems, p.path()+": "+safetext.Cut(fmt.Sprintf(format, args...), 1000))
	}
	return false
}

// path returns the path from the value, such as "steps[3].name". A long one is cut.
func (p *place) path() string {
	var steps []string
	for ; p.up != nil; p = p.up {
		if p.index >= 0 {
			steps = append(steps, fmt.Sprintf("[%d]", p.index))
			continue
		}
		steps = append(steps, "."+p.name)
	}
	if len(steps) == 0 {
		return "root"
	}

	slices.Reverse(steps)
	return safetext.Cut(strings.TrimPrefix(strings.Join(steps, ""), "."), 200)
}

// words lists values as JSON, at most 100 of them.
func words(values []any) string {
	const shown = 100
	list := make([]string, 0, min(len(values), shown+1))
	for _, value := range values[:min(len(values), shown)] {
		j, _ := content.ToJSON(value) // never fails: the values were decoded from JSON, or are strings
		list = append(list, string(j))
	}
	if more := len(values) - shown; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
}

// either lists the names of types.
func either(kinds []string) string { return strings.Join(kinds, " or ") }
