package plait_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	_ "github.com/plait-dev/plait/internal/testkit/quick"
)

const (
	module  = "github.com/plait-dev/plait"
	testkit = "internal/testkit/" // our own test equipment
)

// layers lists the packages of the root module from the bottom up. A package may import those before it, and only them.
// Test equipment has no place in it: see [TestTestHelpersStayOutOfTheLibrary].
var layers = []string{
	"internal/safetext", "internal/jsonx/write", "internal/jsonx/plain", "internal/pattern", "internal/memo", "internal/bell", "internal/unwrap", "internal/blockcodec",
	"internal/secret", "content", "internal/jsonx", "internal/schema", "internal/filelock",
	"node", "internal/lineage", "internal/describe", "internal/shared",
	"api/compatible", "api/internal/idle", "internal/wire", "api", "api/batch", "internal/gptname",
	"api/internal/roundtrip", "api/dialect", "internal/servers", "api/apitest", "api/apitest/conformance", "api/apitest/fake", "api/apitest/tape",
	"dag", "dag/sessions",
	"store", "internal/sqlstore", "store/storetest",
	"report/promptcache", "report",
	"executor", "executor/replay", "executor/registry", "internal/webguard", "internal/front", "executor/agui", "executor/progress", "executor/contextedit", "executor/toolsearch",
	"executor/background",
	"viz/internal/ink", "viz/internal/viztest", "viz", "viz/page/internal/web", "viz/page", "viz/page/live",
}

// allowed is what the root module may need from outside, and why.
var allowed = map[string]string{
	"github.com/google/uuid":          "ids",
	"github.com/goccy/go-json":        "encoding and decoding",
	"github.com/google/jsonschema-go": "schemas of tools",
	"gonum.org/v1/gonum":              "graph algorithms over a conversation",
	"github.com/stretchr/testify":     "tests only",
	"go.uber.org/goleak":              "tests only",
	"golang.org/x/time":               "a client's limit on requests a minute",
}

type goPackage struct {
	ImportPath, Name     string
	Imports, TestImports []string
	XTestImports         []string
	GoFiles, CgoFiles    []string
	Dir                  string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Name,Imports,TestImports,XTestImports,GoFiles,CgoFiles,Dir", "./...").Output()
	require.NoError(t, err)
	var list []goPackage
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p goPackage
		require.NoError(t, dec.Decode(&p))
		list = append(list, p)
	}
	return list
}

func TestImportsPointDownTheLayers(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module+"/")
		if p.ImportPath == module || strings.HasPrefix(name, testkit) {
			continue
		}
		at := slices.Index(layers, name)
		require.GreaterOrEqual(t, at, 0, "package %s is in no layer: say in docs/decisions.md what it is for, and list it", name)
		for _, imported := range p.Imports {
			inside, ours := strings.CutPrefix(imported, module+"/")
			if !ours || strings.HasPrefix(inside, testkit) {
				continue
			}
			require.Less(t, slices.Index(layers, inside), at, "%s imports %s, which is not a layer below it", name, inside)
		}
	}
}

func TestAPIKnowsNothingOfGraphs(t *testing.T) {
	for _, p := range packages(t) {
		if !strings.HasPrefix(p.ImportPath, module+"/api") {
			continue
		}
		require.NotContains(t, p.Imports, module+"/node", "%s: a provider needs messages, not nodes", p.ImportPath)
	}
}

func TestRootModuleNeedsOnlyWhatIsAllowed(t *testing.T) {
	out, err := exec.Command("go", "mod", "edit", "-json").Output()
	require.NoError(t, err)
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	require.NoError(t, json.Unmarshal(out, &mod))
	for _, r := range mod.Require {
		if r.Indirect {
			continue
		}
		require.Contains(t, allowed, r.Path, "the root module must stay small: a program that imports the core downloads all it requires")
	}
}

func TestTestHelpersStayOutOfTheLibrary(t *testing.T) {
	for _, p := range packages(t) {
		if strings.HasPrefix(p.ImportPath, module+"/"+testkit) {
			continue
		}
		for _, imported := range p.Imports {
			require.False(t, strings.HasPrefix(imported, module+"/"+testkit), "%s imports %s", p.ImportPath, imported)
		}

		// Users' tests import these.
		if strings.HasSuffix(p.ImportPath, "test") || strings.HasSuffix(p.ImportPath, "apitest/conformance") ||
			strings.HasSuffix(p.ImportPath, "apitest/tape") {
			continue
		}
		for _, imported := range p.Imports {
			require.NotEqual(t, "testing", imported, "%s imports testing", p.ImportPath)
			require.False(t, strings.HasPrefix(imported, "github.com/stretchr/"), "%s imports %s", p.ImportPath, imported)
		}
	}
}

// TestTheCoreDoesNotImportNetHTTP holds that the first build of a program without a network stays short.
func TestTheCoreDoesNotImportNetHTTP(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./content", "./node", "./api", "./api/apitest", "./dag", "./executor", "./viz").Output()
	require.NoError(t, err)
	deps := strings.Fields(string(out))
	require.Contains(t, deps, module+"/executor")
	for _, heavy := range []string{"net/http", "crypto/tls", "testing", module + "/api/apitest/fake"} {
		require.NotContains(t, deps, heavy)
	}
}

func TestPackagesAreNounsOfTheDomain(t *testing.T) {
	for _, p := range packages(t) {
		require.NotContains(t, []string{"util", "utils", "common", "types", "helpers", "misc"}, p.Name, p.ImportPath)
	}
}

// goFolders yields every folder of the tree that holds Go files, nested modules included.
func goFolders(t *testing.T) []string {
	t.Helper()
	var dirs []string
	require.NoError(t, filepath.WalkDir(".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (e.Name() == "node_modules" || e.Name() == "testdata" || strings.HasPrefix(e.Name(), ".") && path != ".") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !slices.Contains(dirs, filepath.Dir(path)) {
			dirs = append(dirs, filepath.Dir(path))
		}
		return nil
	}))
	return dirs
}

func TestEveryExportedNameIsDocumented(t *testing.T) {
	for _, dir := range goFolders(t) {
		files := parse(t, dir)
		pkg, err := doc.NewFromFiles(files.fset, files.list, module+"/"+dir, doc.PreserveAST)
		require.NoError(t, err)
		require.NotEmpty(t, pkg.Doc, "%s has no package comment", dir)
		if pkg.Name == "main" {
			continue
		}
		require.True(t, strings.HasPrefix(pkg.Doc, "Package "+pkg.Name+" "), "%s: the package comment begins with its name", dir)
		for _, missing := range undocumented(pkg) {
			t.Errorf("%s: %s has no doc comment", dir, missing)
		}
	}
}

// TestSentinelsOfOneNameAreOneError holds that errors.Is cannot mistake one package's error for that of another.
func TestSentinelsOfOneNameAreOneError(t *testing.T) {
	owners := map[string]string{}
	for _, dir := range goFolders(t) {
		for name, alias := range sentinels(parse(t, dir).list) {
			if alias {
				continue
			}
			require.Empty(t, owners[name], "%s is an error of its own in %s too: make one the other, or give it another name", name, dir)
			owners[name] = dir
		}
	}
	require.Equal(t, "dag", owners["ErrDuplicateID"], "the test finds sentinels")
}

// sentinels returns the exported error variables of a package, and whether each is another package's.
func sentinels(files []*ast.File) map[string]bool {
	found := map[string]bool{}
	for _, f := range files {
		for _, decl := range f.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, spec := range group.Specs {
				v := spec.(*ast.ValueSpec)
				if len(v.Values) != 1 || !strings.HasPrefix(v.Names[0].Name, "Err") {
					continue
				}
				_, alias := v.Values[0].(*ast.SelectorExpr)
				found[v.Names[0].Name] = alias
			}
		}
	}
	return found
}

type parsed struct {
	fset *token.FileSet
	list []*ast.File
}

func parse(t *testing.T, dir string) parsed {
	t.Helper()
	p := parsed{fset: token.NewFileSet()}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	comments := 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(p.fset, name, nil, parser.ParseComments)
		require.NoError(t, err)
		if f.Doc != nil {
			comments++
		}
		p.list = append(p.list, f)
	}
	require.LessOrEqual(t, comments, 1, "%s: one file holds the package comment", dir)
	return p
}

// undocumented returns the exported names without a comment of their own or, for constants and variables, of their group's.
func undocumented(pkg *doc.Package) []string {
	var missing []string
	check := func(name, comment string) {
		if token.IsExported(name) && strings.TrimSpace(comment) == "" {
			missing = append(missing, name)
		}
	}
	values := func(list []*doc.Value) {
		for _, v := range list {
			for _, spec := range v.Decl.Specs {
				s := spec.(*ast.ValueSpec)
				check(s.Names[0].Name, v.Doc+s.Doc.Text()+s.Comment.Text())
			}
		}
	}
	funcs := func(prefix string, list []*doc.Func) {
		for _, f := range list {
			if token.IsExported(f.Name) && strings.TrimSpace(f.Doc) == "" {
				missing = append(missing, prefix+f.Name)
			}
		}
	}
	values(pkg.Consts)
	values(pkg.Vars)
	funcs("", pkg.Funcs)
	for _, typ := range pkg.Types {
		check(typ.Name, typ.Doc)
		values(typ.Consts)
		values(typ.Vars)
		funcs("", typ.Funcs)
		funcs(typ.Name+".", typ.Methods)
	}
	return missing
}

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```")

// documents returns the Markdown files that users and contributors read.
func documents(t *testing.T) []string {
	t.Helper()
	names := []string{"README.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		names = append(names, found...)
	}
	return names
}

// TestDocumentsShowCompiledCode finds each Go block of a document, line by line, in an example or in another test.
func TestDocumentsShowCompiledCode(t *testing.T) {
	var sources []string
	for _, pattern := range []string{"*_test.go", "*/*_test.go", "*/*/*_test.go", "*/*/*/*_test.go", "examples/*/*.go", "examples/*/*/*.go"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			sources = append(sources, flat(string(text)))
		}
	}

	found := 0
	for _, document := range documents(t) {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for _, block := range goBlock.FindAllStringSubmatch(string(text), -1) {
			found++
			want := flat(block[1])
			require.True(t, slices.ContainsFunc(sources, func(s string) bool { return strings.Contains(s, want) }),
				"this code of %s stands in no file that is compiled:\n%s", document, block[1])
		}
	}
	require.Greater(t, found, 3)
}

// TestPackageCommentShowsTheFirstProgram holds that the page on a package site has the program of the README.
func TestPackageCommentShowsTheFirstProgram(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	program := goBlock.FindSubmatch(readme)[1]

	comment, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	text := regexp.MustCompile(`(?m)^//\t?`).ReplaceAllString(string(comment), "")
	require.Contains(t, flat(text), flat(string(program)))
}

// flat is text without indentation and blank lines.
func flat(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// TestRecipesShowWhatTheyPrint finds each text block of docs/recipes.md in the test of a program, which compares it with
// what the program prints, and each program in the document.
func TestRecipesShowWhatTheyPrint(t *testing.T) {
	text, err := os.ReadFile("docs/recipes.md")
	require.NoError(t, err)
	names, err := filepath.Glob("examples/*/*_test.go")
	require.NoError(t, err)

	var tests []string
	for _, name := range names {
		source, err := os.ReadFile(name)
		require.NoError(t, err)
		tests = append(tests, flat(string(source)))
		require.Contains(t, string(text), "(../"+filepath.ToSlash(filepath.Dir(name))+")")
	}
	blocks := regexp.MustCompile("(?s)```text\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(blocks), 3)
	for _, block := range blocks {
		want := flat(block[1])
		require.True(t, slices.ContainsFunc(tests, func(s string) bool { return strings.Contains(s, want) }),
			"no test of a program has this output:\n%s", block[1])
	}
}

// TestREADMECommandsExist keeps the two commands of the README, and what CI runs, the same.
func TestREADMECommandsExist(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	ci, err := os.ReadFile(".ci/run")
	require.NoError(t, err)
	for _, command := range []string{"go run ./examples/weather", "go test work"} {
		require.Contains(t, string(readme), command)
		require.Contains(t, string(ci), command, ".ci/run does not run the README's command")
	}
}

// TestDocumentsNameTestsThatExist keeps the tables of docs/guarantees.md and docs/security.md true when tests are
// renamed.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	exist := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllSubmatch(source, -1) {
			exist[string(m[1])] = true
		}
		return err
	}))

	for document, least := range map[string]int{"docs/guarantees.md": 40, "docs/security.md": 5} {
		text, err := os.ReadFile(document)
		require.NoError(t, err)

		named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)`").FindAllSubmatch(text, -1)
		require.Greater(t, len(named), least, document)
		for _, m := range named {
			require.True(t, exist[string(m[1])], "%s names %s, which does not exist", document, m[1])
		}
	}

	// Each row of docs/security.md has a test in its last cell.
	security, err := os.ReadFile("docs/security.md")
	require.NoError(t, err)
	for line := range strings.Lines(string(security)) {
		if cells := strings.Split(strings.Trim(line, "|\n"), "|"); len(cells) == 4 && !strings.HasPrefix(line, "|---") {
			last := strings.TrimSpace(cells[3])
			require.True(t, last == "Tests" || strings.HasPrefix(last, "`Test") || strings.HasPrefix(last, "`Fuzz"), "no test: %s", line)
		}
	}
}

// cleaners are the files outside internal/safetext that may ask which characters are printable, and why.
var cleaners = map[string]string{
	"dag/ref.go":                "refuses names of refs, and cleans nothing",
	"store/errors.go":           "refuses names of heads, and cleans nothing",
	"examples/approval/main.go": "an example is copied whole; its JSON stays the same JSON",
	"examples/terminal/main.go": "an example is copied whole",
}

var cleaning = regexp.MustCompile(`\bunicode\.Is(Print|Control|Graphic)\b|\bstrconv\.Is(Print|Graphic)\b|\.ToValidUTF8\(`)

func TestHostileTextIsCleanedInOnePlace(t *testing.T) {
	requireListed(t, cleaning, "internal/safetext/", cleaners)
}

// writers are the files outside internal/jsonx that may append a comma or a quoted string of JSON by themselves, and why.
var writers = map[string]string{
	"dag/file.go":                   "a file has one node on a line, and its comma at the end",
	"api/dialect/line.go":           "pieces of a body: the comma depends on what is in the pieces before",
	"api/dialect/encoding.go":       "pieces of a body: the comma depends on what is in the pieces before",
	"api/anthropic/body.go":         "a system message in a message is one of its own",
	"api/openai/chat_encode.go":     "one message can become several items",
	"api/openai/responses_items.go": "one message can become several items",
}

var writing = regexp.MustCompile(`\bjsontext\.AppendQuote\(|\bappend\([\w.]+, ','\)`)

func TestJSONIsWrittenInOnePlace(t *testing.T) {
	requireListed(t, writing, "internal/jsonx/", writers)
}

// requireListed requires that files outside home match the pattern only if they are listed, and that each listed one does.
func requireListed(t *testing.T, pattern *regexp.Regexp, home string, listed map[string]string) {
	t.Helper()
	used := map[string]bool{}
	for _, dir := range goFolders(t) {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			name = filepath.ToSlash(name)
			if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, home) || !pattern.Match(text) {
				continue
			}
			used[name] = true
			require.Contains(t, listed, name, "%s has %s: use %s, or list the file with the reason", name, pattern.Find(text), home)
		}
	}

	for name := range listed {
		require.True(t, used[name], "%s is listed, and does without", name)
	}
}

// TestNoFunctionIsLongerThanAScreen keeps functions of the product within 60 lines.
func TestNoFunctionIsLongerThanAScreen(t *testing.T) {
	const longest = 60
	var long []string
	functions, set := 0, token.NewFileSet()
	for name := range goFiles(t) {
		if strings.HasSuffix(name, "_test.go") || isEquipment(name) || strings.HasPrefix(name, "bench/") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				functions++
				if set.Position(f.End()).Line-set.Position(f.Pos()).Line >= longest {
					long = append(long, name+": "+f.Name.Name)
				}
			}
		}
	}
	require.Greater(t, functions, 3000, "it read the tree")
	require.Empty(t, long)
}
