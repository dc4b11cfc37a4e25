package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// pkg is a package with its syntax and types, without tests.
type pkg struct {
	path  string
	files []*source
	fset  *token.FileSet
	info  *types.Info
	using types.Importer
}

// source is a file.
type source struct {
	path string // absolute
	name string // below the folder of the module
	text []byte
	tree *ast.File
}

// load returns the packages that match the patterns.
func load(dir string, patterns []string) ([]*pkg, error) {
	listing := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export,DepOnly,ImportMap,Module"}, patterns...)...)
	listing.Dir, listing.Env, listing.Stderr = dir, environment(nil), os.Stderr
	output, err := listing.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}

	type listed struct {
		ImportPath, Dir, Export string
		GoFiles                 []string
		DepOnly                 bool
		ImportMap               map[string]string
		Module                  *struct{ Path string }
	}
	exports, named := map[string]string{}, []listed{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly {
			named = append(named, l)
		}
	}

	// The types of other packages come from what the compiler wrote about them.
	fset := token.NewFileSet()
	using := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	var packages []*pkg
	for _, l := range named {
		p := &pkg{path: l.ImportPath, fset: fset, using: using}
		for _, name := range l.GoFiles {
			f := &source{path: filepath.Join(l.Dir, name), name: l.ImportPath + "/" + name}
			if f.text, err = os.ReadFile(f.path); err != nil {
				return nil, err
			}
			if f.tree, err = parser.ParseFile(fset, f.path, f.text, parser.SkipObjectResolution|parser.ParseComments); err != nil {
				return nil, err
			}
			p.files = append(p.files, f)
		}
		if p.info, err = p.check(nil, nil); err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
	if len(packages) == 0 {
		return nil, errors.New("no packages")
	}
	return packages, nil
}

// check returns the types of the package, or why it does not compile. The text of one file may be replaced.
func (p *pkg) check(replaced *source, by []byte) (*types.Info, error) {
	trees, fset := make([]*ast.File, len(p.files)), p.fset
	for i, f := range p.files {
		trees[i] = f.tree
		if f == replaced {
			tree, err := parser.ParseFile(fset, f.path, by, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			trees[i] = tree
		}
	}

	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	_, err := (&types.Config{Importer: p.using}).Check(p.path, fset, trees, info)
	return info, err
}
