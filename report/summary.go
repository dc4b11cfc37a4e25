package report

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Summary sums up rows.
type Summary struct {
	Conversations int `json:"conversations"`
	// Outcomes is the number of conversations with each outcome.
	Outcomes    map[string]int `json:"outcomes"`
	Turns       int            `json:"turns"`
	Calls       int            `json:"calls"`
	FailedCalls int            `json:"failed_calls"`
	Took        time.Duration  `json:"-"`
	Spending
	// Models and Tools are in the order of the names.
	Models []ModelSpending `json:"models"`
	Tools  []Tool          `json:"tools"`
}

// MarshalJSON writes the summary with its Took as "took_ms".
func (s Summary) MarshalJSON() ([]byte, error) {
	type plain Summary
	return json.Marshal(struct {
		plain
		Took float64 `json:"took_ms"`
	}{plain(s), milliseconds(s.Took)})
}

// Sum sums up rows. An unreadable row counts as a conversation that is unreadable, and makes the cost unknown.
func Sum(rows []Row) Summary {
	s := Summary{Conversations: len(rows), Outcomes: map[string]int{}, Models: []ModelSpending{}}
	s.Spending = nothing(slices.ContainsFunc(rows, func(r Row) bool { return r.Known != nil }))

	tools, models := toolCounts{}, map[string]Spending{}
	for _, r := range rows {
		s.Outcomes[r.Outcome]++
		s.Turns += r.Turns
		s.Calls += r.Calls
		s.FailedCalls += r.FailedCalls
		s.Took = longer(s.Took, r.Took)
		s.Spending = s.Spending.plus(r.Spending)

		tools.merge(r.Tools)
		for _, m := range r.Models {
			// The first row of a model is taken as it is. Added to a zero Spending, whose cost is unknown, its cost
			// would be lost.
			if before, ok := models[m.Model]; ok {
				m.Spending = before.plus(m.Spending)
			}
			models[m.Model] = m.Spending
		}
	}

	for _, name := range slices.Sorted(maps.Keys(models)) {
		s.Models = append(s.Models, ModelSpending{name, models[name]})
	}
	s.Tools = tools.list()
	return s
}

// Group holds the rows with the same value of a key.
type Group struct {
	Value string `json:"value"`
	// Rows are the indexes of the rows, in order.
	Rows []int `json:"rows"`
	Summary
}

// MarshalJSON writes the group as its summary with the value and the rows.
func (g Group) MarshalJSON() ([]byte, error) {
	type plain Summary
	return json.Marshal(struct {
		Value string `json:"value"`
		Rows  []int  `json:"rows"`
		plain
		Took float64 `json:"took_ms"`
	}{g.Value, g.Rows, plain(g.Summary), milliseconds(g.Took)})
}

// GroupBy groups rows by their values of a key (see [Row.Value]), the largest group first. Rows without the key have
// the value "".
func GroupBy(rows []Row, key string) []Group {
	members := map[string][]int{}
	for i, r := range rows {
		value, _ := r.Value(key)
		members[value] = append(members[value], i)
	}

	var groups []Group
	for _, value := range slices.Sorted(maps.Keys(members)) {
		own := make([]Row, 0, len(members[value]))
		for _, i := range members[value] {
			own = append(own, rows[i])
		}
		groups = append(groups, Group{Value: value, Rows: members[value], Summary: Sum(own)})
	}

	// Groups of one size stay in the order of their values.
	slices.SortStableFunc(groups, func(a, b Group) int { return cmp.Compare(len(b.Rows), len(a.Rows)) })
	return groups
}

// Value returns the value of a row under a key, and whether it has one. A key is one of
//
//   - name, outcome, stop, path: the field with the name of the key;
//   - model, tool: the names, joined by ", ";
//   - failure, cause: the text of the failure, with long numbers and identifiers replaced by "#";
//   - anything else: the label with this name.
func (r Row) Value(key string) (value string, ok bool) {
	switch key {
	case "name":
		value = r.Name
	case "outcome":
		value = r.Outcome
	case "stop":
		value = string(r.Stop)
	case "path":
		if r.Path > 0 {
			value = strconv.Itoa(r.Path)
		}

	case "model":
		value = joined(r.Models, func(m ModelSpending) string { return m.Model })
	case "tool":
		value = joined(r.Tools, func(t Tool) string { return t.Name })
	case "failure":
		if r.Failure != nil {
			value = anonymous(r.Failure.Text)
		}
	case "cause":
		if r.Cause != nil {
			value = anonymous(r.Cause.Text)
		}

	default:
		// A label may be "", and is a value all the same.
		value, ok = r.Labels[key]
		return value, ok
	}
	return value, value != ""
}

func joined[T any](list []T, name func(T) string) string {
	var names []string
	for _, x := range list {
		names = append(names, name(x))
	}
	return strings.Join(names, ", ")
}
