package main

import (
	"strings"
	"testing"
)

func TestLinesOfCodeLeavesOutCommentsAndBlankLines(t *testing.T) {
	text := "// Package p is one.\npackage p\n\n/* a\nb */\nvar X = 1 // said\n\nvar y = `a\n\nb`\n"
	if n := linesOfCode([]byte(text)); n != 5 {
		t.Errorf("%d lines of code, want 5: package, X, and three of the string", n)
	}
}

func TestExportedNamesAndMethodsAreCounted(t *testing.T) {
	const text = `package p

const A, b = 1, 2

type (
	T[E any] struct{}
	u        int
)

func (*T[E]) Method() {}
func (T[E]) own()     {}
func (u) Hidden()     {}
func F()              {}
`
	read := func(string) ([]byte, error) { return []byte(text), nil }
	c, err := countFiles([]string{"p/p.go", "internal/p/p.go", "cmd/p/p.go", "p/p_test.go", "api/apitest/p.go"}, read)
	if err != nil || c.names != 3 || c.methods != 1 {
		t.Errorf("%d names and %d methods (%v), want 3 and 1", c.names, c.methods, err)
	}
}

func TestFilesAreCountedInTheirClass(t *testing.T) {
	for name, class := range map[string]string{
		"dag/dag.go": "product", "dag/dag_test.go": "tests", "api/apitest/a.go": "equipment", "bench/main.go": "bench",
		"executor/testdata/a/main.go": "tests", "testdata/a.go": "tests",
		"examples/a/main.go": "examples", ".ci/size/main.go": "tools", "internal/testkit/a/a.go": "equipment",
	} {
		if got := classOf(name); got != class {
			t.Errorf("%s is %s, want %s", name, got, class)
		}
	}
	read := func(string) ([]byte, error) { return []byte("one two\n three"), nil }
	c, err := countFiles([]string{"README.md", "docs/a.md", "CHANGELOG.md", "examples/a.md"}, read)
	if err != nil || c.words != 6 {
		t.Errorf("%d words (%v), want 6", c.words, err)
	}
}

func TestPrintShowsTheDifference(t *testing.T) {
	now := &counts{lines: map[string]int{"product": 5}, packages: map[string]int{"dag": 5}}
	then := &counts{lines: map[string]int{"product": 7}, packages: map[string]int{"dag": 3, "gone": 4}}
	var out strings.Builder
	now.print(&out, then)
	for _, want := range []string{"product                 5      -2", "dag                                    5      +2", "gone                                   0      -4"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
