package web

import (
	"html"
	"io"
	"sync"
)

// reportParts returns the assets of the page of many conversations. It shares the style of the page of one
// conversation, and the functions to make elements.
var reportParts = sync.OnceValue(func() (p struct{ page, style, script string }) {
	p.page = asset("report/report.html")
	p.style = parts().style + asset("report/report.css")
	p.script = bundle("report/page.js")
	return p
})

// WriteReport writes a page about many conversations: one self-contained HTML file. data is encoded as JSON for the
// page's script.
func WriteReport(w io.Writer, title string, data any) error {
	a := reportParts()
	out := template{w: w}
	out.write(a.page, map[string]func(){
		"policy": func() { out.text(html.EscapeString(policy(a.style, a.script))) },
		"title":  func() { out.text(html.EscapeString(title)) },
		"style":  func() { out.text(a.style) },
		"script": func() { out.text(a.script) },
		"data":   func() { out.json(data) },
	})
	return out.err
}
