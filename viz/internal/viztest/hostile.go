// Package viztest has texts and conversations for tests of drawings.
//
//	for _, text := range viztest.Hostile { … }
package viztest

// Hostile has texts with a special meaning to Mermaid, a browser or a terminal. Without escapes, they may change or
// break a drawing, or run code.
var Hostile = []string{
	`say "hi"`, "`x`", "```", "%%{init: {'theme':'dark'}}%%", "%% comment", "direction LR", "direction\n TB", "Direction LR",
	"style a:#fff;", "classDef x:#quot;y#quot;", "linkStyle 0 stroke:#f00;", "<b>bold</b>", "<img src=x onerror=alert(1)>",
	"<script>window.__pwned=1</script>", "<a href='javascript:alert(1)'>x</a>", "a<br/>b", "map[string]<-chan int", "&lt;", "&#60;",
	"#lt;", "#35;", "#quot;", "color:#fff;", "$$x^2$$", "fa:fa-car", `C:\new\table`, "1. one", "2) two", "- x", "+ x", "* x",
	"# x", "\u00a0 - x", "\u30001. x", "> x", "~~~", "| a | b |\n|---|---|", "https://example.com", "WWW.example.com", "me@example.com", "[a](b)", "![a](b)",
	"*a* __b__ 2*3*4", "ﬂ°lt¶ß", "ﬂ°°60¶ß", "\x00\x01\x1b[31m", "\u202eabc", "end", "END", "subgraph x", "graph", "click n0 call x()",
	"n0 --> n1", "a -.-> b ==> c", "n0@{shape: x}", "---\ntitle: x\n---", "  two  spaces  ", "tab\there", "a\r\nb", "a\n\n\nb", "{{x}}",
	"((o))", "|x|", ";", "#", "&", "\\", "日本語", "שלום", "👩‍👩‍👧‍👦 🇯🇵 ✅", "e\u0301", "constructor", "__proto__", ":::x", "x:::y",
	"a: b: c:", "\u00a0", "a;b;c", "func main() { fmt.Println(\"hi; there\") }", `{"a":[1,2,{"b":null}]}`, "\n%% x", "a\n===", "a\n---",
	"<script>window.pwned = 1</script>", "</script><script>window.pwned = 1</script>", "<!--<script>", "]]>", "<svg onload=window.pwned=1>",
	`"><b onmouseover=alert(1)>`, "javascript:alert(1)", "<style>* { display: none }</style>", "<iframe src=https://example.org></iframe>",
	"<form action=https://example.org><input>", "<noscript></noscript><img src=https://example.org/x>", "{{patch}}", "${alert(1)}",
	"toString", "\u2028\u2029", "\u2066abc", "\ufeff", " ", "&lt;b&gt;&amp;#60;", "'\"`\\",
}
