package plait_test

import (
	"go/ast"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// notJSON lists the exported types that json.Marshal encodes as {} although their values are not empty, and why.
var notJSON = map[string]string{
	// Values at work: a connection, a server, a lock, a queue. Their content has a form of its own.
	"api.Client":                "a connection",
	"api.Fold":                  "a response as far as it has arrived: Response returns it",
	"api/apitest.Script":        "a model at work",
	"api/batch.Batches":         "an open file, and requests that wait",
	"api.Partial":               "a response as far as it has arrived: Add returns it",
	"api/apitest.Turn":          "a step of a script, which may be a function",
	"api/apitest/fake.API":      "a server",
	"api/apitest/tape.Tape":     "an open file",
	"dag.Journal":               "an open file",
	"dag.NodeSet":               "an index of nodes: DAG returns a conversation, which is encoded",
	"executor.Queue":            "messages on their way into a run",
	"executor/replay.Recording": "the results that are left, and a lock",
	"executor/agui.Shared":      "a value with its lock: Decode returns the value",
	"report.Texts":              "a filter with what it has seen",
	"store.Conversation":        "a connection to a store: DAG returns the conversation",
	"store.Store":               "a connection to a database",
	"viz/page/live.Index":       "a server",
	"viz/page/live.Server":      "a server",

	"executor.Decision": "what a hook returns to the run that asked, at once; a reply that is stored is a Reply",
}

// TestExportedTypesAreNotEncodedAsNothing finds each exported struct type of which encoding/json sees no field: its values
// would be lost without an error.
func TestExportedTypesAreNotEncodedAsNothing(t *testing.T) {
	found := map[string]bool{}
	for _, dir := range layers {
		if strings.Contains(dir, "internal/") {
			continue
		}
		p := structsOf(parse(t, dir).list)
		for name := range p.structs {
			if ast.IsExported(name) && p.silent(name) {
				found[dir+"."+name] = true
			}
		}
	}

	for name := range found {
		assert.NotEmpty(t, notJSON[name], "json.Marshal of a %s is {}: give it a MarshalJSON method, or list it in notJSON with the reason", name)
	}
	for name := range notJSON {
		require.True(t, found[name], "notJSON lists %s, which is encoded or does not exist", name)
	}
}

// structs are the struct types of a package, and the types with a method that encodes them.
type structs struct {
	structs map[string]*ast.StructType
	encoded map[string]bool
}

func structsOf(files []*ast.File) structs {
	p := structs{map[string]*ast.StructType{}, map[string]bool{}}
	for _, f := range files {
		for _, decl := range f.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil && (d.Name.Name == "MarshalJSON" || d.Name.Name == "MarshalText") {
					p.encoded[typeName(d.Recv.List[0].Type)] = true
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if spec, ok := s.(*ast.TypeSpec); ok {
						if st, ok := spec.Type.(*ast.StructType); ok {
							p.structs[spec.Name.Name] = st
						}
					}
				}
			}
		}
	}
	return p
}

// silent reports whether encoding/json encodes none of the fields of a type, which has some.
func (p structs) silent(name string) bool {
	st, known := p.structs[name]
	if !known || p.encoded[name] || len(st.Fields.List) == 0 {
		return false
	}

	for _, f := range st.Fields.List {
		if f.Tag != nil && reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json") == "-" {
			continue
		}
		for _, field := range f.Names {
			if field.IsExported() {
				return false
			}
		}

		// The fields of an embedded struct are encoded as those of the outer one.
		if len(f.Names) == 0 && (p.structs[typeName(f.Type)] == nil || !p.silent(typeName(f.Type))) {
			return false
		}
	}
	return true
}

// typeName returns the name of a type, without its pointer, package and parameters.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}
