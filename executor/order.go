package executor

import (
	"fmt"
	"iter"
	"slices"
)

// Ordered returns the events with those of tools in call order: every ToolStart comes as it does, and the ToolEnd
// events of a phase come after the last of them, sorted by call. For displays that want it so.
func Ordered(events iter.Seq2[Event, error]) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		var ends []ToolEnd
		for event, err := range events {
			switch e := event.(type) {
			case ToolEnd:
				ends = append(ends, e)
				continue
			case ToolStart, ToolUpdate, Child:
			default:
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

// Tee returns the events, shown to each observer in order before they are yielded. An observer that panics is not asked
// again, and disturbs neither the run nor the others; what it panicked with goes to failed, where that is not nil.
func Tee(
	events iter.Seq2[Event, error], failed func(observer int, err error), observers ...func(Event, error),
) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		watching := slices.Clone(observers)
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

// shown shows the event and returns what the observer panicked with.
func shown(observe func(Event, error), event Event, err error) (panicked error) {
	defer func() {
		if v := recover(); v != nil {
			panicked = fmt.Errorf("executor: an observer panicked: %v", v)
		}
	}()
	observe(event, err)
	return nil
}
