// Command anthropic does the work of the peers with the tool runner of github.com/anthropics/anthropic-sdk-go, over a
// transport without a network.
package main

import (
	"context"
	"encoding/json"
	"net/http"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"github.com/plait-dev/plait/bench/internal/peer"
)

func main() {
	peer.Serve(peer.Subject{Name: "Anthropic's tool runner", Version: "v1.84.0", Run: run})
}

type instant struct{}

func (instant) Name() string                              { return "instant" }
func (instant) Description() string                       { return "Does nothing." }
func (instant) InputSchema() sdk.BetaToolInputSchemaParam { return sdk.BetaToolInputSchemaParam{} }

func (instant) Execute(context.Context, json.RawMessage) ([]sdk.BetaToolResultBlockParamContentUnion, error) {
	return []sdk.BetaToolResultBlockParamContentUnion{{OfText: &sdk.BetaTextBlockParam{Text: "ok"}}}, nil
}

func run(ctx context.Context, loop *peer.Loop) error {
	client := sdk.NewClient(option.WithoutEnvironmentDefaults(), option.WithAPIKey("none"), option.WithBaseURL("http://localhost"),
		option.WithHTTPClient(&http.Client{Transport: peer.Anthropic{Loop: loop}}), option.WithMaxRetries(0))
	runner := client.Beta.Messages.NewToolRunner([]sdk.BetaTool{instant{}}, sdk.BetaToolRunnerParams{BetaMessageNewParams: sdk.BetaMessageNewParams{
		Model: "claude-x", MaxTokens: 1000, Messages: []sdk.BetaMessageParam{sdk.NewBetaUserMessage(sdk.NewBetaTextBlock("Go."))},
	}})
	_, err := runner.RunToCompletion(ctx)
	return err
}
