package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// program writes a module with one package and its tests, and returns its folder.
func program(t *testing.T, code, test string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"go.mod": "module example.com/small\n\ngo 1.26.0\n", "small.go": "package small\n\n" + code}
	if test != "" {
		files["small_test.go"] = "package small\n\n" + test
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestEachKindOfMistakeIsMade(t *testing.T) {
	for kind, test := range map[string]struct{ code, mistake string }{
		"bound of a comparison": {"func f(n int) bool { return n < n }", "func f(n int) bool { return n <= n }"},
		"comparison":            {"func f(n int) bool { return n == n }", "func f(n int) bool { return n != n }"},
		"logic":                 {"func f(a, b bool) bool { return a && b }", "func f(a, b bool) bool { return a || b }"},
		"arithmetic":            {"func f(n int) int { return n + n }", "func f(n int) int { return n - n }"},
		"number":                {"func f() int { return 7 }", "func f() int { return 8 }"},
		"bound of a slice":      {"func f(s string) string { return s[len(s):] }", "func f(s string) string { return s[(len(s))+1:] }"},
		"swapped arguments":     {"func f(a, b string) { f(b, a) }", "func f(a, b string) { f(a, b) }"},
		"ignored error":         {"func f(err error) { if err != nil { panic(err) } }", "func f(err error) { if err != nil && false { panic(err) } }"},
		"missing return":        {"func f(a bool) { if a { return } }", "func f(a bool) { if a {  } }"},
		"missing statement":     {"func f(n *int) { *n = 0 }", "func f(n *int) {  }"},
		"missing lock": {
			"import \"sync\"\nfunc f(mu *sync.Mutex) { mu.Lock(); defer mu.Unlock(); println() }",
			"import \"sync\"\nfunc f(mu *sync.Mutex) { ; ; println() }",
		},
	} {
		t.Run(kind, func(t *testing.T) {
			packages, err := load(program(t, test.code+"\n", ""), []string{"."})
			if err != nil {
				t.Fatal(err)
			}
			var made []string
			for _, m := range mutationsOf(packages[0]) {
				if m.kind == kind {
					made = append(made, string(m.text()))
				}
			}
			if want := "package small\n\n" + test.mistake + "\n"; !slices.Contains(made, want) {
				t.Fatalf("made\n%s\nand not\n%s", strings.Join(made, "\n"), want)
			}
		})
	}
}

func TestMistakesThatDoNotCompileAreNotChosen(t *testing.T) {
	// Strings cannot be subtracted, and without the return there is nothing to return.
	packages, err := load(program(t, "func f(a string) string { return a + a }\n", ""), []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	if chosen, err := choose(packages, 1, 1); err == nil {
		t.Fatalf("chosen: %v", chosen[0])
	}
}

// The tests notice a mistake in abs, unless it makes no difference, and none in unused.
const code = `func abs(n int) int {
	if n <= -1 {
		return -n
	}
	return n
}

func unused(a, b int) bool { return a == b }
`

const itsTests = `import "testing"

func TestAbs(t *testing.T) {
	for n, want := range map[int]int{-2: 2, -1: 1, 0: 0, 1: 1} {
		if got := abs(n); got != want {
			t.Fatal(n, got)
		}
	}
}
`

func TestReportSaysWhichMistakesAreNoticed(t *testing.T) {
	dir := program(t, code, itsTests)
	report := func(seed uint64, again string) string {
		var b bytes.Buffer
		if err := mutate(t.Context(), &b, tests{dir: dir, timeout: time.Minute}, []string{"."}, 5, seed, again, false); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}

	all := report(1, "")
	for _, want := range []string{
		"| NOT noticed | example.com/small/small.go:10:37 comparison: a == b with != |",
		"| noticed | example.com/small/small.go:4:5 bound of a comparison: n <= -1 with < | TestAbs |",
		"without return -n | TestAbs |", "| noticed | example.com/small/small.go:4:11 number: 2 instead of 1 | TestAbs |",
		"| NOT noticed | example.com/small/small.go:4:11 number: 0 instead of 1 |", "\n5 mistakes: 3 noticed, 2 not noticed, 0 do not compile\n",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in\n%s", want, all)
		}
	}

	// Those not noticed can be tried once more.
	path := filepath.Join(dir, "report")
	if err := os.WriteFile(path, []byte(all), 0o600); err != nil {
		t.Fatal(err)
	}
	if some := report(1, path); !strings.Contains(some, "a == b with !=") || !strings.Contains(some, "\n2 mistakes: 0 noticed, 2 not noticed") {
		t.Errorf("again:\n%s", some)
	}

	// The tree is as it was.
	left, err := os.ReadFile(filepath.Join(dir, "small.go"))
	if err != nil || string(left) != "package small\n\n"+code {
		t.Errorf("%v\n%s", err, left)
	}
}

func TestAMistakeThatHangsIsNoticed(t *testing.T) {
	dir := program(t, "func count(n int) { for i := 0; i < n; {\n i++ } }\n",
		"import \"testing\"\n\nfunc TestCount(*testing.T) { count(3) }\n")
	packages, err := load(dir, []string{"."})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutationsOf(packages[0]) {
		if m.kind != "missing statement" {
			continue
		}
		found, by, err := tests{dir: dir, timeout: time.Second}.test(t.Context(), m)
		if err != nil || found != noticed || by != "test timed out after 1s" {
			t.Fatal(found, by, err)
		}
		return
	}
	t.Fatal("there is no such mistake")
}

func TestTheSeedDecidesWhichMistakesAreMade(t *testing.T) {
	pick := func(seed uint64) (names []string) {
		packages, err := load(program(t, code, ""), []string{"."})
		if err != nil {
			t.Fatal(err)
		}
		chosen, err := choose(packages, 4, seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range chosen {
			names = append(names, m.String())
		}
		return names
	}
	if one, other := pick(1), pick(1); !slices.Equal(one, other) {
		t.Errorf("the same seed: %v and %v", one, other)
	}
	if one, other := pick(1), pick(2); slices.Equal(one, other) {
		t.Errorf("other seeds: both %v", one)
	}
}
