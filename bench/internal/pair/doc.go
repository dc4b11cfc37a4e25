// Package pair measures variants of the same work side by side, on a machine with other users.
//
// A [Case] has variants: ours, and the baselines. [Runner.Run] measures them in rounds. In each round every variant is
// measured once, in random order, and the ratios of the round are taken. A ratio of the case is the median of its
// rounds. A busy machine slows all variants of a round alike, so the ratio stays about the same.
//
// The smallest whole program:
//
//	sum := pair.Case{Name: "sum", Variants: func() ([]pair.Variant, error) {
//		return []pair.Variant{{Name: "ours", Run: ours}, {Name: "theirs", Run: theirs}}, nil
//	}, Goals: []pair.Goal{{Kind: pair.AtMost, Limit: 1.2}}}
//	measures, err := pair.Runner{Rounds: 15, MinTime: 20 * time.Millisecond}.Run(sum)
//
// A sample is the processor time of the process, of all threads and of the garbage collector, divided by the number of
// repetitions of the work. It begins after a garbage collection, so that no variant pays for the garbage of another.
//
// # Concurrency
//
// A Runner measures one case at a time, and nothing else may run in the process meanwhile.
//
// # Errors
//
// An error of a variant ends its case. It names the case and the variant.
package pair
