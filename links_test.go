package plait_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// TestDocumentsLinksLeadSomewhere follows each relative link of each Markdown file, and its anchor.
func TestDocumentsLinksLeadSomewhere(t *testing.T) {
	found, anchored := 0, 0
	for _, document := range markdown(t) {
		for _, link := range links(read(t, []string{document})) {
			if outside(link) {
				continue
			}
			found++
			if strings.Contains(link, "#") {
				anchored++
			}
			require.Empty(t, broken(document, link), "%s links to %s", document, link)
		}
	}
	require.Greater(t, found, 200)
	require.Greater(t, anchored, 1)
}

// TestFeaturesHaveAProgramThatRuns follows the last column of the table beside other libraries: an Example with its
// output, or a program with a test.
func TestFeaturesHaveAProgramThatRuns(t *testing.T) {
	const folder = "docs/coming-from"
	program := regexp.MustCompile(`(?m)\| \[(\w+)\]\(([^)]+)\) \|$`)
	page := read(t, []string{folder + "/README.md"})
	require.NotRegexp(t, `(?m)^\| \[`, page, "a row begins with the name of a feature")
	found := program.FindAllStringSubmatch(page, -1)
	require.Len(t, found, 9)
	for _, f := range found {
		name, path := f[1], filepath.Join(folder, f[2])
		code := read(t, []string{path})
		if !strings.HasPrefix(name, "Example") {
			tests, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*_test.go"))
			require.NoError(t, err)
			require.NotEmpty(t, tests, path)
			continue
		}
		_, body, is := strings.Cut(code, "\nfunc "+name+"() {\n")
		require.True(t, is, "%s has no %s", path, name)
		body, _, _ = strings.Cut(body, "\n}\n")
		require.Contains(t, body, "// Output:", "%s is not run", name)
	}
}

// TestDocumentsAreListed holds that docs/README.md leads to each page.
func TestDocumentsAreListed(t *testing.T) {
	var listed []string
	for _, link := range links(read(t, []string{"docs/README.md"})) {
		listed = append(listed, filepath.Join("docs", filepath.FromSlash(link)))
	}
	for _, page := range documents(t) {
		if page != filepath.Join("docs", "README.md") {
			require.Contains(t, listed, page)
		}
	}
}

// TestGlossaryHasTheWordsOfTheField holds that a search for a word of the field finds its name here.
func TestGlossaryHasTheWordsOfTheField(t *testing.T) {
	glossary := read(t, []string{"docs/glossary.md"})
	for _, word := range []string{
		"session", "thread", "time travel", "checkpoint", "memory", "context editing", "human in the loop", "interrupt",
		"guardrail", "middleware", "function calling", "sub-agent", "handoff", "workflow", "structured output",
		"durable execution", "trace", "span", "trajectory", "evaluation", "replay", "steering", "failover", "idempotency",
		"hand-off", "swarm", "router", "planner", "long-term memory", "skills", "batch", "install", "interrupt", "RAG",
		"finish reason", "cost of a run", "local model", "PII", "confirmation", "typed output", "background agents",
	} {
		require.Regexp(t, `(?m)^\|[^|]*\b`+word+`\b`, glossary)
	}
}

// TestDocumentsFitTheScreen requires lines of at most 120 characters, but for tables and blocks.
func TestDocumentsFitTheScreen(t *testing.T) {
	for _, page := range documents(t) {
		for line := range strings.Lines(fence.ReplaceAllString(read(t, []string{page}), "")) {
			if !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "  <img ") {
				require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSpace(line)), 120, "%s: %s", page, line)
			}
		}
	}
}

// TestBrokenLinksAreFound holds that the check of the links can fail.
func TestBrokenLinksAreFound(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"a.md": "# One `two`: three_four\n## Again\n## Again\n```sh\n# not one\n```\n<a id=\"here\"></a>\n",
		"a.go": "package a\n\nvar A int\n",
	} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}

	for _, link := range strings.Fields("a.md a.md#one-two-three_four a.md#again a.md#again-1 a.md#here #here . a.go#L3") {
		require.Empty(t, broken("a.md", link), link)
	}
	for _, link := range strings.Fields("b.md a.md#two a.md#again-2 a.md#not-one #One a.go#L9 a.go#here /a.md ../a.md") {
		require.NotEmpty(t, broken("a.md", link), link)
	}

	text := "See [a](b.md \"B\"), ![c](d.png) and <https://one.example/x>.\n" +
		"[e]: f.md\n<img src=\"g.png\"> `[no](h.md)` https://two.example/y.\n```\n[no](i.md)\n```\n"
	found := strings.Fields("b.md d.png f.md g.png https://one.example/x https://two.example/y")
	require.Equal(t, found, links(text))
}

// TestOutsideLinksAnswer requests each link that leads out of the tree. It fails if a page is gone. Any other failure,
// such as no network, does not show that a link is dead, and is logged.
func TestOutsideLinksAnswer(t *testing.T) {
	if os.Getenv("PLAIT_LINKS") == "" {
		t.Skip("SKIPPED: set PLAIT_LINKS=1 to ask for each outside link of the documents")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	named := map[string]string{} // the document that has the link
	for _, document := range markdown(t) {
		for _, link := range links(read(t, []string{document})) {
			if outside(link) && !local(link) {
				named[link] = document
			}
		}
	}

	var all sync.WaitGroup
	turns := make(chan struct{}, 8)
	for _, link := range slices.Sorted(maps.Keys(named)) {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()

			switch gone, why := request(ctx, link); {
			case gone:
				t.Errorf("%s links to %s: %s", named[link], link, why)
			case why != "":
				t.Logf("SKIPPED: %s: %s", link, why)
			}
		})
	}
	all.Wait()
}

func TestOnlyAPageThatIsGoneIsADeadLink(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, _ := strconv.Atoi(r.URL.Path[1:])
		w.WriteHeader(status)
	}))
	address := server.URL
	for _, status := range []int{200, 204, 403, 404, 410, 429, 500} {
		gone, why := request(t.Context(), fmt.Sprintf("%s/%d", address, status))
		require.Equal(t, status == 404 || status == 410, gone, status)
		if status < 300 {
			require.Empty(t, why)
		} else {
			require.Contains(t, why, strconv.Itoa(status))
		}
	}

	server.Close()
	gone, why := request(t.Context(), address+"/200")
	require.False(t, gone)
	require.NotEmpty(t, why)
}

// request requests a page. It reports whether the page is gone, and returns why it was not received, or "".
func request(ctx context.Context, link string) (gone bool, why string) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return true, err.Error()
	}

	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err.Error()
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode == http.StatusNotFound, res.StatusCode == http.StatusGone:
		return true, res.Status
	case res.StatusCode >= 300:
		return false, res.Status
	}
	return false, ""
}

// markdown returns every Markdown file of the tree.
func markdown(t *testing.T) []string {
	t.Helper()
	var names []string
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && (entry.Name() == "node_modules" || entry.Name() == ".git") {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			names = append(names, path)
		}
		return err
	}))
	return names
}

var (
	fence    = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```[ \t]*$")
	code     = regexp.MustCompile("`[^`\n]*`")
	linkForm = []*regexp.Regexp{
		regexp.MustCompile(`\]\(([^)\s]+)(?:\s+"[^"]*")?\)`),
		regexp.MustCompile(`(?m)^\[[^\]]+\]:\s*(\S+)`),
		regexp.MustCompile(`\b(?:src|srcset|href)="([^"\s]+)"`),
		regexp.MustCompile(`(?:^|[\s<])(https?://[^\s<>)]*[^\s<>).,;:])`),
	}
	heading    = regexp.MustCompile(`(?m)^#{1,6}\s+(.*?)\s*$`)
	linked     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	namedPlace = regexp.MustCompile(`<a (?:id|name)="([^"]+)"`)
	lineNumber = regexp.MustCompile(`^L(\d+)$`)
)

// links returns the links of a Markdown text, code left out.
func links(text string) []string {
	text = code.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
	var all []string
	for _, form := range linkForm {
		for _, m := range form.FindAllStringSubmatch(text, -1) {
			all = append(all, m[1])
		}
	}
	return all
}

// outside reports whether a link leads out of the tree.
func outside(link string) bool {
	u, err := url.Parse(link)
	return err == nil && u.Scheme != ""
}

// local reports whether an outside link cannot be requested: an example, or not a web page.
func local(link string) bool {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return true
	}
	host := u.Hostname()
	return host == "localhost" || strings.HasPrefix(host, "127.") ||
		strings.HasPrefix(host, "example.") || strings.HasSuffix(host, ".example")
}

// broken returns why a relative link of a document leads nowhere, or "".
func broken(document, link string) string {
	name, anchor, _ := strings.Cut(link, "#")
	target := document
	if name != "" {
		target = filepath.Join(filepath.Dir(document), filepath.FromSlash(name))
	}
	if !filepath.IsLocal(target) || strings.HasPrefix(name, "/") {
		return "it leads out of the tree"
	}
	if _, err := os.Stat(target); err != nil {
		return err.Error()
	}
	if anchor == "" {
		return ""
	}

	text, err := os.ReadFile(target)
	if err != nil {
		return err.Error()
	}
	if m := lineNumber.FindStringSubmatch(anchor); m != nil && !strings.HasSuffix(target, ".md") {
		if n, _ := strconv.Atoi(m[1]); n <= strings.Count(string(text), "\n") {
			return ""
		}
	} else if strings.HasSuffix(target, ".md") && slices.Contains(anchors(string(text)), anchor) {
		return ""
	}
	return "there is no #" + anchor
}

// anchors returns the anchors of a Markdown text: those that GitHub makes of its headings, and its own.
func anchors(text string) []string {
	text = fence.ReplaceAllString(text, "")
	var all []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		spelled := strings.Map(func(c rune) rune {
			switch {
			case c == ' ':
				return '-'
			case unicode.IsLetter(c), unicode.IsDigit(c), c == '-', c == '_':
				return unicode.ToLower(c)
			}
			return -1
		}, linked.ReplaceAllString(m[1], "$1"))

		// The second heading of one spelling gets a number.
		unique := spelled
		for n := 1; slices.Contains(all, unique); n++ {
			unique = fmt.Sprintf("%s-%d", spelled, n)
		}
		all = append(all, unique)
	}
	for _, m := range namedPlace.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}
