package web

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheModulesOfAPageShareOneScope: each is in a page once, without the words of modules, and declares no name that
// another one declares.
func TestTheModulesOfAPageShareOneScope(t *testing.T) {
	declared := regexp.MustCompile(`(?m)^(?:async function|function|const|let|class) ([\w$]+)`)
	for name, script := range map[string]string{"page.js": parts().script, "report/page.js": reportParts().script} {
		require.NotRegexp(t, `(?m)^\s*(import|export)\b`, script, name)

		seen := map[string]bool{}
		for _, d := range declared.FindAllStringSubmatch(script, -1) {
			require.False(t, seen[d[1]], "%s declares %s twice", name, d[1])
			seen[d[1]] = true
		}
		require.Greater(t, len(seen), 50, name)
	}

	modules, err := fs.Glob(assets, "assets/*.js")
	require.NoError(t, err)
	for _, module := range modules {
		opening, _, _ := strings.Cut(asset(strings.TrimPrefix(module, "assets/")), "\n")
		require.Equal(t, 1, strings.Count(parts().script, "\n"+opening+"\n"), module)
	}
}
