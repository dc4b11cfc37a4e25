package main

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/dialect"
)

// settings are the flags for the settings that all APIs have. They take precedence over those of an imported request.
type settings struct {
	maxTokens   int
	temperature optional
	effort      string
}

// flags registers the flags.
func (s *settings) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&s.maxTokens, "max-tokens", 0, "the model writes at most `N` tokens in a response")
	f.Var(&s.temperature, "temperature", "the randomness of responses, `N` from 0 to 2")
	f.StringVar(&s.effort, "effort", "", "how much the model thinks: off, auto, low, medium,\nhigh, another `LEVEL` of the provider, or a number\nof tokens")
}

// over returns the options of requests to an API with the settings.
func (s *settings) over(apiName string, o api.Options) (api.Options, error) {
	given := api.Options{MaxTokens: s.maxTokens, Temperature: s.temperature.value, Thinking: api.Thinking(s.effort)}
	if err := given.Check(); err != nil {
		return o, fmt.Errorf("--max-tokens, --temperature or --effort: %w", err)
	}

	// Members of an imported body for the same API would override the flags.
	if o.BodyAPI == "" || o.BodyAPI == apiName {
		o.Body = dialect.WithoutSettings(apiName, o.Body, given)
	}
	return given.Over(o), nil
}

// optional is a number that may be missing.
type optional struct{ value *float64 }

func (o *optional) String() string {
	if o.value == nil {
		return ""
	}
	return strconv.FormatFloat(*o.value, 'g', -1, 64)
}

func (o *optional) Set(s string) error {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return fmt.Errorf("%q is not a number", s)
	}
	o.value = &n
	return nil
}

func (o *optional) Type() string { return "float" }
