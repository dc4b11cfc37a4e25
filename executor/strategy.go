package executor

import "slices"

// Strategy says how the calls of one answer are carried out: which of them run together, and which wait for somebody else. It gets
// the calls that are to run, in call order, and returns waves, which are carried out one after the other. It must return the same
// for the same calls. A call that is in no wave runs in a last one, and one that is in two runs in the first. One that
// panics, or has not returned when the run's context ends, fails closed: no call is carried out.
//
// [Parallel], [Sequential], [Batched], [Pool], [SequentialFirst] and [DeferAll] make the usual ones.
type Strategy func(calls []Ready) []Wave

// Ready is a call that is to be carried out.
type Ready struct {
	Call Call
	Mode Mode
}

// Wave is calls that run together. All of them are over before the next wave begins.
type Wave struct {
	// Calls is their places in what the Strategy was given. They start in call order, however they stand there.
	Calls []int
	// Limit is how many of them run at the same time. 0 or less is no limit.
	Limit int
	// Defer leaves the calls open: they do not run here, and the run pauses for their results when the waves are over.
	Defer bool
}

// Mode says whether a tool may run beside others; see [WithMode].
type Mode int

// The modes.
const (
	// ModeAny leaves it to the strategy.
	ModeAny Mode = iota
	// ModeSequential is a tool that must not run beside any other.
	ModeSequential
	// ModeParallel is a tool that is marked as safe to run beside others.
	ModeParallel
)

// Parallel runs all calls at the same time, but no more than limit; 0 or less is no limit. Where one of the tools is
// [ModeSequential], it is Sequential.
func Parallel(limit int) Strategy {
	return orSequential(func(calls []Ready) []Wave { return []Wave{{Calls: upTo(len(calls)), Limit: limit}} })
}

// Sequential runs one call after the other, in call order.
func Sequential() Strategy { return Batched(1) }

// Batched runs n calls together, then the next n, in call order. An n of less than 1 is 1. Where one of the tools is
// [ModeSequential], it is Sequential.
func Batched(n int) Strategy {
	return orSequential(func(calls []Ready) []Wave { return chunks(upTo(len(calls)), max(n, 1)) })
}

// Pool runs only tools together that are marked [ModeParallel], and no more than limit of them at the same time; 0 or less is no
// limit. All others run first, one after the other.
func Pool(limit int) Strategy {
	return func(calls []Ready) []Wave { return split(calls, limit, func(m Mode) bool { return m == ModeParallel }) }
}

// SequentialFirst runs the tools that are [ModeSequential] first, one after the other, and then all others as Parallel does.
func SequentialFirst(limit int) Strategy {
	return func(calls []Ready) []Wave {
		return split(calls, limit, func(m Mode) bool { return m != ModeSequential })
	}
}

// DeferAll executes no call: the run pauses, and each result comes from outside.
func DeferAll() Strategy {
	return func(calls []Ready) []Wave { return []Wave{{Calls: upTo(len(calls)), Defer: true}} }
}

// orSequential is s, but for answers that call a tool which must not run beside any other.
func orSequential(s Strategy) Strategy {
	return func(calls []Ready) []Wave {
		for _, c := range calls {
			if c.Mode == ModeSequential {
				return chunks(upTo(len(calls)), 1)
			}
		}
		return s(calls)
	}
}

// split is one wave of the calls whose mode may run together, after all others.
func split(calls []Ready, limit int, together func(Mode) bool) []Wave {
	var alone, last []int
	for i, c := range calls {
		if together(c.Mode) {
			last = append(last, i)
		} else {
			alone = append(alone, i)
		}
	}
	waves := chunks(alone, 1)
	if len(last) > 0 {
		waves = append(waves, Wave{Calls: last, Limit: limit})
	}
	return waves
}

func chunks(places []int, size int) []Wave {
	var waves []Wave
	for len(places) > 0 {
		n := min(size, len(places))
		waves = append(waves, Wave{Calls: places[:n:n]})
		places = places[n:]
	}
	return waves
}

func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// waves returns what the strategy makes of the calls, with each call in exactly one wave. They share nothing with what the strategy
// returned, which may be the same for several runs.
func (s Strategy) waves(calls []Ready) []Wave {
	if len(calls) == 0 {
		return nil
	}
	if s == nil {
		s = Parallel(0)
	}
	made := s(calls)
	seen := make([]bool, len(calls))
	var waves []Wave
	for _, w := range made {
		places := make([]int, 0, len(w.Calls))
		for _, i := range w.Calls {
			if i >= 0 && i < len(calls) && !seen[i] {
				seen[i] = true
				places = append(places, i)
			}
		}
		slices.Sort(places)
		if w.Calls = places; len(places) > 0 {
			waves = append(waves, w)
		}
	}
	var rest []int
	for i, placed := range seen {
		if !placed {
			rest = append(rest, i)
		}
	}
	if len(rest) > 0 {
		waves = append(waves, Wave{Calls: rest})
	}
	return waves
}
