// Package web is the page for a conversation in a browser: its HTML, CSS and JavaScript, and the data for them. Package
// page writes it as one file. Package live serves it and sends it events.
//
//	m := web.NewModel()
//	p, err := m.Update(d)
//	err = web.WritePage(w, web.Config{Title: "Weather"}, p)
//
// # Patches
//
// A page receives a conversation as patches. The first one holds everything. A [Patch] is a JSON object. Members without
// changes are absent:
//
//	reset     true: drop everything received before
//	more      true: the rest of a long conversation follows in further patches
//	nodes     new nodes, and nodes changed by a redaction
//	  key       the node's number in the patches; it never changes and is never reused
//	  id        its ID
//	  sort      its kind, as in package describe: "user", "assistant", "results", "tool call", "system" and so on
//	  label     a short name for it
//	  call      the arguments of an execution on one line, already cut: "(city: Tokyo)"
//	  line      its content on one line, already cut; the result of an execution
//	  parts     its content, in order; each part has
//	    form    the layout, see the type Form; absent for text
//	    label   a heading, a remark or the name of a tool
//	    at      the path of the content in the saved form, as in "body.blocks.0.text"; JSON missing there is saved
//	            as a string under the same name with "_text"
//	    from    the path of the content replaced by a change
//	    bad     true for a failure
//	    open    true for a fold that is initially open
//	    parts   the parts inside it
//	  raw       its saved form, byte for byte, as a string
//	  parents   the keys of its parents, in order
//	  opens     the keys of the heads of its sub-agent's conversation
//	  state     the state of a call without a known result, such as "started" or "awaiting approval"; of a response,
//	            how many attempts failed before it, such as "2 retries"
//	  usage     tokens of the call: input, output, read from a cache, written to one, thinking
//	  least     true if more tokens were used than are counted in usage
//	  model     the model of a response
//	  at        when the call began, or else when the node was made: milliseconds since 1970
//	  ms        how long the call took, in milliseconds; absent if unknown
//	  cost      the cost of the call, in the currency of the program's prices; absent if no price is known
//	  cache     the use of the prompt cache by the request of a response: input (the tokens of the request), estimated
//	            (true if input is an estimate), predicted (about how many could be read), text (the same in words),
//	            broke (true if the cached part is lost), at (the key of the node that changed it)
//	places    new and changed boxes of nodes
//	  key       the node
//	  n         its number in reading order, as in n12; it changes when something is inserted before it
//	  in        the key of the folded box around it; absent in the outermost picture
//	  x y w h   the box, in pixels, in its picture
//	  style     "user", "assistant", "aside", "failed"
//	  text      the text of the box: plain lines, already cut
//	  right     the lines that read from right to left, as bits: 1 is the first line; absent if none does
//	  head      1 for the first head of its conversation, 2 for the second …; absent for other nodes
//	  frame     the index in frames of the sub-agent's conversation it belongs to; -1 for the outermost
//	  of        the key of the call whose box also shows this node, the message with its result; such a place has no
//	            box. Absent for other nodes
//	folds     new and changed folded boxes. Each holds several nodes, and has a picture of its own inside
//	  key       its number, distinct from those of nodes
//	  in x y w h style text right  as in places; the style "folded" has no failure in it
//	  first     the key of the first node in it: its place in the reading order
//	  nodes     the number of nodes in it
//	  width     the size of the picture inside
//	  height
//	edges     new and changed edges
//	  from to   the keys of nodes or folded boxes in the same picture
//	  points    x, y, x, y, …
//	  dashed    true if it leads to the conversation of a sub-agent
//	cut       removed edges: pairs of keys
//	gone      the keys of removed nodes and folded boxes; their places and edges go with them
//	frames    the conversations of sub-agents, if one has changed: title, owner (a key), outer (an index in frames,
//	          or -1)
//	rooms     the rectangles around them, if one has changed: title, in (as in places), x, y, w, h
//	width     the size of the outermost picture, if it has changed
//	height
//	note      how the outermost picture is folded, in lines, if it has changed
//	heads     all heads in order, if one has changed: their keys
//	refs      all refs, if one has changed: name, keys
//	problems  all problems in reading order, if one has changed: key, what, grave (true for a failure),
//	          waits (true for a call without a result)
//	totals    all totals, if one has changed
//	  by name   "model" and the model; "tool" and the tool; "agent" and the title of a sub-agent's frame, or "" for
//	            the outermost conversation
//	  calls     the number of calls; failed counts the failed ones, and untimed those of unknown duration
//	  usage     their tokens, as in nodes; least is true if more tokens were used than are counted
//	  ms        their total duration in milliseconds; longest is the longest of them
//	  cost      their total cost; priced counts the calls in it, and unpriced the responses of unknown cost
package web
