package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// mutation is one mistake in one file.
type mutation struct {
	kind  string
	pkg   *pkg
	file  *source
	at    token.Position
	what  string // the mistake, in a few words
	edits []edit
}

// edit replaces the bytes from from to to.
type edit struct {
	from, to int
	text     string
}

// String returns where the mistake is and what it is, without a column separator of the report.
func (m *mutation) String() string {
	return fmt.Sprintf("%s:%d:%d %s: %s", m.file.name, m.at.Line, m.at.Column, m.kind, strings.ReplaceAll(m.what, "|", "¦"))
}

// text returns the file with the mistake.
func (m *mutation) text() []byte {
	slices.SortFunc(m.edits, func(a, b edit) int { return a.from - b.from })
	var out []byte
	done := 0
	for _, e := range m.edits {
		out = append(append(out, m.file.text[done:e.from]...), e.text...)
		done = e.to
	}
	return append(out, m.file.text[done:]...)
}

// choose returns n mutations that compile. Packages take turns, and within a package the kinds of mistakes do.
func choose(packages []*pkg, n int, seed uint64) ([]*mutation, error) {
	random := rand.New(rand.NewPCG(seed, 0))
	queues := make([][]*mutation, len(packages))
	for i, p := range packages {
		queues[i] = inTurns(mutationsOf(p), random)
	}

	var chosen []*mutation
	for i, empty := 0, 0; len(chosen) < n && empty < len(queues); i++ {
		q := &queues[i%len(queues)]
		empty++
		for len(*q) > 0 {
			m := (*q)[0]
			*q = (*q)[1:]
			if _, err := m.pkg.check(m.file, m.text()); err == nil {
				chosen, empty = append(chosen, m), 0
				break
			}
		}
	}
	if len(chosen) < n {
		return nil, fmt.Errorf("only %d mistakes are possible in these packages", len(chosen))
	}
	return chosen, nil
}

// inTurns shuffles the mutations of each kind, and takes one of each in turn.
func inTurns(all []*mutation, random *rand.Rand) (ordered []*mutation) {
	byKind, kinds := map[string][]*mutation{}, []string{}
	for _, m := range all {
		if byKind[m.kind] == nil {
			kinds = append(kinds, m.kind)
		}
		byKind[m.kind] = append(byKind[m.kind], m)
	}

	slices.Sort(kinds)
	random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for _, kind := range kinds {
		of := byKind[kind]
		random.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	}
	for round := 0; len(ordered) < len(all); round++ {
		for _, kind := range kinds {
			if round < len(byKind[kind]) {
				ordered = append(ordered, byKind[kind][round])
			}
		}
	}
	return ordered
}

// mutationsOf returns every mistake that can be made in a package.
func mutationsOf(p *pkg) (all []*mutation) {
	for _, f := range p.files {
		finder := &finder{pkg: p, file: f}
		ast.Inspect(f.tree, finder.node)
		all = append(all, finder.found...)
	}
	return all
}

// finder collects the mistakes that can be made in a file.
type finder struct {
	pkg   *pkg
	file  *source
	found []*mutation
}

func (f *finder) add(kind, what string, n ast.Node, edits ...edit) {
	f.found = append(f.found, &mutation{kind: kind, pkg: f.pkg, file: f.file, at: f.pkg.fset.Position(n.Pos()), what: what, edits: edits})
}

// replace returns the edit that puts text in the place of a node.
func (f *finder) replace(n ast.Node, text string) edit {
	return edit{f.pkg.fset.Position(n.Pos()).Offset, f.pkg.fset.Position(n.End()).Offset, text}
}

// source returns the text of a node.
func (f *finder) source(n ast.Node) string {
	e := f.replace(n, "")
	return string(f.file.text[e.from:e.to])
}

// short returns the first line of a node's text.
func (f *finder) short(n ast.Node) string {
	line, _, cut := strings.Cut(f.source(n), "\n")
	if len(line) > 70 {
		line, cut = strings.ToValidUTF8(line[:70], ""), true
	}
	if cut {
		line += "…"
	}
	return line
}

// operators has the operators that are mistaken for each other, with the kind of the mistake.
var operators = map[token.Token]struct {
	kind string
	by   token.Token
}{
	token.LSS: {"bound of a comparison", token.LEQ}, token.LEQ: {"bound of a comparison", token.LSS},
	token.GTR: {"bound of a comparison", token.GEQ}, token.GEQ: {"bound of a comparison", token.GTR},
	token.EQL: {"comparison", token.NEQ}, token.NEQ: {"comparison", token.EQL},
	token.LAND: {"logic", token.LOR}, token.LOR: {"logic", token.LAND},
	token.ADD: {"arithmetic", token.SUB}, token.SUB: {"arithmetic", token.ADD},
}

// node adds the mistakes that can be made at a node. It is a function for [ast.Inspect].
func (f *finder) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.IMPORT
	case *ast.Field:
		return false // a type
	case *ast.FuncDecl:
		f.locks(n)
	case *ast.BinaryExpr:
		if o, known := operators[n.Op]; known {
			at := f.pkg.fset.Position(n.OpPos).Offset
			f.add(o.kind, f.short(n)+" with "+o.by.String(), n, edit{at, at + len(n.Op.String()), o.by.String()})
		}
	case *ast.BasicLit:
		value, err := strconv.Atoi(n.Value)
		for _, by := range []int{value + 1, value - 1} {
			if err == nil && by >= 0 {
				f.add("number", fmt.Sprintf("%d instead of %d", by, value), n, f.replace(n, strconv.Itoa(by)))
			}
		}
	case *ast.SliceExpr:
		for _, bound := range []ast.Expr{n.Low, n.High} {
			if bound != nil {
				f.add("bound of a slice", f.short(n)+" with "+f.short(bound)+"+1", bound, f.replace(bound, "("+f.source(bound)+")+1"))
			}
		}
	case *ast.CallExpr:
		f.arguments(n)
	case *ast.IfStmt:
		f.condition(n)
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	}
	return true
}

// arguments swaps neighbors of one type.
func (f *finder) arguments(call *ast.CallExpr) {
	for i := 1; i < len(call.Args); i++ {
		a, b := call.Args[i-1], call.Args[i]
		one, other := f.pkg.info.Types[a].Type, f.pkg.info.Types[b].Type
		if one == nil || other == nil || !types.Identical(one, other) || f.source(a) == f.source(b) {
			continue
		}
		f.add("swapped arguments", f.short(call)+" with "+f.short(b)+" first", a, f.replace(a, f.source(b)), f.replace(b, f.source(a)))
	}
}

// condition ignores an error, or leaves out a return.
func (f *finder) condition(n *ast.IfStmt) {
	if compared, ok := n.Cond.(*ast.BinaryExpr); ok && compared.Op == token.NEQ {
		if nothing, ok := compared.Y.(*ast.Ident); ok && nothing.Name == "nil" && f.isError(compared.X) {
			f.add("ignored error", f.short(n), n, f.replace(n.Cond, f.source(n.Cond)+" && false"))
			return
		}
	}
	if last := len(n.Body.List) - 1; last >= 0 && n.Else == nil {
		switch end := n.Body.List[last].(type) {
		case *ast.ReturnStmt, *ast.BranchStmt:
			f.add("missing return", f.short(n)+" without "+f.short(end), end, f.replace(end, ""))
		}
	}
}

func (f *finder) isError(e ast.Expr) bool {
	typ := f.pkg.info.Types[e].Type
	return typ != nil && types.Identical(typ, types.Universe.Lookup("error").Type())
}

// statements leaves out one statement.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt:
			if _, isLock := lockCall(s); !isLock {
				f.add("missing statement", f.short(s), s, f.replace(s, ""))
			}
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				f.add("missing statement", f.short(s), s, f.replace(s, ""))
			}
		}
	}
}

// locks leaves out all calls that lock and unlock one mutex in a function.
func (f *finder) locks(function *ast.FuncDecl) {
	edits, first := map[string][]edit{}, map[string]ast.Stmt{}
	var mutexes []string
	ast.Inspect(function, func(n ast.Node) bool {
		s, isStatement := n.(ast.Stmt)
		mutex, isLock := lockCall(s)
		if !isStatement || !isLock {
			return true
		}
		name := f.source(mutex)
		if first[name] == nil {
			first[name], mutexes = s, append(mutexes, name)
		}
		edits[name] = append(edits[name], f.replace(s, ""))
		return true
	})
	for _, name := range mutexes {
		f.add("missing lock", name+" in "+function.Name.Name, first[name], edits[name]...)
	}
}

// lockCall returns the mutex of a statement that locks or unlocks one.
func lockCall(s ast.Stmt) (mutex ast.Expr, ok bool) {
	var e ast.Expr
	switch s := s.(type) {
	case *ast.ExprStmt:
		e = s.X
	case *ast.DeferStmt:
		e = s.Call
	}
	call, isCall := e.(*ast.CallExpr)
	if !isCall || len(call.Args) != 0 {
		return nil, false
	}
	method, isSelector := call.Fun.(*ast.SelectorExpr)
	if !isSelector || !slices.Contains([]string{"Lock", "Unlock", "RLock", "RUnlock"}, method.Sel.Name) {
		return nil, false
	}
	return method.X, true
}
