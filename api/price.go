package api

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/pattern"
)

// errPrice is in the chain of every error about an invalid price or price file.
var errPrice = errors.New("invalid price")

// Prices maps the names of models to their prices, in a currency of the program's choice. Plait has no prices of its
// own: they change, and differ by contract. A program sets them, or reads them from a file of its own with
// [ReadPrices]. Prices must not be changed while they are in use.
//
// A missing model has an unknown price. A free model is in the map with the zero [Price].
type Prices map[string]Price

// Price is the price of a million tokens of one model. The zero value is a free model. In any other price, a field that
// is zero is unknown.
type Price struct {
	// Input is for tokens of the request neither read from nor written to a cache.
	Input float64
	// Output is for tokens written by the model, thinking included.
	Output float64
	// CacheRead is for tokens of the request read from a prompt cache. Defaults to unknown: they are estimated at
	// Input, never too low.
	CacheRead float64
	// CacheWrite is for tokens of the request written to a prompt cache. Defaults to unknown: they are estimated at
	// Input. If the API charges more for writing, the estimate is too low.
	CacheWrite float64
	// CacheWriteLong is for those of them written for longer, for an hour at Anthropic. Defaults to unknown: they are
	// estimated like the others, too low.
	CacheWriteLong float64
}

// Check returns why p cannot be used: an error if a price is negative, infinite or NaN. It reports the
// first such price, in the order of the models' names.
func (p Prices) Check() error {
	if len(p) == 0 {
		return nil // the usual case, at each tool phase of a program: sorting nothing takes two allocations
	}
	for _, model := range slices.Sorted(maps.Keys(p)) {
		if err := p[model].check(model); err != nil {
			return err
		}
	}
	return nil
}

// Times returns the prices multiplied by a factor: 0.5 for the batches of Anthropic, OpenAI and Gemini (package batch).
func (p Prices) Times(factor float64) Prices {
	multiplied := make(Prices, len(p))
	for model, price := range p {
		multiplied[model] = Price{
			Input: price.Input * factor, Output: price.Output * factor, CacheRead: price.CacheRead * factor,
			CacheWrite: price.CacheWrite * factor, CacheWriteLong: price.CacheWriteLong * factor,
		}
	}
	return multiplied
}

func (p Price) check(model string) error {
	for _, f := range p.fields() {
		reason := ""
		switch {
		case math.IsNaN(f.value) || math.IsInf(f.value, 0):
			reason = "it is not finite"
		case f.value < 0:
			reason = "it is negative"
		}
		if reason != "" {
			return badPrice(model, f.name, f.value, reason)
		}
	}
	return nil
}

// badPrice returns an error about a field of a price.
func badPrice(model, field string, value float64, reason string) error {
	return fmt.Errorf("%w: %s of model %q is %v: %s", errPrice, field, model, value, reason)
}

// priceField is a field of a Price.
type priceField struct {
	name  string
	value float64
}

func (p Price) fields() []priceField {
	return []priceField{
		{"Input", p.Input}, {"Output", p.Output}, {"CacheRead", p.CacheRead}, {"CacheWrite", p.CacheWrite},
		{"CacheWriteLong", p.CacheWriteLong},
	}
}

// Cost returns the cost of a response. Model is the name returned by the provider: Finish.Model, or node.Answer.Model.
// Known is false, and the cost 0, if the model has no price, or none for its input or output although there are such
// tokens. A known cost may be an estimate; see [Price.Cost].
func (p Prices) Cost(model string, u content.Usage) (cost float64, known bool) {
	price, known := p.Of(model)
	sum := price.sum(u)
	if !known || sum.missing {
		return 0, false
	}
	return sum.cost, true
}

// Of returns the price of a model. It looks up, in this order,
//
//   - the name itself,
//   - for a resource ("models/gemini-2.5-pro"), the name after "models/",
//   - for a snapshot, the name without its suffix: one of -20250929, @20250929, -2025-08-07, -001 and -latest.
//
// Nothing else is guessed: the price of "gpt-5" is used for "gpt-5-2025-08-07", and not for "gpt-5-mini". A price
// refused by [Prices.Check] is unknown.
func (p Prices) Of(model string) (price Price, known bool) {
	name, found := p.name(model)
	if !found {
		return Price{}, false
	}
	if price = p[name]; price.check(name) != nil {
		return Price{}, false
	}
	return price, true
}

// name returns the key of the price of a model.
func (p Prices) name(model string) (name string, found bool) {
	if _, found = p[model]; found {
		return model, true
	}

	// A resource may be longer, such as "publishers/google/models/gemini-2.5-pro".
	if i := strings.LastIndex(model, "models/"); i >= 0 {
		if model = model[i+len("models/"):]; model == "" {
			return "", false
		}
		if _, found = p[model]; found {
			return model, true
		}
	}

	// A name that is nothing but a suffix is not a snapshot.
	if end := snapshot().FindStringIndex(model); end != nil && end[0] > 0 {
		model = model[:end[0]]
		_, found = p[model]
	}
	return model, found
}

var snapshot = pattern.Of(`(?:[-@]20\d{6}|-20\d\d-\d\d-\d\d|-0\d\d|-latest)$`)

// Cost returns the cost of the tokens. Complete is false if some of them have no price of their own: tokens of the
// cache are then estimated at Input, others are not counted. The cost is finite and not negative: a count below zero
// costs nothing.
func (p Price) Cost(u content.Usage) (cost float64, complete bool) {
	sum := p.sum(u)
	return sum.cost, !sum.estimated && !sum.missing
}

// sum is a cost under construction.
type sum struct {
	cost      float64
	estimated bool // some tokens of the cache are counted at the price of Input
	missing   bool // some tokens have no price and are not counted
}

// sum adds up the cost of the tokens.
func (p Price) sum(u content.Usage) (s sum) {
	// A price of 0 is unknown, unless the model is free.
	free := p == Price{}
	add := func(tokens int64, price float64) {
		if tokens > 0 {
			s.cost += float64(tokens) / 1e6 * price
			s.missing = s.missing || price == 0 && !free
		}
	}
	addCached := func(tokens int64, price, estimate float64) {
		if price == 0 {
			price = estimate
			s.estimated = s.estimated || tokens > 0 && !free
		}
		add(tokens, price)
	}

	add(u.Input, p.Input)
	add(u.Output, p.Output)
	addCached(u.CacheRead, p.CacheRead, p.Input)
	long := min(max(u.CacheWriteLong, 0), max(u.CacheWrite, 0))
	addCached(u.CacheWrite-long, p.CacheWrite, p.Input)
	addCached(long, p.CacheWriteLong, cmp.Or(p.CacheWrite, p.Input))

	s.cost = min(s.cost, math.MaxFloat64) // the sum may overflow to infinity
	return s
}
