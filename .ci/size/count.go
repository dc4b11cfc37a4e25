package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// counts are the figures of a tree.
type counts struct {
	lines          map[string]int // of code, by class
	packages       map[string]int // lines of code of the product, by folder
	names, methods int
	words          int
}

// classes are the classes of Go files, in the order in which they are printed.
var classes = []string{"product", "equipment", "bench", "examples", "tools", "tests"}

// classOf returns the class of a Go file.
func classOf(name string) string {
	switch {
	case strings.HasPrefix(name, ".ci/"):
		return "tools"
	case strings.HasSuffix(name, "_test.go"), strings.Contains("/"+name, "/testdata/"):
		return "tests"
	case strings.HasPrefix(name, "bench/"):
		return "bench"
	case strings.HasPrefix(name, "examples/"):
		return "examples"
	}
	for _, folder := range equipmentFolders {
		if strings.HasPrefix(name, folder+"/") {
			return "equipment"
		}
	}
	return "product"
}

// counted reports whether a file counts for anything.
func counted(name string) bool { return path.Ext(name) == ".go" || isDocument(name) }

func isDocument(name string) bool {
	return path.Ext(name) == ".md" && name != "CHANGELOG.md" &&
		!strings.HasPrefix(name, "examples/") && !strings.HasPrefix(name, ".ci/")
}

// countFiles counts the named files, whose contents are read by read.
func countFiles(names []string, read func(string) ([]byte, error)) (*counts, error) {
	c := &counts{lines: map[string]int{}, packages: map[string]int{}}
	for _, name := range names {
		if !counted(name) {
			continue
		}
		text, err := read(name)
		if err != nil {
			return c, err
		}
		if isDocument(name) {
			c.words += len(strings.Fields(string(text)))
			continue
		}
		if err := c.addGo(name, text); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (c *counts) addGo(name string, text []byte) error {
	class := classOf(name)
	n := linesOfCode(text)
	c.lines[class] += n
	if class != "product" {
		return nil
	}
	c.packages[path.Dir(name)] += n

	if strings.Contains("/"+name, "/internal/") || strings.HasPrefix(name, "cmd/") {
		return nil
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	names, methods := exported(file)
	c.names += names
	c.methods += methods
	return nil
}

// linesOfCode returns the number of lines with a token that is not a comment.
func linesOfCode(text []byte) int {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)

	lines := map[int]bool{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue // inserted by the scanner
		}
		first := file.Line(pos)
		for i := range strings.Count(literal, "\n") + 1 {
			lines[first+i] = true
		}
	}
}

// exported returns the number of exported names at the top level of a file, and of exported methods of exported types.
func exported(file *ast.File) (names, methods int) {
	count := func(id *ast.Ident) {
		if id.IsExported() {
			names++
		}
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			switch {
			case decl.Recv == nil:
				count(decl.Name)
			case decl.Name.IsExported() && receiver(decl).IsExported():
				methods++
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					count(spec.Name)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						count(name)
					}
				}
			}
		}
	}
	return names, methods
}

// receiver returns the name of the type of a method.
func receiver(method *ast.FuncDecl) *ast.Ident {
	for e := method.Recv.List[0].Type; ; {
		switch t := e.(type) {
		case *ast.StarExpr:
			e = t.X
		case *ast.IndexExpr:
			e = t.X
		case *ast.IndexListExpr:
			e = t.X
		case *ast.Ident:
			return t
		default:
			return ast.NewIdent("_")
		}
	}
}

// print writes the counts, with the difference to then unless that is nil.
func (c *counts) print(w io.Writer, then *counts) {
	row := func(name string, now, before int) {
		fmt.Fprintf(w, "%-32s %7d", name, now)
		if then != nil {
			fmt.Fprintf(w, " %+7d", now-before)
		}
		fmt.Fprintln(w)
	}
	before := then
	if before == nil {
		before = &counts{}
	}

	for _, class := range classes {
		row("lines of code, "+class, c.lines[class], before.lines[class])
	}
	row("exported names", c.names, before.names)
	row("methods of exported types", c.methods, before.methods)
	row("words of documents", c.words, before.words)

	fmt.Fprintln(w, "\nlines of code of the product, by folder")
	folders := maps.Clone(c.packages)
	for folder := range before.packages {
		folders[folder] += 0
	}
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		row(folder, c.packages[folder], before.packages[folder])
	}
}
