package gemini

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/batch"
	"github.com/plait-dev/plait/api/internal/idle"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/wire"
)

// driver returns the Gemini Batch API, with the requests in the body: up to 20 MB. See
// ai.google.dev/gemini-api/docs/batch-api. Vertex AI has another one, with files in a bucket.
func (p *provider) driver(o Options) batch.Driver {
	trip := roundtrip.Trip{Explain: explain}
	return batch.Driver{
		API: API, Model: p.model, Requests: 100_000, Bytes: 19 << 20,
		Create: func(ctx context.Context, requests []batch.Line) (id string, err error) {
			err = trip.Step(ctx, API, func(watch *idle.Watch) error {
				made, err := p.ask(watch, &sent{body: batchBody(requests), header: o.Header, batches: true})
				id = made.Name
				return err
			})
			return id, err
		},
		Results: trip.Results(API, func(watch *idle.Watch, id string, keys []string, add func(batch.Line)) error {
			job, err := p.ask(watch, &sent{header: o.Header, job: id})
			if err != nil {
				return err
			}
			return job.results(keys, add)
		}),
	}
}

// ask sends a request about a batch.
func (p *provider) ask(watch *idle.Watch, s *sent) (job, error) {
	client, err := p.connected(watch.Context)
	if err == nil && client.vertex {
		err = &api.Error{Kind: api.ErrInvalidRequest, API: API, Err: errors.New("Options.Batches: Vertex AI has no batches without a bucket")}
	}
	if err != nil {
		return job{}, err
	}
	ctx, cancel := limited(watch.Context, client.timeout)
	defer cancel()
	s.ctx = ctx
	res, err := s.post(client, p.model)
	if err != nil {
		return job{}, err
	}
	defer res.Body.Close()

	text, err := io.ReadAll(wire.BoundedTo(watch.Body(res.Body), 1<<30))
	if err != nil {
		return job{}, cut(err)
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return job{}, newError(res.StatusCode, res.Header, text)
	}
	var j job
	if err := json.Unmarshal(text, &j, jsonx.Lenient); err != nil {
		return job{}, protocol("the response is not a batch: %w", err)
	} else if j.Name == "" {
		return job{}, protocol("the response about a batch does not name it")
	}
	return j, nil
}

// job is a batch. Its results are in one of two places.
type job struct {
	Name     string    `json:"name"`
	Error    jsonx.Raw `json:"error"`
	Response output    `json:"response"`
	Metadata struct {
		State  string `json:"state"`
		Output output `json:"output"`
	} `json:"metadata"`
}

type output struct {
	Responses struct {
		List []inlined `json:"inlinedResponses"`
	} `json:"inlinedResponses"`
}

type inlined struct {
	Response jsonx.Raw         `json:"response"`
	Error    jsonx.Raw         `json:"error"`
	Metadata map[string]string `json:"metadata"`
}

// results adds the results. They are in the order of the requests; their keys, which the API does not always return,
// come first.
func (j job) results(keys []string, add func(batch.Line)) error {
	var whole error
	switch j.Metadata.State {
	case "BATCH_STATE_PENDING", "BATCH_STATE_RUNNING", "BATCH_STATE_UNSPECIFIED", "":
		return batch.ErrRunning
	case "BATCH_STATE_SUCCEEDED":
	case "BATCH_STATE_FAILED":
		whole = rpcError(j.Error)
	case "BATCH_STATE_CANCELLED":
		whole = &api.Error{Kind: batch.ErrCancelled, API: API}
	case "BATCH_STATE_EXPIRED":
		whole = &api.Error{Kind: batch.ErrExpired, API: API}
	default:
		return protocol("the batch has the unknown state %q", j.Metadata.State)
	}

	if whole != nil {
		for _, key := range keys {
			add(batch.Line{Key: key, Err: whole})
		}
		return nil
	}

	list := append(j.Response.Responses.List, j.Metadata.Output.Responses.List...)
	for i, r := range list {
		key, named := r.Metadata["key"]
		switch {
		case !named && len(list) != len(keys):
			return protocol("the batch has %d results for %d requests", len(list), len(keys))
		case !named:
			key = keys[i]
		}
		line := batch.Line{Key: key, Body: r.Response}
		if len(r.Response) == 0 {
			line.Err = rpcError(r.Error)
		}
		add(line)
	}
	return nil
}

// rpcCodes are the types of errors by their number, as google.rpc.Code has them.
var rpcCodes = []string{
	"", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
	"RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE",
	"DATA_LOSS", "UNAUTHENTICATED",
}

// rpcError returns the error of a request in a batch. It has the number of the type in place of its name.
func rpcError(status jsonx.Raw) error {
	var s struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	_ = json.Unmarshal(status, &s, jsonx.Lenient) // an error without its parts is ErrServer
	kind := ""
	if s.Code > 0 && s.Code < len(rpcCodes) {
		kind = rpcCodes[s.Code]
	}
	return newError(http.StatusOK, nil, fmt.Appendf(nil, `{"error":{"status":%q,"message":%s}}`, kind, jsonx.Quote(s.Message)))
}

// batchBody returns the body for creating a batch. It shares the bodies of the requests.
func batchBody(requests []batch.Line) *wire.Parts {
	parts := [][]byte{[]byte(`{"batch":{"displayName":"plait","inputConfig":{"requests":{"requests":[`)}
	for i, r := range requests {
		begin := `,{"request":`
		if i == 0 {
			begin = begin[1:]
		}
		parts = append(parts, []byte(begin), r.Body, []byte(`,"metadata":{"key":"`+r.Key+`"}}`))
	}
	return wire.NewParts(append(parts, []byte("]}}}}"))...)
}
