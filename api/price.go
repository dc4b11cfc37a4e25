package api

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/plait-dev/plait/content"
)

// Prices is what models cost, by their names, in a currency of the program's choice. Plait knows no prices: they change, and differ
// by contract. Whoever reads a table must not change it at the same time.
type Prices map[string]Price

// Price is what a million tokens of one model cost. The zero value is a model that costs nothing.
type Price struct {
	// Input is for tokens of the request that no cache had.
	Input float64
	// Output is for tokens that the model wrote, thinking included.
	Output float64
	// CacheRead is for tokens of the request that a prompt cache had. Defaults to Input.
	CacheRead float64
	// CacheWrite is for tokens of the request that a prompt cache was given. Defaults to Input.
	CacheWrite float64
}

// Cost returns what an answer costs. Model is the name that the provider gave: Finish.Model, or node.Answer.Model. A model without
// a price is not known: then the cost is 0, which is no price.
func (p Prices) Cost(model string, u content.Usage) (cost float64, known bool) {
	price, known := p.Of(model)
	return price.Cost(u), known
}

// Of returns the price of a model: that of its name; else, where the name is a resource's ("models/gemini-2.5-pro"), that of what
// stands after "models/"; else, where it names a snapshot, that of the name without its end, which is one of
//
//	-20250929  @20250929  -2025-08-07  -001  -latest
//
// Nothing else is guessed: "gpt-5" is the price of "gpt-5-2025-08-07", and not that of "gpt-5-mini".
func (p Prices) Of(model string) (price Price, known bool) {
	if price, known = p[model]; known {
		return price, true
	}
	if at := strings.LastIndex(model, "models/"); at >= 0 {
		if model = model[at+len("models/"):]; model == "" {
			return Price{}, false
		}
		if price, known = p[model]; known {
			return price, true
		}
	}
	if end := snapshot.FindStringIndex(model); end != nil && end[0] > 0 {
		price, known = p[model[:end[0]]]
	}
	return price, known
}

var snapshot = regexp.MustCompile(`(?:[-@]20\d{6}|-20\d\d-\d\d-\d\d|-0\d\d|-latest)$`)

// Cost returns what the tokens cost.
func (p Price) Cost(u content.Usage) float64 {
	read, write := cmp.Or(p.CacheRead, p.Input), cmp.Or(p.CacheWrite, p.Input)
	return (float64(u.Input)*p.Input + float64(u.Output)*p.Output + float64(u.CacheRead)*read + float64(u.CacheWrite)*write) / 1e6
}
