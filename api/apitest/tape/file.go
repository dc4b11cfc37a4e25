package tape

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
)

// tapeVersion is the version of the file format.
const tapeVersion = 1

// tapeFile is the content of a tape's file.
type tapeFile struct {
	Version    int         `json:"plait_tape"`
	Recordings []recording `json:"recordings"`
}

type recording struct {
	Request  tapedRequest  `json:"request"`
	Response tapedResponse `json:"response"`
}

type tapedRequest struct {
	Method string      `json:"method"`
	URL    string      `json:"url"`
	Header http.Header `json:"header,omitempty"`
	Body   tapedBody   `json:"body,omitzero"`
}

type tapedResponse struct {
	Status int         `json:"status"`
	Header http.Header `json:"header,omitempty"`
	Body   tapedBody   `json:"body,omitzero"`
	// Cut reports that the body breaks off here.
	Cut bool `json:"cut,omitzero"`
}

// tapedBody is a body in its most readable form. At most one member is set.
type tapedBody struct {
	// JSON is set if the body is exactly this value without white space.
	JSON jsontext.Value `json:"json,omitzero"`
	// Lines is a body of text, each line with its line end.
	Lines []string `json:"lines,omitempty"`
	// Base64 is any other body.
	Base64 string `json:"base64,omitzero"`
}

// bodyForm returns the form for a body. A request's body is compared as JSON and need not be kept byte for byte.
func bodyForm(body []byte, exact bool) tapedBody {
	value := jsontext.Value(bytes.Clone(body))
	switch {
	case len(body) == 0:
		return tapedBody{}
	case jsonx.Depth(content.JSON(body)) < 1000 && value.IsValid() && value.Compact(asWritten...) == nil &&
		(!exact || bytes.Equal(value, body)):
		return tapedBody{JSON: value}
	case utf8.Valid(body):
		return tapedBody{
			Lines: slices.Collect(strings.SplitAfterSeq(strings.TrimSuffix(string(body), "\n"), "\n")),
		}.ended(body)
	}
	return tapedBody{Base64: base64.StdEncoding.EncodeToString(body)}
}

// ended adds the line end to the last line if the body has one there. Splitting at every line end would add an empty
// line.
func (b tapedBody) ended(body []byte) tapedBody {
	if body[len(body)-1] == '\n' {
		b.Lines[len(b.Lines)-1] += "\n"
	}
	return b
}

func (b tapedBody) bytes() ([]byte, error) {
	switch {
	case b.JSON != nil:
		value := b.JSON.Clone()
		err := value.Compact(asWritten...)
		return value, err
	case b.Lines != nil:
		return []byte(strings.Join(b.Lines, "")), nil
	}
	return base64.StdEncoding.DecodeString(b.Base64)
}

// asWritten keeps strings and numbers byte for byte.
var asWritten = []jsontext.Options{jsontext.PreserveRawStrings(true), jsontext.CanonicalizeRawInts(false),
	jsontext.CanonicalizeRawFloats(false)}

// writeTape writes the whole file. If a secret is left in it, writeTape returns an error and writes nothing.
func writeTape(path string, tracks []*track, s *scrubber) error {
	file := tapeFile{Version: tapeVersion, Recordings: []recording{}}
	for _, t := range tracks {
		file.Recordings = append(file.Recordings, recording{
			tapedRequest{t.request.method, t.request.url, t.request.header, bodyForm(t.request.body, false)},
			tapedResponse{t.response.status, t.response.header, bodyForm(t.response.body, true), t.response.cut},
		})
	}

	// Strings keep their written form: a response is played byte for byte.
	text, err := json.Marshal(file, json.Deterministic(true), jsontext.WithIndent("  "),
		jsontext.PreserveRawStrings(true))
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnusable, path, err)
	}

	// The scrubber has been over every recording. Search the whole file once more, names of members included.
	if s.Holds(string(text)) {
		return fmt.Errorf("%w: %s: a secret would remain in it, so it is not written", ErrUnusable, path)
	}

	if err := replaceFile(path, append(text, '\n')); err != nil {
		return fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	return nil
}

// replaceFile replaces the file at path atomically.
func replaceFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}

	// The temporary file is in the same folder, because a file cannot be renamed into another file system.
	f, err := os.CreateTemp(filepath.Dir(path), ".tape-*")
	if err != nil {
		return err
	}

	// CreateTemp makes a file for its owner only. All arguments of Or are evaluated, so the file is always closed.
	_, err = f.Write(text)
	err = cmp.Or(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// maxTape is the maximum size of a file in bytes.
const maxTape = 1 << 30

// readLimited reads a file of at most maxTape bytes.
func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	// The size of a device or a pipe is not known before it is read.
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() <= maxTape {
		text, err := io.ReadAll(io.LimitReader(f, maxTape+1))
		if err != nil || len(text) <= maxTape {
			return text, err
		}
	}
	return nil, fmt.Errorf("%s has more than %d bytes", path, maxTape)
}

// readTape reads a tape for playing.
func readTape(path string) ([]*track, error) {
	text, err := readLimited(path)
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("%w: %w; it is recorded with PLAIT_RECORD=1", ErrUnusable, err)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnusable, err)
	}

	var file tapeFile
	if err := json.Unmarshal(text, &file, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUnusable, path, err)
	}
	if file.Version != tapeVersion {
		return nil, fmt.Errorf("%w: %s: its version is %d, not %d", ErrUnusable, path, file.Version, tapeVersion)
	}

	var tracks []*track
	for i, r := range file.Recordings {
		request, err := r.Request.Body.bytes()
		response, failed := r.Response.Body.bytes()
		if err = cmp.Or(err, failed); err != nil {
			return nil, fmt.Errorf("%w: %s: recording %d: %w", ErrUnusable, path, i+1, err)
		}

		if s := r.Response.Status; s < 100 || s > 999 {
			return nil, fmt.Errorf("%w: %s: recording %d: its status is %d", ErrUnusable, path, i+1, s)
		}
		tracks = append(tracks, &track{
			request:  taped{method: r.Request.Method, url: r.Request.URL, header: r.Request.Header, body: request},
			response: taped{status: r.Response.Status, header: r.Response.Header, body: response, cut: r.Response.Cut},
		})
	}
	return tracks, nil
}

// sortTracks sorts recordings made in any order, to keep the file independent of it.
func sortTracks(tracks []*track) {
	slices.SortStableFunc(tracks, func(a, b *track) int {
		return cmp.Or(
			cmp.Compare(a.request.method, b.request.method), cmp.Compare(a.request.url, b.request.url),
			bytes.Compare(a.request.body, b.request.body), bytes.Compare(a.response.body, b.response.body),
		)
	})
}
