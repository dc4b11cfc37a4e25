package plait_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sealed names the two sealed unions, by the folder of the package and the method that only their variants have.
var sealed = []union{{dir: "node", method: "kind"}, {dir: "content", method: "kind"}}

// union is a sealed interface.
type union struct {
	dir, method string
	kinds       []string
}

// kindSwitch is a type switch over the variants of a union.
type kindSwitch struct {
	where string         // "dag: DAG.Redact"; the second one in a function has " 2" behind it
	pos   token.Position // of the switch
	cases []string       // the kinds that are cases
}

// TestSwitchesOverKindsNameEveryKind finds each type switch over payloads of nodes and blocks. Each kind is a case of it, or is listed
// in others with the reason. A kind that is added fails here once for every place that has to know it.
func TestSwitchesOverKindsNameEveryKind(t *testing.T) {
	for _, u := range sealed {
		u.kinds = variants(t, u)
		require.NotEmpty(t, u.kinds)
		listed := others[u.dir]
		for _, s := range kindSwitches(t, u) {
			known := append(strings.Fields(listed[s.where].kinds), s.cases...)
			for _, kind := range u.kinds {
				if !slices.Contains(known, kind) {
					t.Errorf("%s (%s) does not know %s.%s: make it a case, or list it in others with the reason",
						s.pos, s.where, u.dir, kind)
				}
			}
			for _, kind := range strings.Fields(listed[s.where].kinds) {
				if slices.Contains(s.cases, kind) || !slices.Contains(u.kinds, kind) {
					t.Errorf("others lists %s.%s for %s, which has a case for it or is no kind", u.dir, kind, s.where)
				}
			}
			require.True(t, listed[s.where].kinds == "" || listed[s.where].why != "", "%s: say why", s.where)
			delete(listed, s.where)
		}
		for where := range listed {
			t.Errorf("others lists %q, where no type switch over %s is", where, u.dir)
		}
	}
}

// TestCodecsNameEveryKind finds the switches of node and content over the kinds' names in a saved file: each has every name.
func TestCodecsNameEveryKind(t *testing.T) {
	for _, u := range sealed {
		names, files := savedNames(t, u), parse(t, u.dir)
		switches := 0
		for _, file := range files.list {
			ast.Inspect(file, func(n ast.Node) bool {
				s, ok := n.(*ast.SwitchStmt)
				if !ok {
					return true
				}
				cases := caseTexts(s)
				if !slices.ContainsFunc(cases, func(text string) bool { return slices.Contains(names, text) }) {
					return true
				}
				switches++
				for _, name := range names {
					if !slices.Contains(cases, name) {
						t.Errorf("%s has no case for %q", files.fset.Position(s.Pos()), name)
					}
				}
				return true
			})
		}
		require.NotZero(t, switches, u.dir)
	}
}

// TestThePageKnowsNoKinds holds that the page's JavaScript lays out what Go describes: it reads neither the kind of a node
// nor the type of a block, and names none. Names without "_", such as "text", are also names of forms and sorts.
func TestThePageKnowsNoKinds(t *testing.T) {
	names, err := filepath.Glob("viz/page/internal/web/assets/*.js")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		script, err := os.ReadFile(name)
		require.NoError(t, err)
		require.NotRegexp(t, `\.(kind|type)\b|\{kind\b`, string(script), name)
		for _, u := range sealed {
			for _, kind := range savedNames(t, u) {
				if strings.Contains(kind, "_") {
					require.NotContains(t, string(script), "'"+kind+"'", name)
				}
			}
		}
	}
}

// savedNames returns the names of kinds in a saved file: the text that the method Kind or kind of each returns.
func savedNames(t *testing.T, u union) []string {
	var names []string
	for _, file := range parse(t, u.dir).list {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil || !strings.EqualFold(f.Name.Name, "kind") {
				continue
			}
			if result, ok := f.Body.List[0].(*ast.ReturnStmt); ok {
				if text, ok := result.Results[0].(*ast.BasicLit); ok {
					name, _ := strconv.Unquote(text.Value)
					names = append(names, name)
				}
			}
		}
	}
	require.NotEmpty(t, names)
	return names
}

func caseTexts(s *ast.SwitchStmt) []string {
	var texts []string
	for _, clause := range s.Body.List {
		for _, expr := range clause.(*ast.CaseClause).List {
			if lit, ok := expr.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, _ := strconv.Unquote(lit.Value)
				texts = append(texts, text)
			}
		}
	}
	return texts
}

// variants returns the types of a union: those with its method.
func variants(t *testing.T, u union) []string {
	var kinds []string
	for _, file := range parse(t, u.dir).list {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.Name == u.method {
				kinds = append(kinds, receiver(f))
			}
		}
	}
	return kinds
}

func receiver(f *ast.FuncDecl) string {
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	switch generic := typ.(type) {
	case *ast.IndexExpr:
		typ = generic.X
	case *ast.IndexListExpr:
		typ = generic.X
	}
	return typ.(*ast.Ident).Name
}

// kindSwitches returns the type switches that have at least one kind as a case.
func kindSwitches(t *testing.T, u union) []kindSwitch {
	var found []kindSwitch
	for _, dir := range goFolders(t) {
		files := parse(t, dir)
		for _, file := range files.list {
			name := importedAs(file, module+"/"+u.dir)
			if dir != u.dir && name == "" {
				continue
			}
			for _, decl := range file.Decls {
				f, ok := decl.(*ast.FuncDecl)
				if !ok {
					continue
				}
				where := filepath.ToSlash(dir) + ": " + f.Name.Name
				if f.Recv != nil {
					where = filepath.ToSlash(dir) + ": " + receiver(f) + "." + f.Name.Name
				}
				for i, s := range switchesIn(f, u, name) {
					s.pos, s.where = files.fset.Position(s.at), where
					if i > 0 {
						s.where = fmt.Sprintf("%s %d", where, i+1)
					}
					found = append(found, s.kindSwitch)
				}
			}
		}
	}
	return found
}

type foundSwitch struct {
	kindSwitch
	at token.Pos
}

func switchesIn(f *ast.FuncDecl, u union, name string) []foundSwitch {
	var found []foundSwitch
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.TypeSwitchStmt)
		if !ok {
			return true
		}
		var cases []string
		for _, clause := range s.Body.List {
			for _, typ := range clause.(*ast.CaseClause).List {
				if kind := kindNamed(typ, name); slices.Contains(u.kinds, kind) {
					cases = append(cases, kind)
				}
			}
		}
		if len(cases) > 0 {
			found = append(found, foundSwitch{kindSwitch{cases: cases}, s.Pos()})
		}
		return true
	})
	return found
}

// kindNamed returns the name of a type of the package that is imported under a name, or of the package itself where the name is "".
func kindNamed(typ ast.Expr, name string) string {
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	switch typ := typ.(type) {
	case *ast.Ident:
		if name == "" {
			return typ.Name
		}
	case *ast.SelectorExpr:
		if x, ok := typ.X.(*ast.Ident); ok && name != "" && x.Name == name {
			return typ.Sel.Name
		}
	}
	return ""
}

// importedAs returns the name under which a file imports a package; "" where it does not.
func importedAs(file *ast.File, importPath string) string {
	for _, spec := range file.Imports {
		if p, _ := strconv.Unquote(spec.Path.Value); p == importPath {
			if spec.Name != nil {
				return spec.Name.Name
			}
			return path.Base(importPath)
		}
	}
	return ""
}

// alike is the kinds that a switch treats as one, and why.
type alike struct{ kinds, why string }

// others lists, for each type switch that does not name every kind, those without a case.
var others = map[string]map[string]alike{
	"node": {
		"dag: DAG.build": {"SubGraph RunStart StopReason Custom Unknown",
			"never sent, so it puts nothing into a transcript"},
		"dag: Run.add": {"System Tools SubGraph Compaction RunStart StopReason Custom Unknown",
			"costs no request and no call"},
		"dag: forget": {"System Tools ToolExecution SubGraph RunStart StopReason Custom Unknown",
			"keeps nothing that was made to be sent; a result is sent with its message"},
		"dag: transcriptCache.declare": {"Message ToolExecution SubGraph Compaction RunStart StopReason Custom Unknown",
			"is given prompts and tools alone"},
		"dag: transcriptCache.extended": {"SubGraph RunStart StopReason Custom Unknown",
			"never sent, so it puts nothing into a transcript"},
		"dag: hasMessage": {"System Tools SubGraph RunStart StopReason Custom Unknown",
			"puts no message into a transcript, so a compaction cannot replace it"},
		"dag: outliner.keepSent": {"SubGraph RunStart StopReason Custom Unknown",
			"have no message: DAG.build"},
		"dag: spelled": {"Unknown", "has one field, its body, by the default"},
		"dag: validator.node": {"System Tools SubGraph RunStart StopReason Custom Unknown",
			"has no rule that can be checked for the node alone"},
		"dag: phaseCheck.node": {"System SubGraph RunStart StopReason Custom Unknown",
			"takes no part in calls and results"},
		"dag: viewOf": {"System Tools ToolExecution SubGraph RunStart StopReason Custom Unknown",
			"neither a message nor replaces one"},
		"report/promptcache: requestsOf": {"ToolExecution SubGraph Compaction RunStart StopReason Custom Unknown",
			"no response, and neither a prompt nor a tool"},
		"executor: isDeclaration": {"Message ToolExecution SubGraph Compaction StopReason Unknown",
			"may change what the model is sent next; only a setup or a record may stand behind the last message"},
		"node: Node.Children": {"System Tools Message Compaction RunStart StopReason Custom Unknown",
			"has no conversation hanging on it"},
		"node: Node.Failed":     {"System Tools SubGraph Compaction RunStart Custom Unknown", "cannot fail"},
		"node: Node.appendBody": {"Unknown", "is written as it was read, before the switch"},
		"node: Node.appendInfo": {"System Tools SubGraph Compaction Custom Unknown",
			"has no info: all it says is in its body"},
		"node: Node.blank": {"Unknown", "is never blanked: it cannot be redacted"},
		"node: Node.moved": {"System Tools Message Compaction RunStart StopReason Custom Unknown",
			"has no conversation hanging on it"},
		"node: checkInfo": {"System Tools SubGraph Compaction Custom Unknown",
			"has no info that a saved node could not hold"},
		"node: envelope.informed": {"System Tools SubGraph Compaction Custom Unknown",
			"has no info: all it says is in its body"},
		"node: redaction.repeatsErased": {"System Tools Compaction RunStart StopReason Custom Unknown",
			"repeats nothing of the nodes before it"},
		"node: redaction.repeatsChild": {"System Tools Message Compaction RunStart StopReason Custom Unknown",
			"has no conversation hanging on it"},
	},
	"content": {
		"dag/sessions: exporter.anthropicJSON": {"CutToolUse ToolResult Unknown",
			"counted as a loss, by exporter.parts"},
		"dag/sessions: exporter.atifContent": {"Document Thinking ToolUse CutToolUse ToolResult Opaque Unknown",
			"counted as a loss, by exporter.parts"},
		"dag/sessions: exporter.atifResponse": {"Image Document CutToolUse ToolResult Opaque Unknown",
			"counted as a loss, by exporter.parts"},
		"dag/sessions: exporter.codexItem": {"Image Document CutToolUse ToolResult Unknown",
			"counted as a loss, by exporter.parts"},
		"dag/sessions: exporter.codexPart": {"Document Thinking ToolUse CutToolUse ToolResult Opaque Unknown",
			"counted as a loss, by exporter.parts"},
		"dag/sessions: openCodeWriter.part": {"CutToolUse ToolResult Unknown",
			"counted as a loss, by exporter.parts"},
		"dag/sessions: piWriter.block": {"Document CutToolUse ToolResult Unknown",
			"counted as a loss, by exporter.parts"},
		"api/anthropic: accepter.opaque": {"ToolUse CutToolUse ToolResult Unknown",
			"is refused where an opaque block turns out to be one"},
		"api/anthropic: marked": {"Thinking ToolUse CutToolUse Opaque Unknown",
			"cannot have a cache marker of ours"},
		"api/anthropic: appendBlock": {"CutToolUse Unknown", "is left out by accept"},
		"api/anthropic: rules": {"Image Document Thinking ToolUse CutToolUse ToolResult Unknown",
			"cannot end a message that the model goes on with"},
		"api/apitest/fake: OpenAIChatMessage": {"Image Document CutToolUse ToolResult Unknown",
			"is nothing that a model of this API answers with"},
		"api/apitest/fake: anthropicBlock": {"Image Document CutToolUse ToolResult Unknown",
			"is nothing that a model of this API answers with"},
		"api/apitest/fake: geminiPart": {"Image Document CutToolUse ToolResult Unknown",
			"is nothing that a model of this API answers with"},
		"api/apitest/fake: responsesItem": {"Image Document CutToolUse ToolResult Unknown",
			"is nothing that a model of this API answers with"},
		"api/apitest: deltas": {"Image Document CutToolUse ToolResult Opaque Unknown",
			"arrives whole, without pieces"},
		"api/gemini: acceptOwn": {"Text Image Document CutToolUse ToolResult Unknown",
			"is accepted as if Plait had written it"},
		"api/gemini: appendPart": {"CutToolUse ToolResult Unknown",
			"is left out by accept, or written by the message"},
		"api/gemini: decoder.close": {"Image Document ToolUse CutToolUse ToolResult Opaque Unknown",
			"is decoded whole, and no text of it grows"},
		"api/gemini: decoder.grow": {"Image Document ToolUse CutToolUse ToolResult Opaque Unknown",
			"is decoded whole, and no text of it grows"},
		"api/gemini: decoder.part": {"Image Document CutToolUse ToolResult Opaque Unknown",
			"is decoded whole, and no text of it grows"},
		"api/gemini: decoder.show": {"Image Document CutToolUse ToolResult Opaque Unknown", "has no delta"},
		"api/gemini: plain": {"Image Document Thinking ToolUse CutToolUse ToolResult Unknown",
			"is no text"},
		"api/openai: appendPart": {"Thinking ToolUse CutToolUse ToolResult Unknown",
			"is no part of a message's content"},
		"api/openai: assistant.take": {"Image Document CutToolUse ToolResult Unknown",
			"is left out by accept on the assistant's side"},
		"api/openai: follows": {"Image Document CutToolUse ToolResult Unknown",
			"is nothing that a model writes after reasoning"},
		"api/openai: itemID": {"Image Document CutToolUse ToolResult Unknown",
			"is no item with an id of its own"},
		"api/openai: itemWriter.assistant": {"Image Document CutToolUse ToolResult Unknown",
			"is left out by accept on the assistant's side"},
		"api/openai: itemWriter.inputPart": {"Thinking ToolUse CutToolUse ToolResult Unknown",
			"is an item of its own, or left out by accept"},
		"api/openai: nameless": {"Image Document Thinking CutToolUse ToolResult Opaque Unknown",
			"is no item with an id of its own"},
		"api/openai: responseStop": {"Image Document Thinking CutToolUse ToolResult Opaque Unknown",
			"does not decide why a response stopped"},
		"api/openai: withFitIDs": {"Text Image Document CutToolUse ToolResult Opaque Unknown",
			"has no id that the API limits"},
		"api/internal/roundtrip: Extra":     {"CutToolUse Opaque Unknown", "cannot have an Extra"},
		"api/internal/roundtrip: WithExtra": {"CutToolUse Opaque Unknown", "cannot have an Extra"},
		"api/dialect: Target.Accept":        {"CutToolUse Unknown", "is never sent, and refused by the default"},
		"api/dialect: repairer.accept": {"Text Image Document CutToolUse Opaque Unknown",
			"may stand on either side"},
		"content: check 2":     {"Text Image Document Opaque Unknown", "may stand in a tool result"},
		"dag: validator.block": {"Opaque", "belongs to a provider, which answers for it"},
		"internal/testkit/providertest: plainBlock": {"Thinking CutToolUse Opaque Unknown",
			"is left out of requests that an API imported, or sent as it came"},
		"executor: holdable": {"Text Image Document Opaque Unknown", "may stand in a tool result"},
		"executor: neverSent": {"Text Image Document ToolUse ToolResult Opaque Unknown",
			"is sent by some API"},
		"api: sizeOf": {"Image Document Unknown",
			"has no text to count: an estimate leaves it out"},
		"node: Node.blankMessage": {"Text Image Document Thinking CutToolUse Opaque Unknown",
			"becomes the text that stands for what was redacted"},
		"node: checkSummary":      {"Text Image Document ToolResult Opaque Unknown", "may stand in a message of the user"},
		"node: checkResult":       {"Text Image Document Opaque Unknown", "may stand in a tool result"},
		"dag/sessions: place.fit": {"Text Image Document Opaque Unknown", "may stand in a tool result"},
		"dag/sessions: summaryOf": {"Text Image Document Opaque Unknown", "may stand in a summary"},
	},
}
