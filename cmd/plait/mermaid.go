package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/viz"
)

// diagramFlags are the flags for selecting a part of a conversation in a Mermaid diagram.
type diagramFlags struct {
	around       string
	steps, depth int
	parts        bool
}

func (m *diagramFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&m.around, "around", "", "mermaid: only what is near `NODE`")
	f.IntVar(&m.steps, "steps", 0, "mermaid: how many `STEPS` from there (default 3)")
	f.IntVar(&m.depth, "depth", 0, "mermaid: 1 folds sub-agents into their calls, 2 theirs,\nand so on to `DEPTH` (default: none)")
	f.BoolVar(&m.parts, "parts", false, "mermaid: all nodes, in several diagrams, as Markdown")
}

// mermaid prints a diagram or, with --parts, a document of several diagrams.
func (s *streams) mermaid(d dag.DAG, m diagramFlags, full bool) error {
	o := viz.MermaidOptions{Depth: m.depth, Steps: m.steps, Full: full}
	if m.steps < 0 || m.depth < 0 {
		return errors.New("--steps and --depth must not be negative")
	}

	if m.around != "" {
		n, err := nodeOf(d, m.around)
		if err != nil {
			return err
		}
		o.Around = n.ID()
	}

	if !m.parts {
		err := viz.Mermaid(s.out, d, &o)
		if errors.Is(err, viz.ErrTooLarge) {
			return fmt.Errorf("%w; --parts draws it in several", err)
		}
		return err
	}

	// As Markdown, because a Mermaid file holds one diagram.
	parts, err := viz.MermaidParts(d, &o)
	if err != nil {
		return err
	}

	for i, p := range parts {
		if i > 0 {
			fmt.Fprintln(s.out)
		}
		if _, err := fmt.Fprintf(s.out, "## %s\n\n```mermaid\n%s```\n", p.Title, p.Text); err != nil {
			return err
		}
	}
	return nil
}
