// Package viz draws conversations: [Mermaid] writes the diagram that GitHub, editors and documentation tools show, [MermaidParts] one
// that is too large for a single diagram, [SVG] a picture that needs nothing else, [DOT] what Graphviz draws. [Layout] says where
// things stand in a picture, for programs that draw their own.
//
// The smallest whole program:
//
//	d := dag.New().User("What is a DAG?").Assistant("A graph without cycles.")
//	err := viz.Mermaid(os.Stdout, d, nil)
//
// What was said is untrusted text. A drawing shows it letter for letter, and nothing in it can break the drawing, run, fetch
// or link. The same conversation gives the same bytes.
//
// # Concurrency
//
// The functions keep no state and are safe for concurrent use.
//
// # Errors
//
// Drawing returns the error of the chain that built the conversation ([dag.DAG.Err]), and the error of the writer, as they
// are. [ErrTooLarge] marks a conversation that does not fit even when it is folded; [SizeError] says which limit it passes.
package viz
