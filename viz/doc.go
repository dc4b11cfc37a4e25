// Package viz draws conversations:
//
//   - [Mermaid] writes a diagram for GitHub, editors and documentation tools.
//   - [MermaidParts] draws a conversation that is too large for one such diagram in several.
//   - [SVG] writes a picture that needs no other file.
//   - [DOT] writes the input of Graphviz.
//   - [Layout] computes the positions in a picture, for programs that draw their own.
//
// The smallest whole program:
//
//	d := dag.New().User("What is a DAG?").Assistant("A graph without cycles.")
//	err := viz.Mermaid(os.Stdout, d, nil)
//
// A conversation too large to be read on a screen is folded in every format. Failures stay visible, and the drawing says
// how much is folded.
//
// The texts of a conversation are untrusted. A drawing shows them letter for letter, and nothing in them can break the
// drawing, run, fetch or link. The same conversation gives the same bytes.
//
// # Concurrency
//
// The functions keep no state and are safe for concurrent use.
//
// # Errors
//
// The functions return the error of the chain that built the conversation ([dag.DAG.Err]) and the error of the writer
// unchanged. [ErrTooLarge] marks a conversation that does not fit even when it is folded. [SizeError] names the limit
// it exceeds.
package viz
