package executor

import "slices"

// Strategy decides which calls of a message run at the same time, and which are deferred. It gets the calls to execute,
// in call order, and returns batches. The batches are executed one after the other. Rules:
//
//   - It must return the same batches for the same calls.
//   - A call in no batch runs in an additional last batch. A call in two batches runs in the first of them.
//   - If it panics, or has not returned when the run's context ends, no call is executed.
//
// [Parallel], [Sequential], [Batched], [Pool] and [DeferAll] return the usual ones.
type Strategy func(calls []Ready) []Batch

// Ready is a call to execute, with the mode of its tool.
type Ready struct {
	Call Call
	Mode Mode
}

// Batch is a set of calls that run at the same time. The next batch begins when each of them has its result.
type Batch struct {
	// Calls has the indexes of the calls in the Strategy's list. Calls start in call order, whatever the order here.
	Calls []int
	// Limit is how many of them run at the same time. 0 or less is no limit.
	Limit int
	// Defer leaves the calls open: they are not executed here, and the run pauses for their results after the last
	// batch.
	Defer bool
}

// Mode controls whether a tool may run beside others; see [WithMode]. The zero value leaves it to the strategy.
type Mode int

// The modes.
const (
	// ModeSequential marks a tool that must not run beside any other.
	ModeSequential Mode = iota + 1
	// ModeParallel marks a tool that is safe to run beside others.
	ModeParallel
)

// Parallel runs all calls at the same time, but no more than limit; 0 or less is no limit. If one of the tools is
// [ModeSequential], it is Sequential.
func Parallel(limit int) Strategy {
	return orSequential(func(calls []Ready) []Batch { return []Batch{{Calls: upTo(len(calls)), Limit: limit}} })
}

// Sequential runs one call after the other, in call order.
func Sequential() Strategy { return Batched(1) }

// Batched runs n calls at the same time, then the next n, in call order. An n of less than 1 is 1. If one of the tools
// is [ModeSequential], it is Sequential.
func Batched(n int) Strategy {
	return orSequential(func(calls []Ready) []Batch { return chunks(upTo(len(calls)), max(n, 1)) })
}

// Pool runs the tools that are [ModeParallel] at the same time, but no more than limit; 0 or less is no limit. All
// other tools run before them, one after the other.
func Pool(limit int) Strategy {
	return func(calls []Ready) []Batch {
		var alone, together []int
		for i, c := range calls {
			if c.Mode == ModeParallel {
				together = append(together, i)
			} else {
				alone = append(alone, i)
			}
		}

		batches := chunks(alone, 1)
		if len(together) > 0 {
			batches = append(batches, Batch{Calls: together, Limit: limit})
		}
		return batches
	}
}

// DeferAll executes no call: the run pauses, and every result comes from outside.
func DeferAll() Strategy {
	return func(calls []Ready) []Batch { return []Batch{{Calls: upTo(len(calls)), Defer: true}} }
}

// orSequential returns s with one exception: if a tool is ModeSequential, all calls run one after the other.
func orSequential(s Strategy) Strategy {
	return func(calls []Ready) []Batch {
		for _, c := range calls {
			if c.Mode == ModeSequential {
				return chunks(upTo(len(calls)), 1)
			}
		}
		return s(calls)
	}
}

func chunks(indexes []int, size int) []Batch {
	var batches []Batch
	for len(indexes) > 0 {
		n := min(size, len(indexes))
		batches = append(batches, Batch{Calls: indexes[:n:n]})
		indexes = indexes[n:]
	}
	return batches
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// batches returns the batches of the strategy, with each call in exactly one of them. They are copies, because a
// strategy may return the same slices to several runs.
func (s Strategy) batches(calls []Ready) []Batch {
	if len(calls) == 0 {
		return nil
	}
	if s == nil {
		s = Parallel(0)
	}

	// Drop indexes that do not exist or come a second time.
	seen := make([]bool, len(calls))
	var batches []Batch
	for _, b := range s(calls) {
		indexes := make([]int, 0, len(b.Calls))
		for _, i := range b.Calls {
			if i >= 0 && i < len(calls) && !seen[i] {
				seen[i] = true
				indexes = append(indexes, i)
			}
		}

		// Calls of a batch start in call order, whatever order the strategy names them in.
		slices.Sort(indexes)
		if b.Calls = indexes; len(indexes) > 0 {
			batches = append(batches, b)
		}
	}

	// Calls that the strategy left out form the last batch: every call needs a result.
	var rest []int
	for i, has := range seen {
		if !has {
			rest = append(rest, i)
		}
	}
	if len(rest) > 0 {
		batches = append(batches, Batch{Calls: rest})
	}
	return batches
}
