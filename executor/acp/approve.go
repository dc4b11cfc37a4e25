package acp

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/store"
)

// permissions are the answers that the client's user can choose.
var permissions = []sdk.PermissionOption{
	{OptionId: "allow", Kind: sdk.PermissionOptionKindAllowOnce, Name: "Allow"},
	{OptionId: "always", Kind: sdk.PermissionOptionKindAllowAlways, Name: "Always allow this tool"},
	{OptionId: "reject", Kind: sdk.PermissionOptionKindRejectOnce, Name: "Reject"},
	{OptionId: "never", Kind: sdk.PermissionOptionKindRejectAlways, Name: "Always reject this tool"},
}

// ask asks the client's user about the calls that need approval, in call order. It returns an error if the user cancels,
// or if calls wait for results from elsewhere.
func (t *turn) ask(ctx context.Context, d dag.DAG) (replies []executor.Reply, err error) {
	for _, p := range d.Pending() {
		if !p.Approval {
			continue
		}
		allowed, err := t.allows(ctx, p)
		if err != nil {
			return nil, err
		}
		reply := executor.Declined(p, "")
		if allowed {
			reply = executor.Approved(p)
		}
		reply.By = safetext.UTF8(safetext.Cut(t.client.Info.Name, 100))
		replies = append(replies, reply)
	}
	if len(replies) == 0 {
		return nil, errDeferred
	}
	return replies, nil
}

// errDeferred ends a prompt whose calls are executed elsewhere.
var errDeferred = errors.New("acp: the agent waits for the results of deferred tools")

// allows returns the user's decision about a call. Only a clear approval approves it.
func (t *turn) allows(ctx context.Context, p dag.Pending) (bool, error) {
	t.mu.Lock()
	decided, always := t.always[p.Call.Name]
	t.mu.Unlock()
	if always {
		return decided, nil
	}

	// The call may be one that the client has not seen: hooks may have changed it, or a sub-agent has made it.
	view := t.view(p.Call)
	title := view.Title
	if p.Note != "" {
		title = fmt.Sprintf("%s: %s", title, p.Note)
	}
	response, err := call[sdk.RequestPermissionResponse](ctx, t.conn, sdk.ClientMethodSessionRequestPermission,
		sdk.RequestPermissionRequest{
			SessionId: sdk.SessionId(t.id), Options: permissions,
			ToolCall: sdk.ToolCallUpdate{
				ToolCallId: callID(p.Key), Title: &title, Kind: &view.Kind, Status: sdk.Ptr(sdk.ToolCallStatusPending),
				Locations: view.Locations, Content: view.Content, RawInput: rawOf(p.Call.Input),
			},
		})
	var refused *sdk.RequestError
	switch selected := response.Outcome.Selected; {
	case errors.As(err, &refused):
		return false, nil // the client cannot ask
	case err != nil:
		return false, err
	case selected == nil:
		t.cancel(errCancelled)
		return false, errCancelled
	default:
		return t.decide(p.Call.Name, selected.OptionId), nil
	}
}

// decide remembers an answer that is for all calls of a tool, and reports whether it approves.
func (t *turn) decide(tool string, answer sdk.PermissionOptionId) bool {
	allowed := answer == "allow" || answer == "always"
	if answer == "always" || answer == "never" {
		t.mu.Lock()
		t.always[tool] = allowed
		t.mu.Unlock()
	}
	return allowed
}

// decline closes the calls of a pause that nobody answers, unless the client is gone: then they wait in the store. It
// returns the reason, and an error of the store.
func (t *turn) decline(ctx context.Context, c *store.Conversation, d dag.DAG, reason error) error {
	if !errors.Is(reason, errCancelled) && !errors.Is(context.Cause(ctx), errCancelled) {
		return reason
	}
	return errors.Join(reason, c.Append(context.WithoutCancel(ctx), d.CloseTools()))
}
