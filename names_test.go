package plait_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// intended are the exported names that nothing in the tree uses, by package. Most are errors that a program tells apart.
var intended = map[string]string{
	"api/batch":    "ErrFile ErrNoResult", // a program decides whether to wait, or to use another file
	"dag":          "ErrChanged ErrDamaged ErrForeign ErrFormat ErrLocked ErrMerge ErrNoRef",
	"dag/sessions": "Error",
	"executor": "ErrMissingReply ErrOwner " +
		"Modify UseResult Rejected ReturnedFor ClaimOnce Ordered Underscores",
	"executor/durable": "CallQueue ErrNoMessage ErrNotDone ErrRunExists",
	"executor/otel":    "Attributes", // the keys that a ContinuationCodec keeps, so that a trace continues
	"store/postgres":   "DamageError SchemaError",
	"store/sqlite":     "ErrInUse New SchemaError",
}

// TestExportedNamesHaveAUser finds for each exported name of the public packages who uses it: another package, an
// example, or a document. A type that is part of a used name's declaration is used, and so are the constants of a used
// type, which are one enumeration. A name without a user is unexported, or listed in intended.
//
// PLAIT_NAMES=file writes the list of all names with their users.
func TestExportedNamesHaveAUser(t *testing.T) {
	names := exportedNames(t)
	users := usersOf(t, names)

	// What a used name's declaration mentions is used by it.
	for changed := true; changed; {
		changed = false
		for _, name := range slices.Sorted(maps.Keys(names)) {
			if users[name] == "" {
				continue
			}
			for _, part := range names[name] {
				if _, exported := names[part]; exported && users[part] == "" {
					users[part], changed = "part of "+name, true
				}
			}
		}
	}

	var list, unused []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		pkg, short, _ := strings.Cut(name, " ")
		listed := slices.Contains(strings.Fields(intended[pkg]), short)
		switch user := users[name]; {
		case user == "" && !listed:
			unused = append(unused, name)
		case user != "" && listed && !strings.HasPrefix(user, "part of "):
			require.Fail(t, "a name that is used is not to be listed", "%s: %s", name, user)
		}
		list = append(list, name+": "+users[name]+"\n")
	}
	for pkg, listed := range intended {
		for short := range strings.FieldsSeq(listed) {
			_, there := names[pkg+" "+short]
			require.True(t, there, "%s %s is not there any more: take it out of intended", pkg, short)
		}
	}
	if file := os.Getenv("PLAIT_NAMES"); file != "" {
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(list, "")), 0o600))
	}
	require.Greater(t, len(names), 300, "it read the tree")
	require.Empty(t, unused, "unexport these, or list them in intended:\n%s", strings.Join(unused, "\n"))
}

// exportedNames returns the exported names at the top level of the public packages, "api/gemini Options", each with the
// names in its declaration: the types of a function's parameters and results, of a struct's exported fields, of a
// constant.
func exportedNames(t *testing.T) map[string][]string {
	names := map[string][]string{}
	for file, tree := range goFiles(t) {
		if !isPublic(file) {
			continue
		}
		pkg := path.Dir(file)
		add := func(id *ast.Ident, declared ast.Node) {
			if id.IsExported() {
				names[pkg+" "+id.Name] = append(names[pkg+" "+id.Name], mentioned(pkg, tree, declared)...)
			}
		}

		for _, decl := range tree.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil {
					add(decl.Name, decl.Type)
				} else if decl.Name.IsExported() { // a method's types are part of its receiver's declaration
					add(receiverOf(decl), decl.Type)
				}
			case *ast.GenDecl:
				addSpecs(decl, add)
			}
		}

		// The constants of a type are part of it.
		for _, decl := range tree.Decls {
			if decl, ok := decl.(*ast.GenDecl); ok && decl.Tok == token.CONST {
				addConstants(decl, pkg, names)
			}
		}
	}
	return names
}

func addSpecs(decl *ast.GenDecl, add func(*ast.Ident, ast.Node)) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			add(spec.Name, spec.Type)
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				add(name, spec.Type)
			}
		}
	}
}

// addConstants makes the constants of an exported type part of the type. In a list with iota, the type is that of the
// first constant.
func addConstants(decl *ast.GenDecl, pkg string, names map[string][]string) {
	kind := ""
	for _, spec := range decl.Specs {
		spec := spec.(*ast.ValueSpec)
		if id, ok := spec.Type.(*ast.Ident); ok {
			kind = pkg + " " + id.Name
		} else if len(spec.Values) > 0 {
			kind = ""
		}
		for _, name := range spec.Names {
			if _, exported := names[kind]; exported && name.IsExported() {
				names[kind] = append(names[kind], pkg+" "+name.Name)
			}
		}
	}
}

func receiverOf(decl *ast.FuncDecl) *ast.Ident {
	var found *ast.Ident
	ast.Inspect(decl.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && found == nil {
			found = id
		}
		return found == nil
	})
	return found
}

// mentioned returns the exported names of the module in a declaration, without those of unexported fields.
func mentioned(pkg string, file *ast.File, declared ast.Node) (list []string) {
	if declared == nil || declared == ast.Node((*ast.Ident)(nil)) {
		return nil
	}
	imports := importsOf(file)
	ast.Inspect(declared, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if len(n.Names) > 0 && !n.Names[0].IsExported() && isField(declared, n) {
				return false
			}
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok && imports[id.Name] != "" {
				list = append(list, imports[id.Name]+" "+n.Sel.Name)
			}
			return false
		case *ast.Ident:
			list = append(list, pkg+" "+n.Name)
		}
		return true
	})
	return list
}

// isField reports whether f is a field of the struct, as opposed to a parameter.
func isField(declared ast.Node, f *ast.Field) bool {
	s, ok := declared.(*ast.StructType)
	return ok && slices.Contains(s.Fields.List, f)
}

// importsOf returns the packages of the module that a file imports, by the names that it uses for them.
func importsOf(file *ast.File) map[string]string {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		full, _ := strconv.Unquote(spec.Path.Value)
		pkg, ours := strings.CutPrefix(full, "github.com/plait-dev/plait/")
		if !ours {
			continue
		}
		name := path.Base(pkg)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = pkg
	}
	return imports
}

// usersOf returns a user of each name: another package of the product, an example or a document.
func usersOf(t *testing.T, names map[string][]string) map[string]string {
	users := map[string]string{}
	files := goFiles(t)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		tree := files[file]
		if strings.HasSuffix(file, "_test.go") && !strings.Contains(path.Base(file), "example") || isEquipment(file) {
			continue
		}
		imports := importsOf(tree)
		ast.Inspect(tree, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if id, ok := s.X.(*ast.Ident); ok {
					name := imports[id.Name] + " " + s.Sel.Name
					if _, exported := names[name]; exported && users[name] == "" {
						users[name] = file
					}
				}
			}
			return true
		})
	}

	addDocuments(t, names, users)
	return users
}

// addDocuments adds the documents as users. A line or an item of a list that names a package (`viz.Layout`, or a link to
// viz/png) names everything else in code on it, too: `Mermaid`.
func addDocuments(t *testing.T, names map[string][]string, users map[string]string) {
	inPackage := map[string][]string{} // by exported name
	for name := range names {
		pkg, short, _ := strings.Cut(name, " ")
		inPackage[short] = append(inPackage[short], pkg)
	}

	word := regexp.MustCompile(`\w+`)
	for _, document := range documents(t) {
		if base := path.Base(filepath.ToSlash(document)); base == "ledger.md" || base == "decisions.md" {
			continue // they say what is there, and what is not
		}
		for line := range strings.Lines(strings.ReplaceAll(read(t, []string{document}), "\n  ", " ")) {
			words := word.FindAllString(line, -1)
			for _, short := range words {
				for _, pkg := range inPackage[short] {
					name := pkg + " " + short
					if users[name] == "" && slices.Contains(words, path.Base(pkg)) {
						users[name] = filepath.ToSlash(document)
					}
				}
			}
		}
	}
}

// goFiles returns the parsed Go files of the tree.
func goFiles(t *testing.T) map[string]*ast.File {
	files := map[string]*ast.File{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(name, ".ci")):
			return fs.SkipDir
		case path.Ext(name) != ".go":
			return nil
		}
		tree, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		files[filepath.ToSlash(name)] = tree
		return err
	})
	require.NoError(t, err)
	return files
}

// equipmentFolders hold what tests of users and of Plait use.
var equipmentFolders = []string{"api/apitest", "store/storetest", "internal/testkit", "viz/internal/viztest"}

func isEquipment(file string) bool {
	return slices.ContainsFunc(equipmentFolders, func(folder string) bool { return strings.HasPrefix(file, folder+"/") })
}

// isPublic reports whether a file is part of the product's public packages.
func isPublic(file string) bool {
	return strings.Contains(file, "/") && !strings.HasSuffix(file, "_test.go") && !strings.Contains("/"+file, "/internal/") &&
		!isEquipment(file) && !strings.HasPrefix(file, "cmd/") && !strings.HasPrefix(file, "bench/") && !strings.HasPrefix(file, "examples/")
}
