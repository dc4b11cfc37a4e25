package api

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/safetext"
)

// PriceList is a file of prices. Its form is a JSON object; prices are for a million tokens:
//
//	{
//		"date": "2026-11-01",
//		"currency": "USD",
//		"models": {
//			"claude-sonnet-4-5": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75},
//			"my-local-model": {"input": 0, "output": 0}
//		}
//	}
//
// Plait ships no such file, because prices that come with a program are soon out of date, and nobody notices.
type PriceList struct {
	// Date is the day the prices were looked up, at midnight UTC.
	Date time.Time
	// Currency is the currency of the prices, such as "USD".
	Currency string
	// Prices are the prices of the models.
	Prices Prices
}

// maxPriceFile is the size of the largest price file in bytes: a thousand times that of a long one.
const maxPriceFile = 16 << 20

// ReadPrices reads a price file. See [PriceList] for its form:
//
//   - "date", "currency" and "models" are required, and so are "input" and "output" of each model.
//   - A price of 0 is that of a free model: all of its prices must be 0. An unknown cache price is left out.
//   - An unknown member is an error, so that a misspelled price does not count as missing.
//
// Every error has ErrPrice in its chain, apart from those of r. An error about a price is a *[PriceError].
func ReadPrices(r io.Reader) (PriceList, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxPriceFile+1))
	if err != nil {
		return PriceList{}, fmt.Errorf("api: reading prices: %w", err)
	}
	if len(data) > maxPriceFile {
		return PriceList{}, priceFile(fmt.Errorf("it is larger than %d MiB", maxPriceFile>>20))
	}
	if depth := content.JSON(data).Depth(); depth > 3 {
		return PriceList{}, priceFile(errors.New("it is not a price file: it nests too deep"))
	}

	var file struct {
		Date     string                `json:"date"`
		Currency string                `json:"currency"`
		Models   map[string]savedPrice `json:"models"`
	}
	if err := json.Unmarshal(data, &file, json.RejectUnknownMembers(true)); err != nil {
		return PriceList{}, priceFile(err)
	}

	list := PriceList{Currency: safetext.Escape(file.Currency, mostShown), Prices: Prices{}}
	if list.Date, err = time.Parse(time.DateOnly, file.Date); err != nil {
		return PriceList{}, priceFile(fmt.Errorf(`"date" is %s, not a date such as 2026-11-01`, safetext.Quote(file.Date, 100)))
	}
	if list.Currency == "" {
		return PriceList{}, priceFile(errors.New(`"currency" is missing`))
	}
	if len(file.Models) == 0 {
		return PriceList{}, priceFile(errors.New(`"models" is missing or empty`))
	}

	for _, model := range slices.Sorted(maps.Keys(file.Models)) {
		price, err := file.Models[model].price(model)
		if err != nil {
			return PriceList{}, fmt.Errorf("api: price file: %w", err)
		}
		list.Prices[model] = price
	}
	return list, nil
}

// savedPrice is a price in a file. A pointer distinguishes a price of 0 from a missing one.
type savedPrice struct {
	Input      *float64 `json:"input"`
	Output     *float64 `json:"output"`
	CacheRead  *float64 `json:"cache_read"`
	CacheWrite *float64 `json:"cache_write"`
}

// price returns the price, or a *PriceError that names the model.
func (s savedPrice) price(model string) (Price, error) {
	var p Price
	for _, f := range []struct {
		name     string
		from     *float64
		to       *float64
		required bool
	}{
		{"Input", s.Input, &p.Input, true}, {"Output", s.Output, &p.Output, true},
		{"CacheRead", s.CacheRead, &p.CacheRead, false}, {"CacheWrite", s.CacheWrite, &p.CacheWrite, false},
	} {
		switch {
		case f.from != nil:
			*f.to = *f.from
		case f.required:
			return Price{}, &PriceError{Model: model, Field: f.name, Reason: "it is missing"}
		}
	}
	if err := p.check(model); err != nil {
		return Price{}, err
	}

	// In a Price, 0 beside other prices means unknown. So such a 0 in the file is an error.
	for i, from := range []*float64{s.Input, s.Output, s.CacheRead, s.CacheWrite} {
		if from != nil && *from == 0 && p != (Price{}) {
			return Price{}, &PriceError{Model: model, Field: p.fields()[i].name, Reason: "it is 0 beside other prices; leave it out if it is not known"}
		}
	}
	return p, nil
}

func priceFile(err error) error { return fmt.Errorf("api: price file: %w: %w", ErrPrice, err) }
