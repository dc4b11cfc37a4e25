// Package front has what every front end needs that runs an agent for a client: the saving of steps, and the words for a
// failed run.
package front

import (
	"context"
	"errors"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/executor"
	"github.com/plait-dev/plait/store"
)

// Save returns an executor.Agent.Save that calls own, if it is set, and then appendTo.
func Save(own, appendTo func(context.Context, dag.DAG) error) func(context.Context, dag.DAG) error {
	if own == nil {
		return appendTo
	}
	return func(ctx context.Context, d dag.DAG) error {
		if err := own(ctx, d); err != nil {
			return err
		}
		return appendTo(ctx, d)
	}
}

// Kind returns what a client may know of the error of a run: its kind, in fixed words. The text of an error may hold
// private data.
func Kind(err error) string {
	var failure *api.Error
	var resume *executor.ResumeError
	var conflict *store.ConflictError
	switch {
	case errors.As(err, &failure) && failure.Kind != nil:
		return failure.Kind.Error()
	case errors.As(err, &resume):
		return resume.Kind.Error()
	case errors.As(err, &conflict):
		return "the thread was continued elsewhere"
	case errors.Is(err, executor.ErrRejected):
		return "the message was rejected"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	}
	return "error"
}
