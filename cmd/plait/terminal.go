package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/plait-dev/plait/dag"
)

// logFlags are the flags for drawing a log.
type logFlags struct {
	dag.LogOptions
	color string
}

// colors are the values of --color.
var colors = []string{"auto", "always", "never"}

func (l *logFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&l.Fold, "fold", false, "draw the middle of long runs and wide fans as one row")
	f.IntVarP(&l.Last, "last", "n", 0, "only the last `N` nodes")
	f.IntVar(&l.Width, "width", 0, "how many `CELLS` a row has (default: the terminal's\nwidth, else 100)")
	colorFlag(cmd, &l.color)
}

// options returns the options for drawing a log to out.
func (l *logFlags) options(out io.Writer) (*dag.LogOptions, error) {
	if l.Last < 0 || l.Width < 0 {
		return nil, fmt.Errorf("-n and --width must not be negative")
	}

	var err error
	if l.Color, err = colored(l.color, out); err != nil {
		return nil, err
	}

	// Without --width, use the width of the terminal.
	_, width := terminalOf(out)
	if l.Width == 0 {
		l.Width = width
	}
	l.IDs = true
	return &l.LogOptions, nil
}

// colorFlag registers the flag for using colors. See colored.
func colorFlag(cmd *cobra.Command, color *string) {
	cmd.Flags().StringVar(color, "color", "auto",
		"`WHEN` to use colors: auto, always, never; auto is on a\nterminal where NO_COLOR is not set")
}

// colored reports whether a value of --color colors the output.
func colored(when string, out io.Writer) (bool, error) {
	if !slices.Contains(colors, when) {
		return false, fmt.Errorf("--color %q is not one of %s", when, strings.Join(colors, ", "))
	}
	return when == "always" || when == "auto" && colorOf(out), nil
}

// colorOf reports whether output is colored by default: on a terminal, unless NO_COLOR is set.
func colorOf(out io.Writer) bool {
	terminal, _ := terminalOf(out)
	return terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// terminalOf reports whether out is a terminal, and returns its width in cells, or 0 if it is not known.
func terminalOf(out io.Writer) (terminal bool, width int) {
	if p, ok := out.(*printer); ok {
		out = p.Writer
	}
	if o, ok := out.(*output); ok {
		out = o.Writer
	}
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
