package executor

import (
	"fmt"
	"iter"
	"slices"
)

// Ordered returns the events with the ToolEnd events of each tool phase at the end of the phase, in call order. Other
// events keep their places. It is for displays that show results in call order.
func Ordered(events iter.Seq2[Event, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var ends []ToolEnd // of the current tool phase
		for event, err := range events {
			switch e := event.(type) {
			case ToolEnd:
				ends = append(ends, e)
				continue

			case ToolStart, ToolUpdate, Child: // the phase continues

			default: // any other event comes after the phase
				slices.SortStableFunc(ends, func(a, b ToolEnd) int { return a.Execution.Index - b.Execution.Index })
				for _, end := range ends {
					if !yield(end, nil) {
						return
					}
				}
				ends = nil
			}

			if !yield(event, err) {
				return
			}
		}
	}
}

// Tee returns the events, and calls each observer with an event before it is yielded. An observer that panics is not
// called again. The panic does not disturb the run or the other observers; Tee passes it to failed, if failed is not
// nil.
func Tee(
	events iter.Seq2[Event, error], failed func(observer int, err error), observers ...func(Event, error),
) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		watching := slices.Clone(observers) // nil after a panic

		for event, err := range events {
			for i, observe := range watching {
				if observe == nil {
					continue
				}

				if panicked := shown(observe, event, err); panicked != nil {
					watching[i] = nil
					if failed != nil {
						failed(i, panicked)
					}
				}
			}

			if !yield(event, err) {
				return
			}
		}
	}
}

// shown calls an observer, and returns an error if it panics.
func shown(observe func(Event, error), event Event, err error) (panicked error) {
	defer func() {
		if v := recover(); v != nil {
			panicked = fmt.Errorf("executor: an observer panicked: %v", v)
		}
	}()
	observe(event, err)
	return nil
}
