// Package web is the page that shows a conversation in a browser: its HTML, CSS and JavaScript, and the data that it draws. Package
// page writes it as one file; package live serves it and sends it what happens.
//
//	m := web.NewModel()
//	p, err := m.Update(d)
//	err = web.WritePage(w, web.Config{Title: "A talk"}, p)
//
// # What a page is told
//
// A page is told of a conversation by patches, the first of which holds everything. A [Patch] is a JSON object; every member may
// be absent, which means that nothing is new there:
//
//	reset     true: forget all that was told before
//	nodes     nodes that are new, or say something else than before (after a redaction)
//	  key       the node's number in the patches; it never changes and is never used again
//	  id        its id
//	  sort      what it is: "user", "assistant", "results", "tool call", "system" and so on, as package describe has them
//	  label     a short name for it
//	  raw       its saved form, byte for byte, as a string
//	  parents   the keys of its parents, in order
//	  opens     the keys of the heads of the conversation that hangs on it
//	  usage     tokens of the call: input, output, read from a cache, written to one, thinking
//	  ms        how long the call took, in milliseconds
//	  cost      what the call cost, in the currency of the program's prices; absent where no price is known
//	places    where nodes are drawn, where that is new or has changed
//	  key       the node
//	  n         its number in reading order, as in n12; it changes when something is inserted before it
//	  x y w h   the box, in pixels
//	  style     "user", "assistant", "aside", "failed"
//	  text      what the box says: plain lines, already cut
//	  head      1 for the first head of its conversation, 2 for the second …; absent for other nodes
//	  frame     the conversation of a sub-agent that it belongs to, as a place in frames; -1 for the outermost
//	edges     edges that are new or have changed
//	  from to   the keys of the nodes
//	  points    x, y, x, y, …
//	  dashed    true where a conversation hangs on a node
//	cut       edges that are gone: pairs of keys
//	gone      the keys of nodes that are gone; their places and edges go with them
//	frames    all frames, where one of them has changed: title, owner (a key), outer (a place in frames, or -1), x, y, w, h
//	width     the size of the drawing, where it has changed
//	height
//	heads     all heads in order, where they have changed: their keys
//	refs      all names, where one has changed: name, keys
//	problems  all that is wrong, in reading order, where that has changed: key, what, grave (true where something failed),
//	          waits (true for a call that has no result yet)
package web
