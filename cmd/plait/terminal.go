package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/plait-dev/plait/dag"
)

// logFlags is how a log is drawn.
type logFlags struct {
	dag.LogOptions
	color string
}

var colors = []string{"auto", "always", "never"}

func (l *logFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&l.ASCII, "ascii", false, "draw with signs of ASCII only")
	f.BoolVar(&l.Fold, "fold", false, "draw the middle of long runs and wide fans as one row")
	f.IntVarP(&l.Last, "last", "n", 0, "only the last `N` nodes")
	f.IntVar(&l.Width, "width", 0, "how many `CELLS` a row has (default: the terminal's\nwidth, else 100)")
	f.StringVar(&l.color, "color", "auto", "`WHEN` to use colours: auto, always, never; auto is on a\nterminal where NO_COLOR is not set")
	_ = cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions(colors, cobra.ShellCompDirectiveNoFileComp))
}

// options is how a log is drawn to out.
func (l *logFlags) options(out io.Writer) (*dag.LogOptions, error) {
	if l.Last < 0 || l.Width < 0 {
		return nil, fmt.Errorf("-n and --width take no numbers below 0")
	}
	terminal, width := terminalOf(out)
	switch l.color {
	case "always":
		l.Color = true
	case "auto":
		l.Color = terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	case "never":
		l.Color = false
	default:
		return nil, fmt.Errorf("--color %q is none of auto, always, never", l.color)
	}
	if l.Width == 0 {
		l.Width = width
	}
	return &l.LogOptions, nil
}

// terminalOf reports whether out is a terminal, and how many cells a row of it has; 0 where that is not known.
func terminalOf(out io.Writer) (terminal bool, width int) {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return false, 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		width = 0
	}
	return true, width
}
