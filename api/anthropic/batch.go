package anthropic

import (
	"context"
	"io"
	"net/http"
	"net/url"

	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/api"
	"github.com/plait-dev/plait/api/batch"
	"github.com/plait-dev/plait/api/internal/idle"
	"github.com/plait-dev/plait/api/internal/roundtrip"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/wire"
)

const batches = "v1/messages/batches"

// driver returns the Message Batches API. See platform.claude.com/docs/en/build-with-claude/batch-processing.
func (p *provider) driver(o Options) batch.Driver {
	trip := roundtrip.Trip{Explain: explain}
	return batch.Driver{
		API: API, Model: p.model, Requests: 100_000, Bytes: 256 << 20,
		Create: func(ctx context.Context, requests []batch.Line) (id string, err error) {
			err = trip.Step(ctx, API, func(watch *idle.Watch) error {
				res, err := p.send(watch.Context, batches, batchBody(requests), o)
				if err != nil {
					return err
				}
				id, _, err = batchState(watch, res)
				return err
			})
			return id, err
		},
		Results: trip.Results(API, func(watch *idle.Watch, id string, _ []string, add func(batch.Line)) error {
			path := batches + "/" + url.PathEscape(id)
			res, err := p.fetch(watch.Context, path, o)
			if err != nil {
				return err
			}
			_, state, err := batchState(watch, res)
			if err == nil && state != "ended" {
				err = batch.ErrRunning
			}
			if err != nil {
				return err
			}

			res, err = p.fetch(watch.Context, path+"/results", o)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			return roundtrip.Lines(API, wire.BoundedTo(watch.Body(res.Body), roundtrip.MaxResults), func(text []byte) error {
				line, err := batchLine(text)
				add(line)
				return err
			})
		}),
	}
}

// batchBody returns the body for creating a batch. It shares the bodies of the requests.
func batchBody(requests []batch.Line) *wire.Parts {
	parts := [][]byte{[]byte(`{"requests":[`)}
	for i, r := range requests {
		begin := `,{"custom_id":"` + r.Key + `","params":`
		if i == 0 {
			begin = begin[1:]
		}
		parts = append(parts, []byte(begin), r.Body, []byte("}"))
	}
	return wire.NewParts(append(parts, []byte("]}"))...)
}

// batchState reads a response about a batch.
func batchState(watch *idle.Watch, res *http.Response) (id, state string, err error) {
	defer res.Body.Close()
	text, err := io.ReadAll(wire.Bounded(watch.Body(res.Body)))
	if err != nil {
		return "", "", roundtrip.Cut(API, err)
	}
	var b struct {
		ID     string `json:"id"`
		Status string `json:"processing_status"`
	}
	if err := json.Unmarshal(text, &b, jsonx.Lenient); err != nil {
		return "", "", protocol("the response is not a batch: %w", err)
	} else if b.ID == "" {
		return "", "", protocol("the response about a batch does not name it")
	}
	return b.ID, b.Status, nil
}

// batchLine reads a line of the results.
func batchLine(text []byte) (batch.Line, error) {
	var r struct {
		ID     string `json:"custom_id"`
		Result struct {
			Type    string    `json:"type"`
			Message jsonx.Raw `json:"message"`
			Error   jsonx.Raw `json:"error"`
		} `json:"result"`
	}
	if err := json.Unmarshal(text, &r, jsonx.Lenient); err != nil {
		return batch.Line{}, protocol("a line of the results: %w", err)
	}

	line := batch.Line{Key: r.ID}
	switch r.Result.Type {
	case "succeeded":
		line.Body = r.Result.Message
	case "errored":
		line.Err = newError(http.StatusOK, nil, r.Result.Error)
	case "canceled":
		line.Err = &api.Error{Kind: batch.ErrCancelled, API: API}
	case "expired":
		line.Err = &api.Error{Kind: batch.ErrExpired, API: API}
	default:
		line.Err = protocol("the result of a request has the unknown type %q", r.Result.Type)
	}
	return line, nil
}
