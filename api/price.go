package api

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/plait-dev/plait/content"
)

// ErrPrice is in the chain of every error about a price or a price file that cannot be used.
var ErrPrice = errors.New("invalid price")

// PriceError reports a price that is no price.
type PriceError struct {
	// Model is the name that the price stands under.
	Model string
	// Field is the field of [Price]: "Input", "Output", "CacheRead" or "CacheWrite".
	Field string
	// Value is what it holds.
	Value float64
	// Reason is what is wrong with it.
	Reason string
}

// Error names the model, the field and the value.
func (e *PriceError) Error() string {
	return fmt.Sprintf("%v: %s of model %q is %v: %s", ErrPrice, e.Field, e.Model, e.Value, e.Reason)
}

// Unwrap returns ErrPrice.
func (e *PriceError) Unwrap() error { return ErrPrice }

// Prices is what models cost, by their names, in a currency of the program's choice. Plait has no prices of its own: they change, and
// differ by contract. A program sets them, or reads them from a file of its own with [ReadPrices]. Prices must not be changed while
// they are in use.
//
// A model that is not in the list has no known price. That is not the same as a free model, which is in the list with the zero [Price].
type Prices map[string]Price

// Price is what a million tokens of one model cost. The zero value is a free model. In any other price, a field that is zero is not
// known.
type Price struct {
	// Input is for tokens of the request that were neither read from nor written to a cache.
	Input float64
	// Output is for tokens that the model wrote, thinking included.
	Output float64
	// CacheRead is for tokens of the request that were read from a prompt cache. Defaults to not known: they are estimated at Input,
	// which is never too little.
	CacheRead float64
	// CacheWrite is for tokens of the request that were written to a prompt cache. Defaults to not known: they are estimated at
	// Input, which is too little for an API that charges more for writing.
	CacheWrite float64
}

// Check returns why p cannot be used: a *[PriceError] if a price is negative, infinite or NaN. It reports the first such price, in
// the order of the models' names.
func (p Prices) Check() error {
	for _, model := range slices.Sorted(maps.Keys(p)) {
		if err := p[model].check(model); err != nil {
			return err
		}
	}
	return nil
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
			return &PriceError{Model: model, Field: f.name, Value: f.value, Reason: reason}
		}
	}
	return nil
}

// priceField is a field of a Price.
type priceField struct {
	name  string
	value float64
}

func (p Price) fields() []priceField {
	return []priceField{
		{"Input", p.Input}, {"Output", p.Output}, {"CacheRead", p.CacheRead}, {"CacheWrite", p.CacheWrite},
	}
}

// Cost returns what a response costs. Model is the name that the provider returned: Finish.Model, or node.Answer.Model. If known is
// false, there is no price for the model, or none for its input or its output of which there are tokens; the cost is 0 then. A known
// cost may be an estimate; [Price.Cost] reports that.
func (p Prices) Cost(model string, u content.Usage) (cost float64, known bool) {
	price, known := p.Of(model)
	sum := price.sum(u)
	if !known || sum.missing {
		return 0, false
	}
	return sum.cost, true
}

// Of returns the price of a model: that of its name; else, where the name is a resource's ("models/gemini-2.5-pro"), that of what
// stands after "models/"; else, where it names a snapshot, that of the name without its end, which is one of
//
//	-20250929  @20250929  -2025-08-07  -001  -latest
//
// Nothing else is guessed: "gpt-5" is the price of "gpt-5-2025-08-07", and not that of "gpt-5-mini". A price that [Prices.Check]
// refuses is not known.
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

// name returns the name that the price of a model stands under.
func (p Prices) name(model string) (name string, found bool) {
	if _, found = p[model]; found {
		return model, true
	}

	if at := strings.LastIndex(model, "models/"); at >= 0 {
		if model = model[at+len("models/"):]; model == "" {
			return "", false
		}
		if _, found = p[model]; found {
			return model, true
		}
	}

	if end := snapshot.FindStringIndex(model); end != nil && end[0] > 0 {
		model = model[:end[0]]
		_, found = p[model]
	}
	return model, found
}

var snapshot = regexp.MustCompile(`(?:[-@]20\d{6}|-20\d\d-\d\d-\d\d|-0\d\d|-latest)$`)

// Cost returns what the tokens cost. If complete is false, some of them have no price of their own: those of the cache are
// estimated at Input, and others are left out. The cost is finite and not negative: a count below zero costs nothing.
func (p Price) Cost(u content.Usage) (cost float64, complete bool) {
	sum := p.sum(u)
	return sum.cost, !sum.estimated && !sum.missing
}

// sum is a cost under construction.
type sum struct {
	cost      float64
	estimated bool // some tokens of the cache are counted at the price of others
	missing   bool // some tokens are not counted
}

func (p Price) sum(u content.Usage) (s sum) {
	free := p == Price{}
	add := func(tokens int64, price float64) {
		if tokens > 0 {
			s.cost += float64(tokens) / 1e6 * price
			s.missing = s.missing || price == 0 && !free
		}
	}
	addCached := func(tokens int64, price float64) {
		if price == 0 {
			price = p.Input
			s.estimated = s.estimated || tokens > 0 && !free
		}
		add(tokens, price)
	}

	add(u.Input, p.Input)
	add(u.Output, p.Output)
	addCached(u.CacheRead, p.CacheRead)
	addCached(u.CacheWrite, p.CacheWrite)

	s.cost = min(s.cost, math.MaxFloat64)
	return s
}
