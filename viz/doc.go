// Package viz draws conversations:
//
//   - [Mermaid] writes a diagram for GitHub, editors and documentation tools.
//   - [SVG] writes a self-contained picture.
//   - [DOT] writes the input of Graphviz.
//   - [Layout] computes the positions in a picture, for programs with their own drawing code.
//
// The smallest whole program:
//
//	d := dag.New().User("What is a DAG?").Assistant("A graph without cycles.")
//	err := viz.Mermaid(os.Stdout, d, nil)
//
// A conversation too large to be read on a screen is folded in every format. Failures stay visible, and the drawing
// reports how much is folded.
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
// unchanged. [ErrTooLarge] marks a conversation that is too large even when folded.
package viz
