package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// valueKeys are the keys of Row.Value beside the labels.
var valueKeys = []string{"cause", "failure", "model", "name", "outcome", "path", "stop", "tool"}

// amounts are the keys of Sort with numbers as values. The second result reports whether the number is known.
var amounts = map[string]func(r *Row) (float64, bool){
	"turns":  func(r *Row) (float64, bool) { return float64(r.Turns), r.Error == "" },
	"calls":  func(r *Row) (float64, bool) { return float64(r.Calls), r.Error == "" },
	"failed": func(r *Row) (float64, bool) { return float64(r.FailedCalls), r.Error == "" },
	"steps":  func(r *Row) (float64, bool) { return float64(r.NumSteps), r.Error == "" },
	"tokens": func(r *Row) (float64, bool) { return float64(r.Usage.Total()), r.Error == "" },
	"time":   func(r *Row) (float64, bool) { return r.Took.Seconds(), r.Took > 0 },
	"began":  func(r *Row) (float64, bool) { return float64(r.Began.UnixMicro()), !r.Began.IsZero() },
	"cost": func(r *Row) (float64, bool) {
		if r.Cost == nil {
			return 0, false
		}
		return *r.Cost, true
	},
}

// CheckKey returns an error if key is neither a key of [Row.Value] nor a label of one of the
// rows.
func CheckKey(rows []Row, key string) error { return checkKey(rows, key, valueKeys) }

func checkKey(rows []Row, key string, known []string) error {
	if slices.Contains(known, key) {
		return nil
	}
	labels := map[string]bool{}
	for _, r := range rows {
		for name := range r.Labels {
			labels[name] = true
		}
	}
	if labels[key] {
		return nil
	}

	names := append(slices.Clone(known), slices.Sorted(maps.Keys(labels))...)
	return fmt.Errorf("no conversation has this key: %q is not one of %s", key, strings.Join(names, ", "))
}

// Where returns the rows that meet all conditions. A condition is "key=value" or "key!=value". The keys are the same as
// for [Row.Value]. A row without the key has the value "". An unknown key is an error.
func Where(rows []Row, conditions ...string) ([]Row, error) {
	found := slices.Clone(rows)
	for _, condition := range conditions {
		key, value, ok := strings.Cut(condition, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not KEY=VALUE or KEY!=VALUE", condition)
		}
		key, not := strings.CutSuffix(key, "!")

		// Check against all rows: an earlier condition may have removed those with the label.
		if err := CheckKey(rows, key); err != nil {
			return nil, err
		}

		found = slices.DeleteFunc(found, func(r Row) bool {
			has, _ := r.Value(key)
			return (has == value) == not
		})
	}
	return found, nil
}

// Sort sorts rows in place by a key: turns, calls, failed, steps, tokens, cost, time, began, or a key of [Row.Value]. A
// "-" before it reverses the order. Numbers in labels are compared as numbers. Rows with an unknown value are last in
// both directions. The sort is stable.
func Sort(rows []Row, key string) error {
	key, down := strings.CutPrefix(key, "-")
	known := append(slices.Sorted(maps.Keys(amounts)), valueKeys...)
	if err := checkKey(rows, key, known); err != nil {
		return err
	}

	slices.SortStableFunc(rows, func(a, b Row) int {
		order, unknown := compareBy(&a, &b, key)
		if down && !unknown {
			return -order
		}
		return order
	})
	return nil
}

// compareBy compares two rows by a key. It reports whether the order comes from an unknown value.
func compareBy(a, b *Row, key string) (order int, unknown bool) {
	// A label may hold a number.
	amount := amounts[key]
	if amount == nil {
		amount = func(r *Row) (float64, bool) {
			text, _ := r.Value(key)
			x, err := strconv.ParseFloat(text, 64)
			return x, err == nil && x == x // not NaN
		}
	}

	x, okX := amount(a)
	y, okY := amount(b)
	if okX && okY {
		return cmp.Compare(x, y), false
	}
	if okX != okY {
		return lastUnless(okX), true
	}
	if amounts[key] != nil {
		return 0, true
	}

	// Neither is a number: compare the texts.
	s, okS := a.Value(key)
	t, okT := b.Value(key)
	if okS != okT {
		return lastUnless(okS), true
	}
	return cmp.Compare(s, t), false
}

// lastUnless returns the order of a value before an unknown one if it is known, and behind it otherwise.
func lastUnless(known bool) int {
	if known {
		return -1
	}
	return 1
}
