// Command mutate makes small mistakes in packages, one at a time, and runs tests to see whether they notice.
//
//	cd .ci/mutate && GOWORK=off go run . -n 40 -seed 1 ./dag ./executor
//	GOWORK=off go run . -n 40 -env PLAIT_LONG=1 -again report.txt ./dag ./executor
//
// The mistakes: a comparison that includes or excludes its bound, == for !=, && for ||, + for -, a number or a bound of
// a slice that is one off, two arguments of one type swapped, an early return left out, an error ignored, a mutex not
// locked, a statement left out. The seed decides which ones are made: packages and kinds of mistakes take turns.
//
// A mistake is made in a copy of one file, which the build takes in its place (go build -overlay). The tree is not
// edited. The tests of the package decide, and those of the packages named with -with: "noticed" is a test that fails or
// runs out of time. A mistake that does not compile is not counted, and another one is taken.
//
// The report is a table on the standard output. With -again, only the mistakes that an earlier report has as "not
// noticed" are made: with another -env or -run, it shows what those tests add.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"
)

// list is a flag that may be repeated.
type list []string

func (l *list) String() string         { return strings.Join(*l, " ") }
func (l *list) Set(value string) error { *l = append(*l, value); return nil }

func main() {
	var env, with list
	n := flag.Int("n", 20, "how many mistakes are made")
	seed := flag.Uint64("seed", 1, "decides which ones")
	run := flag.String("run", "", "run only the tests that match, as with go test")
	short := flag.Bool("short", false, "run the tests with -short")
	race := flag.Bool("race", false, "run the tests with the race detector")
	timeout := flag.Duration("timeout", 5*time.Minute, "how long the tests of a package may take")
	again := flag.String("again", "", "make only the mistakes of this report that were not noticed")
	dir := flag.String("dir", "../..", "the folder in which the packages are named and tested")
	show := flag.Bool("list", false, "print the mistakes, and test nothing")
	flag.Var(&env, "env", "a variable for the tests, NAME=VALUE; may be repeated")
	flag.Var(&with, "with", "also run the tests of this package; may be repeated")
	flag.Parse()

	// An interrupt ends the running tests too.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	t := tests{dir: *dir, env: env, with: with, run: *run, short: *short, race: *race, timeout: *timeout}
	if err := mutate(ctx, os.Stdout, t, flag.Args(), *n, *seed, *again, *show); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// mutate makes n mistakes in the packages, tests each, and writes the report.
func mutate(ctx context.Context, w io.Writer, t tests, patterns []string, n int, seed uint64, again string, show bool) error {
	packages, err := load(t.dir, patterns)
	if err != nil {
		return err
	}
	chosen, err := choose(packages, n, seed)
	if err != nil {
		return err
	}
	if again != "" {
		if chosen, err = unnoticed(chosen, again); err != nil {
			return err
		}
	}

	if show {
		for _, m := range chosen {
			fmt.Fprintln(w, m)
		}
		return nil
	}

	count := map[verdict]int{}
	for _, m := range chosen {
		began := time.Now()
		found, by, err := t.test(ctx, m)
		if err != nil {
			return err
		}
		count[found]++
		fmt.Fprintf(w, "| %s | %s | %s | %.0fs |\n", found, m, by, time.Since(began).Seconds())
	}
	fmt.Fprintf(w, "\n%d mistakes: %d noticed, %d not noticed, %d do not compile\n",
		len(chosen), count[noticed], count[notNoticed], count[broken])
	return nil
}

// unnoticed returns the mutations that a report has as not noticed.
func unnoticed(all []*mutation, report string) (some []*mutation, err error) {
	file, err := os.Open(report)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	wanted := map[string]bool{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if cells := strings.Split(lines.Text(), " | "); strings.HasPrefix(cells[0], "| "+string(notNoticed)) && len(cells) > 1 {
			wanted[cells[1]] = true
		}
	}
	for _, m := range all {
		if wanted[m.String()] {
			some = append(some, m)
		}
	}
	if len(some) < len(wanted) {
		return nil, fmt.Errorf("%s has %d mistakes that are not among those of this seed and number", report, len(wanted)-len(some))
	}
	return some, nil
}
