package api

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/safetext"
)

// PriceList is a file of prices. Its form is a JSON object; prices are for a million tokens:
//
//	{
//		"date": "2026-11-01",
//		"currency": "USD",
//		"models": {
//			"claude-sonnet-4-5": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75, "cache_write_long": 6},
//			"my-local-model": {"input": 0, "output": 0}
//		}
//	}
//
// Plait ships no such file: prices shipped with a program are soon out of date, and nobody notices.
type PriceList struct {
	// Date is the day the prices were looked up, at midnight UTC.
	Date time.Time
	// Currency is the currency of the prices, such as "USD".
	Currency string
	// Prices are the prices of the models.
	Prices Prices
}

// priceForm shows the form of a price file, for errors about its members.
const priceForm = `it has the form {"date": "2026-11-01", "currency": "USD", "models": {"NAME": {"input": 3, "output": 15}}}`

// maxPriceFile limits the size of a price file, in bytes. A long one is a thousand times smaller.
const maxPriceFile = 16 << 20

// ReadPrices reads a price file. See [PriceList] for its form:
//
//   - "date", "currency" and "models" are required, and so are "input" and "output" of each model.
//   - A price of 0 means a free model: all of its prices must be 0. An unknown cache price is left out.
//   - An unknown member is an error, so that a misspelled price does not count as missing.
//
// An error about a price names its model.
func ReadPrices(r io.Reader) (PriceList, error) {
	// One byte beyond the limit shows that the file is too large.
	data, err := io.ReadAll(io.LimitReader(r, maxPriceFile+1))
	if err != nil {
		return PriceList{}, fmt.Errorf("api: reading prices: %w", err)
	}
	if len(data) > maxPriceFile {
		return PriceList{}, priceFile(fmt.Errorf("it is larger than %d MiB", maxPriceFile>>20))
	}

	file := jsonx.Read(content.JSON(data), 3)
	file.Only("date", "currency", "models")
	date, currency, models := file.Text("date"), file.Text("currency"), file.Object("models")
	if err := file.Err(); err != nil {
		return PriceList{}, priceFile(fmt.Errorf("%w; %s", err, priceForm))
	}

	list := PriceList{Currency: safetext.Escape(currency, maxShown), Prices: Prices{}}
	if list.Date, err = time.Parse(time.DateOnly, date); err != nil {
		return PriceList{}, priceFile(fmt.Errorf(`"date" is %s, not a date such as 2026-11-01`, safetext.Quote(date, 100)))
	}
	if list.Currency == "" {
		return PriceList{}, priceFile(errors.New(`"currency" is empty`))
	}
	if len(models.Members()) == 0 {
		return PriceList{}, priceFile(errors.New(`"models" is empty; ` + priceForm))
	}

	for model, saved := range models.Named() {
		if list.Prices[model], err = readPrice(model, saved); err != nil {
			break
		}
	}

	// A price other than a number is an error of the file, and counts as 0 in readPrice.
	if err := file.Err(); err != nil {
		return PriceList{}, priceFile(err)
	}
	if err != nil {
		return PriceList{}, fmt.Errorf("api: price file: %w", err)
	}
	return list, nil
}

// readPrice reads the price of a model, or returns an error with the model's name.
func readPrice(model string, saved jsonx.Reader) (Price, error) {
	saved.Only("input", "output", "cache_read", "cache_write", "cache_write_long")

	var p Price
	known := [5]bool{}
	for i, f := range []struct {
		name, member string
		to           *float64
		required     bool
	}{
		{"Input", "input", &p.Input, true}, {"Output", "output", &p.Output, true},
		{"CacheRead", "cache_read", &p.CacheRead, false}, {"CacheWrite", "cache_write", &p.CacheWrite, false},
		{"CacheWriteLong", "cache_write_long", &p.CacheWriteLong, false},
	} {
		value := saved.OptValue(f.member)
		known[i] = value != "" && value != "null"
		switch {
		case known[i]:
			*f.to = saved.Number(f.member)
		case f.required:
			return Price{}, badPrice(model, f.name, 0, "it is missing")
		}
	}

	// A missing cache price is 0: unknown.
	if err := p.check(model); err != nil {
		return Price{}, err
	}

	// In a Price, 0 beside other prices means unknown. So such a 0 in the file is an error.
	for i, f := range p.fields() {
		if known[i] && f.value == 0 && p != (Price{}) {
			return Price{}, badPrice(model, f.name, 0, "it is 0 beside other prices; leave it out if it is not known")
		}
	}
	return p, nil
}

// priceFile returns err as an error of the file. It cleans the path of a member, because it has names from the file.
func priceFile(err error) error { return fmt.Errorf("api: price file: %w: %w", errPrice, err) }
