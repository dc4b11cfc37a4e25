// Command patterns has the forms in which several agents work together, one file each. None of them needs a graph
// language: they are Go functions that take agents. The models are scripted.
//
//	go run ./examples/patterns handoff
package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// patterns are the programs, by the name of their file.
var patterns = map[string]func(ctx context.Context, out io.Writer) error{
	"debate":    debate,
	"handoff":   handoff,
	"memory":    memory,
	"optimizer": optimizer,
	"router":    router,
	"workers":   workers,
}

func main() {
	name := strings.Join(os.Args[1:], " ")
	run, ok := patterns[name]
	if !ok {
		fmt.Fprintln(os.Stderr, "usage: patterns", strings.Join(slices.Sorted(maps.Keys(patterns)), "|"))
		os.Exit(2)
	}
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
