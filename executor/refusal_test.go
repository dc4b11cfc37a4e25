package executor_test

import (
	"bytes"
	"context"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/apitest"
	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/node"
)

// declining is a model that refuses without a text.
type declining struct{}

func (declining) Stream(context.Context, api.Request) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		yield(api.Finish{API: "api", Model: "model-1", Stop: content.StopRefusal, Details: `{"stop_details":{"category":"cyber"}}`}, nil)
	}
}

// TestRefusalWithoutTextIsANode keeps the reason of an empty refusal in the conversation, which stays valid and is
// continued, saved and loaded.
func TestRefusalWithoutTextIsANode(t *testing.T) {
	model := apitest.NewScript(apitest.Say("Yes."))
	d, err := executor.Agent{Provider: declining{}}.Run(context.Background(), dag.New().User("May I?"))
	require.NoError(t, err)

	var refusal node.Message
	for _, n := range d.Nodes() {
		if m, ok := n.Message(); ok && m.Role == content.Assistant {
			refusal = m
		}
	}
	require.Zero(t, refusal.Blocks.Len())
	require.Equal(t, content.StopRefusal, refusal.Answer.Stop)
	require.Equal(t, "model-1", refusal.Answer.Model)
	require.Equal(t, content.JSON(`{"stop_details":{"category":"cyber"}}`), refusal.Answer.Details)
	require.Empty(t, d.Validate())
	require.Contains(t, d.String(), "refusal")

	var saved bytes.Buffer
	require.NoError(t, d.Write(&saved))
	d, err = dag.Read(&saved)
	require.NoError(t, err)
	d, err = executor.Agent{Provider: model}.Run(context.Background(), d.User("And now?"))
	require.NoError(t, err)
	require.Equal(t, "Yes.", d.Text())
}
