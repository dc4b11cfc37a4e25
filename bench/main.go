// Command bench compares Plait with plain code for the same work, and with other libraries.
//
//	go run ./bench                 every measure, about half an hour
//	go run ./bench -quick          the quick measures, under a minute
//	go run ./bench -run tools      only cases with a name matching a regular expression
//	go run ./bench -json           one line of JSON for each measure
//	go run ./bench -quick -gate    fail if a measure is too far below the value it reached before
//	go run ./bench -run peers      other libraries: downloads and compiles them first;
//	                               nano-agent must be installed
//	go run ./bench -robustness     docs/robustness.md: what breaks other libraries, and Plait
//	go run ./bench -write          every measure, written to bench/measured.txt
//
// # What a measure is
//
// The variants of a case are measured in turns, and a ratio is the median of all rounds, with quartiles in brackets: see
// package pair. They run in this process; other libraries, and Plait beside them, run in processes of their own, with a
// fake model that responds at once. Times are processor time, garbage collection included, except in cases of wall time.
// Absolute figures are those of this machine; ratios are about the same on other machines. Measure a ratio whose
// quartiles lie far apart again with -run.
//
// A goal is our own. One with "≤" is ours beside the baseline, one with "≥" the baseline beside ours. -gate compares
// with bench/reached.json, not with the goals.
//
//   - journal/fsync is wall time on a shared disk, and its ratio no finding. "fork memory" is what one of 1,000 forks
//     holds beside the history that all share.
//   - errgroup makes the calls and nothing else. "Same guarantees" adds one deadline, panics that become results,
//     results in call order, and tools that are left behind.
//   - "anthropic" is the SDK's tool runner, where both sides make whole requests.
//   - Versions of the peers: eino v0.9.13, fantasy v0.41.1, openai-agents-go v0.1.0, langchaingo v0.1.14,
//     anthropic-sdk-go v1.84.0, adk v2.2.0, trpc-agent-go v1.10.0, genkit v1.12.0, nano-agent of April 2026 in
//     Python 3.11.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/plait-dev/plait/bench/internal/pair"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// options are the flags of the command line.
type options struct {
	quick, json, gate, keep, write, list bool
	robustness                           bool
	from, note                           string
	run, profile                         string
	rounds                               int
	seed                                 uint64
}

func run() (err error) {
	// The programs of other libraries are built once for all cases, and removed here.
	defer func() { err = errors.Join(err, removeBuilt()) }()

	var o options
	flag.BoolVar(&o.quick, "quick", false, "measure fewer and shorter rounds and, without -run, leave out what takes long")
	flag.BoolVar(&o.json, "json", false, "print one line of JSON for each measure")
	flag.BoolVar(&o.gate, "gate", false, "fail where a count is below 75 %, or a ratio of times below a third, of what bench/reached.json has")
	flag.BoolVar(&o.keep, "keep", false, "write bench/reached.json from this run")
	flag.BoolVar(&o.write, "write", false, "write bench/measured.txt, and docs/cost-per-turn.svg")
	flag.StringVar(&o.from, "from", "", "with -write or -keep: take the lines that -json wrote to `file`, and measure nothing")
	flag.StringVar(&o.note, "note", "", "with -write: a `text` on how the figures were measured")
	flag.BoolVar(&o.list, "list", false, "print the names of the cases, and measure nothing")
	flag.BoolVar(&o.robustness, "robustness", false, "print docs/robustness.md: what this and other libraries do when something goes wrong")
	flag.StringVar(&o.run, "run", "", "measure only the cases whose names match this regular `expression`")
	flag.StringVar(&o.profile, "cpuprofile", "", "write a profile to `file`; its samples have the labels case and variant")
	flag.IntVar(&o.rounds, "rounds", 0, "`number` of rounds; 0 is 9 with -quick and 21 without")
	flag.Uint64Var(&o.seed, "seed", 0, "`seed` of the order of the variants; 0 is a new one")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}

	if o.robustness {
		return robustness(os.Stdout)
	}

	// With -from, the figures come from earlier runs: nothing is measured.
	if o.from != "" {
		measures, err := earlier(o.from)
		if err != nil {
			return err
		}
		if o.keep {
			err = keep(measures)
		}
		if o.write {
			err = errors.Join(err, write(measures, o.conditions(o.runner().Rounds)))
		}
		return err
	}

	selected, err := o.selected()
	if err != nil {
		return err
	}
	if o.list {
		for _, c := range selected {
			fmt.Println(c.Name)
		}
		return nil
	}

	if o.profile != "" {
		file, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	return o.measure(selected)
}

// selected returns the cases that the command line asks for.
func (o options) selected() ([]pair.Case, error) {
	pattern, err := regexp.Compile(o.run)
	if err != nil {
		return nil, err
	}
	var selected []pair.Case
	for _, c := range cases() {
		// A case named by -run is measured even if -quick would leave it out.
		if pattern.MatchString(c.Name) && (o.run != "" || !o.quick || !c.Full) {
			selected = append(selected, c)
		}
	}
	if len(selected) == 0 {
		return nil, errors.New("no measure has that name; -list prints all names")
	}
	return selected, nil
}

func (o options) runner() pair.Runner {
	r := pair.Runner{Rounds: 21, MinTime: 50 * time.Millisecond, Seed: o.seed}
	if o.quick {
		r.Rounds, r.MinTime = 9, 10*time.Millisecond
	}
	if o.rounds > 0 {
		r.Rounds = o.rounds
	}
	if r.Seed == 0 {
		r.Seed = uint64(time.Now().UnixNano())
	}
	return r
}

func (o options) measure(selected []pair.Case) error {
	runner := o.runner()
	began := time.Now()
	if !o.json {
		fmt.Printf("%s, %d rounds, seed %d\n%s\n", machine(), runner.Rounds, runner.Seed, header)
	}

	var all []pair.Measure
	var failed []error
	// An error or a miss ends only its own case: one run reports all of them.
	for _, c := range selected {
		measures, err := runner.Run(c)
		if reason, ok := errors.AsType[pair.Skipped](err); ok {
			fmt.Fprintf(os.Stderr, "SKIPPED %s: %s\n", c.Name, reason)
			continue
		}
		if err != nil {
			failed = append(failed, err)
			fmt.Fprintln(os.Stderr, "bench:", err)
			continue
		}
		if o.gate {
			if measures, err = again(runner, c, measures); err != nil {
				failed = append(failed, err)
			}
		}

		for _, m := range measures {
			if err := o.print(m); err != nil {
				return err
			}
		}
		all = append(all, measures...)
	}

	if !o.json {
		fmt.Println(summary(all, time.Since(began)))
	}
	if o.write {
		failed = append(failed, write(all, o.conditions(runner.Rounds)))
	}
	if o.keep {
		failed = append(failed, keep(all))
	}
	return errors.Join(failed...)
}

func (o options) print(m pair.Measure) error {
	if o.json {
		return json.NewEncoder(os.Stdout).Encode(m)
	}
	fmt.Println(row(m))
	return nil
}

// summary returns a line with the number of measures, the number of goals met, and the names of the missed goals.
func summary(all []pair.Measure, took time.Duration) string {
	goals, met := 0, 0
	var missed []string
	for _, m := range all {
		if m.Goal == "" {
			continue
		}
		goals++
		if m.Met {
			met++
		} else {
			missed = append(missed, m.Name)
		}
	}
	text := fmt.Sprintf("%d measures in %s; %d of %d goals met", len(all), took.Round(time.Second), met, goals)
	if len(missed) > 0 {
		text += "; missed: " + strings.Join(missed, ", ")
	}
	return text
}
