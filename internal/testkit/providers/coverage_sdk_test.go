package providers

import (
	"bufio"
	"bytes"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	json "github.com/goccy/go-json/v2"
	"github.com/stretchr/testify/require"
)

// sdks are the pinned SDKs as the compiler sees them: types, constants and struct tags.
type sdks struct {
	t        *testing.T
	packages map[string]*types.Package
	filled   bool // samples have optional members too, and an item in each list
}

const (
	anthropicSDK = "github.com/anthropics/anthropic-sdk-go"
	sharedSDK    = "github.com/anthropics/anthropic-sdk-go/shared"
	openaiSDK    = "github.com/openai/openai-go/v3"
	responsesSDK = "github.com/openai/openai-go/v3/responses"
	genaiSDK     = "google.golang.org/genai"
)

// sdkPaths are the packages that have kinds.
var sdkPaths = []string{anthropicSDK, sharedSDK, openaiSDK, responsesSDK, genaiSDK}

// loadSDKs reads the declarations of the SDKs from their sources. Compiling them would take minutes.
func loadSDKs(t *testing.T) *sdks {
	list := exec.CommandContext(t.Context(), "go", append([]string{
		"list", "-deps", "-f", "{{.ImportPath}}{{$dir := .Dir}}{{range .GoFiles}}\t{{$dir}}/{{.}}{{end}}",
	}, sdkPaths...)...)
	list.Env = append(os.Environ(), "CGO_ENABLED=0") // files written by cgo are not in the sources
	out, err := list.Output()
	require.NoError(t, err)
	from := &sourceImporter{
		files: map[string][]string{}, set: token.NewFileSet(), packages: map[string]*types.Package{"unsafe": types.Unsafe},
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		from.files[fields[0]] = fields[1:]
	}

	s := &sdks{t: t, packages: map[string]*types.Package{}}
	for _, path := range sdkPaths {
		pkg, err := from.Import(path)
		require.NoError(t, err)
		s.packages[path] = pkg
	}
	return s
}

// sourceImporter imports packages from their files, without the bodies of functions.
type sourceImporter struct {
	files    map[string][]string // by import path
	set      *token.FileSet
	packages map[string]*types.Package
}

func (s *sourceImporter) Import(path string) (*types.Package, error) {
	if s.files[path] == nil && s.files["vendor/"+path] != nil { // a package that the standard library brings
		path = "vendor/" + path
	}
	if pkg := s.packages[path]; pkg != nil {
		return pkg, nil
	}

	// What the SDKs take from elsewhere has no kinds. Reading all of it would take twice as long.
	if !slices.ContainsFunc(sdkPaths, func(sdk string) bool { return strings.HasPrefix(path, sdk) }) {
		pkg := types.NewPackage(path, filepath.Base(path))
		pkg.MarkComplete()
		s.packages[path] = pkg
		return pkg, nil
	}

	var files []*ast.File
	for _, name := range s.files[path] {
		file, err := parser.ParseFile(s.set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}

	// Without bodies, imports look unused.
	config := types.Config{Importer: s, IgnoreFuncBodies: true, FakeImportC: true, Error: func(error) {}}
	pkg, _ := config.Check(path, s.set, files, nil)
	s.packages[path] = pkg
	return pkg, nil
}

// kind is one thing that an SDK has: the name that the API gives it, and its type, nil for a constant.
type kind struct {
	name string
	typ  types.Type
}

func (s *sdks) named(pkg, name string) types.Object {
	o := s.packages[pkg].Scope().Lookup(name)
	require.NotNil(s.t, o, "%s.%s is gone", pkg, name)
	return o
}

// variants returns the variants of a union: of a request, whose fields are "Of…", or of a response, whose variants have
// a method "impl…".
func (s *sdks) variants(pkg, union string) (list []kind) {
	add := func(t types.Type, name string) {
		if inner := tagOf(t); inner != "" {
			name = inner
		}
		list = append(list, kind{name, t})
	}
	for f, tag := range fieldsOf(s.named(pkg, union).Type()) {
		if name, ok := strings.CutPrefix(f.Name(), "Of"); ok && strings.Contains(tag, "inline") {
			add(pointed(f.Type()), snakeOf(name))
		}
	}
	scope := s.packages[pkg].Scope()
	for _, name := range scope.Names() {
		if o, ok := scope.Lookup(name).(*types.TypeName); ok && hasMethod(o.Type(), "impl"+union) {
			add(o.Type(), snakeOf(name))
		}
	}
	require.NotEmpty(s.t, list, "%s.%s has no variants", pkg, union)
	return list
}

// constants returns the values of a type of strings.
func (s *sdks) constants(pkg, name string) (list []kind) {
	want := s.named(pkg, name).Type()
	scope := s.packages[pkg].Scope()
	for _, name := range scope.Names() {
		if c, ok := scope.Lookup(name).(*types.Const); ok && types.Identical(c.Type(), want) {
			list = append(list, kind{name: constant.StringVal(c.Val())})
		}
	}
	require.NotEmpty(s.t, list, "%s.%s has no constants", pkg, name)
	return list
}

// anyOf returns the values that the comment of a field lists, for a type without constants.
func (s *sdks) anyOf(pkg, name, field string) (list []kind) {
	dir, err := exec.CommandContext(s.t.Context(), "go", "list", "-f", "{{.Dir}}", pkg).Output()
	require.NoError(s.t, err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "*.go"))
	require.NoError(s.t, err)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(s.t, err)
		_, body, found := strings.Cut(string(source), "\ntype "+name+" struct {\n")
		if !found {
			continue
		}

		// The comment of the field is what stands between "Any of" and the field.
		before, _, found := strings.Cut(body, "\n\t"+field+" ")
		require.True(s.t, found, "%s.%s has no field %s", pkg, name, field)
		words := strings.Split(before[strings.LastIndex(before, "Any of"):], `"`)
		for i := 1; i < len(words); i += 2 {
			list = append(list, kind{name: words[i]})
		}
	}
	require.NotEmpty(s.t, list)
	return list
}

// members returns the members of an object.
func (s *sdks) members(pkg, name string) (list []kind) {
	for f, tag := range fieldsOf(s.named(pkg, name).Type()) {
		member, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if f.Exported() && member != "" && member != "-" {
			list = append(list, kind{member, f.Type()})
		}
	}
	require.NotEmpty(s.t, list)
	return list
}

func pointed(t types.Type) types.Type {
	if p, ok := t.(*types.Pointer); ok {
		return p.Elem()
	}
	return t
}

func hasMethod(t types.Type, name string) bool {
	n, ok := t.(*types.Named)
	if !ok {
		return false
	}
	for i := range n.NumMethods() {
		if n.Method(i).Name() == name {
			return true
		}
	}
	return false
}

// fieldsOf yields the fields of a struct with their tags.
func fieldsOf(t types.Type) func(func(*types.Var, string) bool) {
	return func(yield func(*types.Var, string) bool) {
		if st, ok := pointed(t).Underlying().(*types.Struct); ok {
			for i := range st.NumFields() {
				if !yield(st.Field(i), st.Tag(i)) {
					return
				}
			}
		}
	}
}

// tagOf returns the value by which an API tells a type apart: its type or its role.
func tagOf(t types.Type) string {
	for _, member := range []string{"type", "role"} {
		for _, tag := range fieldsOf(t) {
			name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
			if value := reflect.StructTag(tag).Get("default"); name == member && value != "" {
				return value
			}
		}
	}
	// A type with several values has constants for them.
	for f := range fieldsOf(t) {
		if n, ok := f.Type().(*types.Named); ok && f.Name() == "Type" && n.Obj().Pkg() != nil {
			for _, name := range n.Obj().Pkg().Scope().Names() {
				if c, ok := n.Obj().Pkg().Scope().Lookup(name).(*types.Const); ok && types.Identical(c.Type(), n) {
					return constant.StringVal(c.Val())
				}
			}
		}
	}
	return ""
}

func snakeOf(name string) string {
	var b strings.Builder
	for i, c := range name {
		if c >= 'A' && c <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// sample returns the smallest value of a type: its required members. See also filled.
func (s *sdks) sample(t types.Type, depth int) any {
	t = pointed(t)
	if depth > 8 || s.filled && depth > 3 {
		return nil
	}

	// A type of strings has constants, an optional value its own.
	if n, ok := t.(*types.Named); ok && n.Obj().Pkg() != nil {
		if _, text := n.Underlying().(*types.Basic); text {
			for _, name := range n.Obj().Pkg().Scope().Names() {
				if c, ok := n.Obj().Pkg().Scope().Lookup(name).(*types.Const); ok && types.Identical(c.Type(), n) && c.Val().Kind() == constant.String {
					return constant.StringVal(c.Val())
				}
			}
		}
		if n.Obj().Name() == "Opt" && n.TypeArgs() != nil {
			return s.sample(n.TypeArgs().At(0), depth+1)
		}
	}

	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case u.Info()&types.IsBoolean != 0:
			return true
		case u.Info()&types.IsNumeric != 0:
			return 1
		}
		return "x"
	case *types.Slice:
		if s.filled {
			return []any{s.sample(u.Elem(), depth+1)}
		}
		return []any{}
	case *types.Map, *types.Interface:
		return map[string]any{}
	case *types.Struct:
		object := map[string]any{}
		for f, tag := range fieldsOf(t) {
			json := reflect.StructTag(tag).Get("json")
			name, rest, _ := strings.Cut(json, ",")
			switch fixed := reflect.StructTag(tag).Get("default"); {
			case strings.HasPrefix(f.Name(), "Of") && strings.Contains(rest, "inline"):
				return s.sample(f.Type(), depth+1)
			case name == "" || name == "-":
			case fixed != "":
				object[name] = fixed
			case s.filled || !strings.Contains(rest, "omit") && reflect.StructTag(tag).Get("api") != "nullable" || reflect.StructTag(tag).Get("api") == "required":
				object[name] = s.sample(f.Type(), depth+1)
			}
		}
		return object
	}
	return nil
}

func (s *sdks) sampleOf(k kind) string {
	text, err := json.Marshal(s.sample(k.typ, 0), json.Deterministic(true))
	require.NoError(s.t, err)
	return string(text)
}

// coverageLine is a line of testdata/coverage.txt.
type coverageLine struct{ api, part, name, outcome, reason string }

// readCoverage reads the list: API, part, name, outcome and reason, separated by tabs.
func readCoverage(t *testing.T) (lines []coverageLine) {
	data, err := os.ReadFile("testdata/coverage.txt")
	require.NoError(t, err)
	for sc := bufio.NewScanner(bytes.NewReader(data)); sc.Scan(); {
		if f := strings.Split(sc.Text(), "\t"); len(f) >= 4 && !strings.HasPrefix(sc.Text(), "#") {
			lines = append(lines, coverageLine{f[0], f[1], f[2], f[3], strings.Join(slices.Clone(f[4:]), "")})
		}
	}
	return lines
}
