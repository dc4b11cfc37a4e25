package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/report"
)

// priceList reads the price file, if one is named. Names are the FILEs of the command.
func (s *streams) priceList(names []string, file string) (api.PriceList, error) {
	if err := readOnce(append(slices.Clone(names), file)); err != nil {
		return api.PriceList{}, err
	}
	if file == "" {
		return api.PriceList{}, nil
	}
	return s.prices(file)
}

// prices reads a price file.
func (s *streams) prices(name string) (api.PriceList, error) {
	list, err := within(s, func() (api.PriceList, error) {
		in, err := s.input(name)
		if err != nil {
			return api.PriceList{}, err
		}
		defer in.Close()
		return api.ReadPrices(in)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return list, err // it names the file
	}
	if err != nil {
		return list, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

// readOnce refuses a list of files with standard input twice.
func readOnce(files []string) error {
	if at := slices.Index(files, std); at >= 0 && slices.Contains(files[at+1:], std) {
		return errors.New("only one input can be standard input")
	}
	return nil
}

// money returns a cost for a table, whose other columns and rows show which model has no price.
func money(s report.Spending) string {
	s.Unpriced = nil
	return s.Money()
}
