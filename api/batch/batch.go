package batch

import (
	"context"
	"errors"
	"iter"
	"time"
)

// The kinds of errors of batches, for errors.Is. Package api has the others.
var (
	// ErrExpired: the provider did not get to the request in time.
	ErrExpired = errors.New("the batch expired before the request")
	// ErrCancelled: the batch was cancelled before the request.
	ErrCancelled = errors.New("the batch was cancelled before the request")
	// ErrNoResult: the results of a batch have no single line for the request.
	ErrNoResult = errors.New("the batch has no result for the request")
	// ErrInDoubt: a batch may have been created.
	ErrInDoubt = errors.New("a batch may have been created")
	// ErrFile: the file of the batches cannot be used.
	ErrFile = errors.New("invalid file of batches")

	// ErrRunning is returned by Driver.Results if the batch has not ended.
	ErrRunning = errors.New("the batch has not ended")
	// ErrNotCreated is in the chain of an error of Driver.Create if the batch surely does not exist.
	ErrNotCreated = errors.New("the batch was not created")
)

// Options are the options of [Batches].
type Options struct {
	// Gather is how long a new batch waits for another request, after each one. Defaults to 1 second.
	Gather time.Duration
	// Poll is the time between two looks at a batch. Defaults to 1 minute.
	Poll time.Duration
	// Requests limits the requests of a batch. Defaults to the provider's limit.
	Requests int
	// Report is called when a batch was created, and when its results are there. Defaults to nothing.
	Report func(Report)
}

// Report describes a batch.
type Report struct {
	// ID is the provider's ID of the batch.
	ID string
	// Requests is the number of its requests, and Failed that of the ones without a response.
	Requests, Failed int
	// Unknown is the number of results that belong to no request of the batch. They are ignored.
	Unknown int
	// Ended reports that the results are there.
	Ended bool
}

// Line is a request of a batch, or its result.
type Line struct {
	// Key names the request in its batch: at most 64 letters, digits and hyphens.
	Key string
	// Body is the body of the request, or that of a successful response.
	Body []byte
	// Err is the error of a failed request.
	Err error
}

// Driver is a provider's batch API, for the author of a provider. The provider's Stream passes it to [Batches.Do].
type Driver struct {
	// API names the API, and Model the model. A file is for one model.
	API, Model string
	// Requests and Bytes limit a batch.
	Requests, Bytes int
	// Create makes a batch of requests and returns its ID.
	Create func(ctx context.Context, requests []Line) (id string, err error)
	// Results yields the results of a batch, in any order, and an error last if they are not whole: ErrRunning, or an
	// *api.Error. Keys are those of its requests, in order.
	Results func(ctx context.Context, id string, keys []string) iter.Seq2[Line, error]
}
