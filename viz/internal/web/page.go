package web

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"io/fs"
	"strings"
	"sync"
)

// Config says what a page is, beside what it shows.
type Config struct {
	// Title stands above the conversation and in the browser's tab. Defaults to "Conversation".
	Title string `json:"title"`
	// Live says that a server sends what happens: the page connects to "events", beside where it was loaded from.
	Live bool `json:"live,omitempty"`
	// CanRun shows what begins and stops runs.
	CanRun bool `json:"canRun,omitempty"`
	// Plain is the conversation as text, for browsers without JavaScript. Defaults to a sentence that says what is missing.
	Plain string `json:"-"`
	// Static is what a page without a server has to bring along.
	Static *Static `json:"static,omitempty"`
}

// Static is what a page cannot ask a server for.
type Static struct {
	// Requests are the exact requests that answers were given to, in reading order; NoRequests says why some are missing.
	Requests   []Request `json:"requests,omitempty"`
	NoRequests string    `json:"noRequests,omitempty"`
	// Copies are the conversation in other forms, by name ("mermaid", "go"); NoCopies says of a name why it is missing.
	Copies   map[string]string `json:"copies,omitempty"`
	NoCopies map[string]string `json:"noCopies,omitempty"`
	// File is the saved conversation, as strings and, for the saved form of a node, its key. Between two keys belongs ",\n".
	File []any `json:"file,omitempty"`
}

// Request is the request that the node Key answers, as what is different from the request that Base answers: its first Prefix and its
// last Suffix characters, counted in UTF-16 as JavaScript does, with Middle in between.
type Request struct {
	Key    int    `json:"key"`
	Base   int    `json:"base"` // -1 for none
	Prefix int    `json:"prefix,omitempty"`
	Suffix int    `json:"suffix,omitempty"`
	Middle string `json:"middle"`
	// Missing says why the request is not known; the fields above but Key mean nothing then.
	Missing string `json:"missing,omitempty"`
}

const withoutScript = "This page draws the conversation with JavaScript, which is off or was stopped. What follows is its text."

//go:embed assets
var assets embed.FS

// parts are the assets as they stand in a page.
var parts = sync.OnceValue(func() (p struct{ page, style, script string }) {
	p.page, p.style, p.script = asset("page.html"), asset("page.css"), ""
	names, _ := fs.Glob(assets, "assets/*.js") // sorted
	var script strings.Builder
	script.WriteString("(() => {\n'use strict';\n")
	for _, name := range names {
		script.WriteString(asset(strings.TrimPrefix(name, "assets/")))
	}
	script.WriteString("})();\n")
	p.script = script.String()
	return p
})

func asset(name string) string {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // it is compiled in
	}
	return string(data)
}

// Policy is the Content-Security-Policy of a page: its own script and style and nothing else, and no way to make a script of a string.
// A live page may ask its server. A server sends it as a header too.
func Policy(live bool) string {
	p := parts()
	policy := "default-src 'none'; script-src 'sha256-" + hash(p.script) + "'; style-src 'sha256-" + hash(p.style) + "'; " +
		"img-src data: blob:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
	if live {
		policy += "; connect-src 'self'"
	}
	return policy
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// WritePage writes the page that shows p: one HTML file that needs nothing else. A live page may begin with an empty patch.
func WritePage(w io.Writer, c Config, p Patch) error {
	if c.Title == "" {
		c.Title = "Conversation"
	}
	a := parts()
	out := template{w: w}
	out.write(a.page, map[string]func(){
		"noscript": func() {
			out.text("<p>" + withoutScript + "</p>")
			if c.Plain != "" {
				out.text("<pre>" + html.EscapeString(c.Plain) + "</pre>")
			}
		},
		"policy": func() { out.text(html.EscapeString(Policy(c.Live))) },
		"title":  func() { out.text(html.EscapeString(c.Title)) },
		"style":  func() { out.text(a.style) },
		"script": func() { out.text(a.script) },
		"config": func() { out.json(c) },
		"patch":  func() { out.json(p) },
	})
	return out.err
}

// template writes the page's HTML with what belongs into its places.
type template struct {
	w   io.Writer
	err error // the first
}

// write writes text, and for each {{name}} in it what fill has for the name.
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

func (t *template) text(s string) {
	if t.err == nil {
		_, t.err = io.WriteString(t.w, s)
	}
}

// json writes v so that it can stand in a script element: encoding/json writes <, > and & as escapes.
func (t *template) json(v any) {
	if t.err != nil {
		return
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.err = err
		return
	}
	t.text(string(data))
}
