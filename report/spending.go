package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/content"
)

// Spending is a sum of responses.
type Spending struct {
	Responses int           `json:"responses"`
	Usage     content.Usage `json:"usage"`
	// Uncounted is the number of responses without a token count: their tokens and their cost are unknown.
	Uncounted int `json:"uncounted,omitempty"`
	// Cost is nil if it is unknown, even in part. Known is the known part, or nil without prices.
	Cost  *float64 `json:"cost"`
	Known *float64 `json:"known_cost,omitempty"`
	// Unpriced are the models without a price, if others may have one: they are why the cost is unknown. "" is a model
	// without a name.
	Unpriced []string `json:"unpriced,omitempty"`
	// Estimated reports that some tokens have no price of their own and are estimated.
	Estimated bool `json:"estimated,omitempty"`
}

// ModelSpending sums up the responses of one model.
type ModelSpending struct {
	// Model is the name that the provider returned, or "" if it returned none.
	Model string `json:"model"`
	Spending
}

// nothing returns the sum of no responses.
func nothing(priced bool) (s Spending) {
	if priced {
		s.Cost, s.Known = new(float64), new(float64)
	}
	return s
}

// plus returns the sum of s and t. One unknown cost makes the sum unknown. The sum stays finite.
func (s Spending) plus(t Spending) Spending {
	s.Responses += t.Responses
	s.Uncounted += t.Uncounted
	s.Usage = s.Usage.Plus(t.Usage)
	s.Estimated = s.Estimated || t.Estimated
	s.Cost = sum(s.Cost, t.Cost)
	for _, model := range t.Unpriced {
		if i, have := slices.BinarySearch(s.Unpriced, model); !have {
			s.Unpriced = slices.Insert(slices.Clone(s.Unpriced), i, model)
		}
	}
	// An unknown part adds nothing to the known cost.
	if s.Known != nil && t.Known != nil {
		s.Known = sum(s.Known, t.Known)
	}
	return s
}

// sum returns a + b, or nil if either is unknown.
func sum(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	total := min(*a+*b, math.MaxFloat64)
	return &total
}

// Money returns the cost as text: exact, estimated, at least the known part, or unknown. It names the models without a
// price.
func (s Spending) Money() string {
	why := ""
	if len(s.Unpriced) > 0 {
		why = fmt.Sprintf(" (no price for %q", s.Unpriced[0])
		if more := len(s.Unpriced) - 1; more > 0 {
			why += fmt.Sprintf(" and %d more", more)
		}
		why += ")"
	}
	switch {
	case s.Cost == nil && (s.Known == nil || *s.Known == 0):
		return "unknown" + why
	case s.Cost == nil:
		return "at least " + amount(*s.Known) + why
	case s.Estimated:
		return "about " + amount(*s.Cost)
	}
	return amount(*s.Cost)
}

func amount(cost float64) string { return strconv.FormatFloat(cost, 'f', 4, 64) }

// Costs adds up responses by model. The zero value has no prices.
type Costs struct {
	// Prices are the prices of the models; nil for none.
	Prices api.Prices

	models map[string]Spending
}

// Add adds a response.
func (c *Costs) Add(model string, u content.Usage) {
	if c.models == nil {
		c.models = map[string]Spending{}
	}
	before, ok := c.models[model]
	if !ok {
		before = nothing(c.Prices != nil)
	}
	c.models[model] = before.plus(c.one(model, u))
}

// one returns the sum of a single response.
func (c *Costs) one(model string, u content.Usage) Spending {
	s := Spending{Responses: 1, Usage: u}
	if c.Prices != nil {
		s.Known = new(float64)
	}
	if u == (content.Usage{}) {
		s.Uncounted = 1
		return s
	}

	price, known := c.Prices.Of(model)
	if !known {
		if c.Prices != nil {
			s.Unpriced = []string{model}
		}
		return s
	}
	cost, complete := price.Cost(u)
	s.Known, s.Estimated = &cost, !complete

	// Of an incomplete usage, more tokens were paid for than are counted, so only a part of the cost is known.
	if !u.Incomplete {
		s.Cost = &cost
	}
	return s
}

// List returns the sums of the models, in the order of their names, and of all. The list is not nil.
func (c *Costs) List() (models []ModelSpending, total Spending) {
	models, total = []ModelSpending{}, nothing(c.Prices != nil)
	for _, name := range slices.Sorted(maps.Keys(c.models)) {
		models = append(models, ModelSpending{name, c.models[name]})
		total = total.plus(c.models[name])
	}
	return models, total
}
