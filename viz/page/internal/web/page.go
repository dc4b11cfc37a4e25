package web

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"iter"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Config configures a page.
type Config struct {
	// Title is the heading of the page and of the browser's tab. Defaults to "Conversation".
	Title string `json:"title"`
	// Live makes the page receive events from a server. It connects to "events", relative to its own address.
	Live bool `json:"live,omitempty"`
	// CanRun shows the controls to start and stop runs.
	CanRun bool `json:"canRun,omitempty"`
	// Index makes the page a list of conversations. The page requests the list from "list".
	Index bool `json:"index,omitempty"`
	// Up is the address of the page's list, relative to the page.
	Up string `json:"up,omitempty"`
	// Static holds the data of a page without a server.
	Static *Static `json:"static,omitempty"`
}

// Static holds data for a page without a server. A live page requests the same data from its server.
type Static struct {
	// Requests holds the exact requests of responses, in reading order. NoRequests is the reason if some are missing.
	Requests   []Request `json:"requests,omitempty"`
	NoRequests string    `json:"noRequests,omitempty"`
	// Mermaid is the diagram of the conversation. NoMermaid is the reason if it is missing.
	Mermaid   string `json:"mermaid,omitempty"`
	NoMermaid string `json:"noMermaid,omitempty"`
	// File is the saved conversation, as strings and keys. A key is replaced by the saved form of its node. Between two
	// keys, ",\n" is inserted. NoFile is the reason if it is missing.
	File   []any  `json:"file,omitempty"`
	NoFile string `json:"noFile,omitempty"`
}

// Request is the request answered by the node Key, as a difference from the request answered by the node Base. It
// consists of the first Prefix characters of that request, Middle, and its last Suffix characters. Characters are
// counted in UTF-16, as in JavaScript.
type Request struct {
	Key    int    `json:"key"`
	Base   int    `json:"base"` // -1 for none
	Prefix int    `json:"prefix,omitempty"`
	Suffix int    `json:"suffix,omitempty"`
	Middle string `json:"middle"`
	// Missing is the reason why the request is not known. If it is set, only Key and Missing are meaningful.
	Missing string `json:"missing,omitempty"`
}

//go:embed assets
var assets embed.FS

// parts returns the assets in the form included in a page.
var parts = sync.OnceValue(func() (p struct{ page, style, script string }) {
	p.page, p.style, p.script = asset("page.html"), asset("page.css")+asset("views.css"), bundle("page.js")
	return p
})

var (
	importLines = regexp.MustCompile(`(?m)^import \{[^}]*\} from '(.*)';\n`)
	exportWords = regexp.MustCompile(`(?m)^export `)
)

// bundle returns a module and all modules that it imports as one script: a page must not load anything. Each module
// follows those that it imports, as in a browser. They share one scope, without the words import and export, so their
// names must be unique.
func bundle(name string) string {
	var script strings.Builder
	seen := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true

		module := asset(name)
		for _, imported := range importLines.FindAllStringSubmatch(module, -1) {
			add(path.Join(path.Dir(name), imported[1]))
		}
		script.WriteString(exportWords.ReplaceAllString(importLines.ReplaceAllString(module, ""), ""))
	}

	add(name)
	return "(() => {\n'use strict';\n" + script.String() + "})();\n"
}

func asset(name string) string {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it is compiled in
	}
	return string(data)
}

// Policy returns the Content-Security-Policy of a page. It allows only the page's own script and style, and no
// conversion of a string to a script. A live page may connect to its server. A server sends the policy as a header too.
func Policy(live bool) string {
	p := parts()
	if live {
		return policy(p.style, p.script) + "; connect-src 'self'"
	}
	return policy(p.style, p.script)
}

// policy returns the policy of a page with one style and one script.
func policy(style, script string) string {
	return "default-src 'none'; script-src 'sha256-" + hash(script) + "'; style-src 'sha256-" + hash(style) + "'; " +
		"img-src data: blob:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// WritePage writes a page with a whole conversation: one self-contained HTML file. A live page may begin without one, as
// the zero value of Changes.
func WritePage(w io.Writer, c Config, whole Changes) error {
	if c.Title == "" {
		c.Title = "Conversation"
	}

	a := parts()
	buffered := bufio.NewWriterSize(w, 64<<10)
	out := template{w: buffered}
	out.write(a.page, map[string]func(){
		"policy": func() { out.text(html.EscapeString(Policy(c.Live))) },
		"title":  func() { out.text(html.EscapeString(c.Title)) },
		"style":  func() { out.text(a.style) },
		"script": func() { out.text(a.script) },
		"config": func() { out.json(c) },
		"form":   func() { out.text(formOf(whole)) },
		"patch": func() {
			if formOf(whole) == formPacked {
				out.pack(func() { out.patch(whole) })
			} else {
				out.patch(whole)
			}
		},
	})
	return cmp.Or(out.err, buffered.Flush())
}

// The forms of a patch in a page: as JSON, or compressed and in base64.
const (
	formPlain  = "application/json"
	formPacked = "application/gzip"
)

// packedNodes is the number of nodes from which on a patch is compressed. As JSON, they are about 10 MB.
const packedNodes = 10_000

func formOf(c Changes) string {
	if len(c.fresh) < packedNodes {
		return formPlain
	}
	return formPacked
}

// template writes the page's HTML and the values of its placeholders.
type template struct {
	w   io.Writer
	err error // the first error of w or of encoding; nothing is written after it
}

// write writes text. In place of each {{name}} it calls the function of that name in fill.
func (t *template) write(text string, fill map[string]func()) {
	for {
		before, rest, ok := strings.Cut(text, "{{")
		t.text(before)
		if !ok {
			return
		}
		name, after, _ := strings.Cut(rest, "}}")
		fill[name]()
		text = after
	}
}

// pack compresses what write writes.
func (t *template) pack(write func()) {
	page := t.w
	encoder := base64.NewEncoder(base64.StdEncoding, page)
	packer := gzip.NewWriter(encoder)
	t.w = bufio.NewWriterSize(packer, 64<<10)
	write()
	t.err = cmp.Or(t.err, t.w.(*bufio.Writer).Flush(), packer.Close(), encoder.Close())
	t.w = page
}

func (t *template) text(s string) {
	if t.err == nil {
		_, t.err = io.WriteString(t.w, s)
	}
}

// json writes v as JSON. It is safe inside a script element: encoding/json escapes <, > and &.
func (t *template) json(v any) {
	if t.err != nil {
		return
	}
	data, err := json.Marshal(v)
	if err == nil {
		_, err = t.w.Write(data)
	}
	t.err = err
}

// patch writes changes as JSON. The long lists are written item by item: encoded at once, they would need more memory
// than the conversation.
func (t *template) patch(c Changes) {
	short := c.rest
	short.Folds, short.Edges = nil, nil
	rest, err := json.Marshal(short)
	if err != nil {
		t.err = cmp.Or(t.err, err)
		return
	}

	t.text("{")
	after := ""
	after = list(t, after, "nodes", c.nodes(c.fresh, c.caches()))
	after = list(t, after, "places", c.places(c.moved))
	after = list(t, after, "folds", slices.Values(c.rest.Folds))
	after = list(t, after, "edges", slices.Values(c.rest.Edges))
	if len(rest) > len("{}") {
		t.text(after)
	}

	// rest is a whole object. Without its opening brace, it completes this one.
	t.text(string(rest[1:]))
}

// list writes a member of an object after the text before, unless the list is empty. It returns the text before the
// next member.
func list[T any](t *template, before, name string, items iter.Seq[T]) string {
	begin := before + `"` + name + `":[`
	between := begin
	for item := range items {
		if t.err != nil {
			return ""
		}
		t.text(between)
		t.json(item)
		between = ","
	}
	if between == begin {
		return before
	}

	t.text("]")
	return ","
}
