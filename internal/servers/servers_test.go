package servers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/compatible"
	"github.com/plait-dev/plait/content"
)

// TestEachServerHasRulesAndASource holds the table and the constants of package compatible together.
func TestEachServerHasRulesAndASource(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/compatible/servers.go", nil, parser.ParseComments)
	require.NoError(t, err)

	var named []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is {
			return true
		}
		name, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		require.Contains(t, spec.Doc.Text(), "Source: ", "%s: from where is it known?", name)
		named = append(named, name)
		return false
	})
	require.Equal(t, named, Names())

	for _, r := range all {
		address, err := url.Parse(r.BaseURL)
		require.NoError(t, err)
		require.NotEmpty(t, address.Hostname(), r.Server)
		got, known := Of(r.Server)
		require.True(t, known)
		require.Same(t, r, got)
	}

	none, known := Of("")
	require.True(t, known)
	require.Equal(t, &Rules{}, none)
	_, known = Of("lama")
	require.False(t, known)
}

// TestChoicesFitEachServer checks what becomes of each tool choice by what a server accepts.
func TestChoicesFitEachServer(t *testing.T) {
	tools := []content.Tool{{Name: "ls"}, {Name: "cat"}}
	ls := api.OneTool("ls")
	for _, c := range []struct {
		accepted     Choice
		choice, sent api.ToolChoice
		tools        int
		noted        bool
	}{
		{EachChoice, ls, ls, 2, false}, {EachChoice, api.ToolsNone, api.ToolsNone, 2, false},
		{ChoiceWords, ls, api.ToolsAny, 1, true}, {ChoiceWords, api.ToolsNone, api.ToolsNone, 2, false}, {ChoiceWords, api.ToolsAny, api.ToolsAny, 2, false},
		{ChoiceAny, ls, api.ToolsAny, 1, true}, {ChoiceAny, api.ToolsNone, "", 0, true}, {ChoiceAny, api.ToolsAny, api.ToolsAny, 2, false},
		{NoChoice, ls, "", 1, true}, {NoChoice, api.ToolsNone, "", 0, true}, {NoChoice, api.ToolsAny, "", 2, true}, {NoChoice, "", "", 2, false},
		{NoChoice, api.OneTool("rm"), api.OneTool("rm"), 2, false},
	} {
		o := api.Options{ToolChoice: c.choice}
		noted := false
		kept := (&Rules{Server: compatible.Ollama}).Fit(API{Choice: c.accepted}, &o, tools, func(kind string, _ string, _ ...any) {
			require.Equal(t, "option", kind)
			noted = true
		})
		require.Equal(t, c.sent, o.ToolChoice, "%d %q", c.accepted, c.choice)
		require.Len(t, kept, c.tools, "%d %q", c.accepted, c.choice)
		require.Equal(t, c.noted, noted, "%d %q", c.accepted, c.choice)
	}
}
