package fake

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-json/jsontext"
	json "github.com/goccy/go-json/v2"

	"github.com/plait-dev/plait/api"
)

// batchLine is a request of a batch.
type batchLine struct {
	CustomID string         `json:"custom_id"`
	Params   jsontext.Value `json:"params"` // Anthropic
	Method   string         `json:"method"` // OpenAI, and the two below
	URL      string         `json:"url"`
	Body     jsontext.Value `json:"body"`
}

// batches are the batches of a fake, and the files of OpenAI's.
type batches struct {
	results map[string]string // by the ID of the batch: its results as one text
	looks   map[string]int    // how often a batch was asked for
	files   map[string][]byte
	made    int
}

// serveBatch answers a request about batches, and reports whether it is one. A batch is running when it is asked for
// the first time, and has ended the second time.
func (f *API) serveBatch(w http.ResponseWriter, r *http.Request, body []byte) bool {
	base, answer := "", (func(*http.Request, []byte) (string, error))(nil)
	switch f.dialect.(type) {
	case *anthropic:
		base, answer = "/v1/messages/batches", f.anthropicBatch
	case openAIChat, openAIResponses:
		if base, answer = "/batches", f.openAIBatch; strings.Contains(r.URL.Path, "/files") {
			base = "/files"
		}
	case gemini:
		if base, answer = "/batches/", f.geminiBatch; strings.HasSuffix(r.URL.Path, ":batchGenerateContent") {
			base = ":batchGenerateContent"
		}
	}
	if base == "" || !strings.Contains(r.URL.Path, base) {
		return false
	}

	text, err := answer(r, body)
	reply := Reply{Status: http.StatusOK, Body: text}
	if err != nil {
		refusal := f.dialect.refuse(err.Error())
		f.mu.Lock()
		f.refused = append(f.refused, refusal)
		f.mu.Unlock()
		reply = Reply{Status: refusal.Status, Body: refusal.Body}
	}
	f.dialect.header(w.Header())
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(reply.Status)
	_, _ = io.WriteString(w, reply.Body)
	return true
}

// Batches returns the number of batches that were created.
func (f *API) Batches() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.batches.made
}

// create keeps a batch with the results of its requests.
func (f *API) create(prefix, results string) (id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := &f.batches
	if b.results == nil {
		b.results, b.looks = map[string]string{}, map[string]int{}
	}
	b.made++
	id = prefix + strconv.Itoa(b.made)
	b.results[id] = results
	return id
}

// ended returns the results of a batch, and whether it has ended.
func (f *API) ended(id string) (results string, ended bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	results, ok := f.batches.results[id]
	if !ok {
		return "", false, fmt.Errorf("no batch %q", id)
	}
	f.batches.looks[id]++
	return results, f.batches.looks[id] > 1, nil
}

// one answers a request of a batch.
func (f *API) one(r *http.Request, path string, body []byte) Reply {
	one := r.Clone(r.Context())
	one.Method, one.URL.Path = http.MethodPost, path
	reply, err := f.next(one, body)
	if err != nil {
		refusal := err.(*api.Error)
		return Reply{Status: refusal.Status, Body: refusal.Body}
	}
	if reply.Status == 0 {
		reply.Status = http.StatusOK
	}
	if reply.Body == "" {
		reply.Body = f.dialect.silence()
	}
	return reply
}

var customID = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// checkLine checks a request of a batch against the ones before it.
func checkLine(id string, body []byte, seen map[string]bool) error {
	switch {
	case !customID.MatchString(id):
		return fmt.Errorf("custom_id: String should match pattern '%s'", customID)
	case seen[id]:
		return fmt.Errorf("custom_id: %q is not unique", id)
	case asksToStream(body):
		return fmt.Errorf("%s: stream is not supported in batches", id)
	}
	seen[id] = true
	return nil
}

func (f *API) anthropicBatch(r *http.Request, body []byte) (string, error) {
	_, id, _ := strings.Cut(r.URL.Path, "/v1/messages/batches/")
	id, wantsResults := strings.CutSuffix(id, "/results")
	if r.Method == http.MethodGet && id != "" {
		results, ended, err := f.ended(id)
		switch {
		case err != nil:
			return "", err
		case wantsResults && ended:
			return results, nil
		case wantsResults:
			return "", fmt.Errorf("the batch has not ended")
		}
		status := "in_progress"
		if ended {
			status = "ended"
		}
		return fmt.Sprintf(`{"id":%q,"type":"message_batch","processing_status":%q}`, id, status), nil
	}

	var batch struct {
		Requests []batchLine `json:"requests"`
	}
	if err := json.Unmarshal(body, &batch); err != nil || r.Method != http.MethodPost || len(batch.Requests) == 0 {
		return "", fmt.Errorf("requests: Field required: %v", err)
	}
	var results []string
	seen := map[string]bool{}
	for _, line := range batch.Requests {
		if err := checkLine(line.CustomID, line.Params, seen); err != nil {
			return "", err
		}
		reply := f.one(r, "/v1/messages", line.Params)
		message := strings.Replace(reply.Body, `"usage":{`, `"usage":{"service_tier":"batch",`, 1)
		result := `{"type":"succeeded","message":` + message + `}`
		switch {
		case reply.Batch != "":
			result = `{"type":"` + reply.Batch + `"}`
		case reply.Status != http.StatusOK:
			result = `{"type":"errored","error":` + reply.Body + `}`
		}
		results = append(results, fmt.Sprintf("{\"custom_id\":%q,\"result\":%s}\n", line.CustomID, result))
	}
	slices.Reverse(results) // the API promises no order
	id = f.create("msgbatch_", strings.Join(results, ""))
	return fmt.Sprintf(`{"id":%q,"type":"message_batch","processing_status":"in_progress"}`, id), nil
}

func (f *API) openAIBatch(r *http.Request, body []byte) (string, error) {
	_, path, _ := strings.Cut(r.URL.Path, "/v1")
	name, id, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case r.Method == http.MethodPost && path == "/files":
		return f.upload(r, body)
	case r.Method == http.MethodGet && name == "files":
		f.mu.Lock()
		defer f.mu.Unlock()
		file, ok := f.batches.files[strings.TrimSuffix(id, "/content")]
		if !ok {
			return "", fmt.Errorf("%s", "No such File object: "+id) // as OpenAI says it
		}
		return string(file), nil
	case r.Method == http.MethodGet:
		_, ended, err := f.ended(id)
		if !ended {
			return fmt.Sprintf(`{"id":%q,"object":"batch","status":"in_progress"}`, id), err
		}
		return fmt.Sprintf(`{"id":%q,"object":"batch","status":"completed","output_file_id":"out-%s","error_file_id":"err-%s"}`, id, id, id), nil
	}

	var batch struct {
		File     string `json:"input_file_id"`
		Endpoint string `json:"endpoint"`
		Window   string `json:"completion_window"`
	}
	err := json.Unmarshal(body, &batch)
	f.mu.Lock()
	file, ok := f.batches.files[batch.File]
	f.mu.Unlock()
	if err != nil || !ok || batch.Window != "24h" {
		return "", fmt.Errorf("input_file_id, completion_window: %v", err)
	}

	var out, failed strings.Builder
	seen := map[string]bool{}
	for text := range strings.Lines(string(file)) {
		var line batchLine
		if err := json.Unmarshal([]byte(text), &line); err != nil || line.Method != "POST" || line.URL != batch.Endpoint {
			return "", fmt.Errorf("invalid line of the input file: %s", text)
		}
		if err := checkLine(line.CustomID, line.Body, seen); err != nil {
			return "", err
		}
		reply := f.one(r, line.URL, line.Body)
		switch {
		case reply.Batch != "":
			code := map[string]string{"expired": "batch_expired", "canceled": "batch_cancelled"}[reply.Batch]
			fmt.Fprintf(&failed, "{\"custom_id\":%q,\"response\":null,\"error\":{\"code\":%q,\"message\":\"too late\"}}\n", line.CustomID, code)
		case reply.Status != http.StatusOK:
			fmt.Fprintf(&failed, "{\"custom_id\":%q,\"response\":{\"status_code\":%d,\"request_id\":\"req_fake\",\"body\":%s},\"error\":null}\n", line.CustomID, reply.Status, reply.Body)
		default:
			fmt.Fprintf(&out, "{\"custom_id\":%q,\"response\":{\"status_code\":200,\"request_id\":\"req_fake\",\"body\":%s},\"error\":null}\n", line.CustomID, reply.Body)
		}
	}
	id = f.create("batch_", "")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.batches.files["out-"+id], f.batches.files["err-"+id] = []byte(out.String()), []byte(failed.String())
	return fmt.Sprintf(`{"id":%q,"object":"batch","status":"validating"}`, id), nil
}

// upload keeps a file for batches.
func (f *API) upload(r *http.Request, body []byte) (string, error) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err := r.ParseMultipartForm(int64(len(body))); err != nil {
		return "", err
	}
	file, _, err := r.FormFile("file")
	if err != nil || r.FormValue("purpose") != "batch" {
		return "", fmt.Errorf("file, purpose: %v", err)
	}
	text, err := io.ReadAll(file)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.batches.files == nil {
		f.batches.files = map[string][]byte{}
	}
	id := "file-" + strconv.Itoa(len(f.batches.files))
	f.batches.files[id] = text
	return fmt.Sprintf(`{"id":%q,"object":"file","purpose":"batch"}`, id), err
}

func (f *API) geminiBatch(r *http.Request, body []byte) (string, error) {
	if at := strings.Index(r.URL.Path, "/batches/"); at >= 0 {
		results, ended, err := f.ended(r.URL.Path[at+1:])
		if !ended {
			return fmt.Sprintf(`{"name":%q,"metadata":{"state":"BATCH_STATE_RUNNING"}}`, r.URL.Path[at+1:]), err
		}
		return fmt.Sprintf(`{"name":%q,"done":true,"metadata":{"state":"BATCH_STATE_SUCCEEDED"},"response":{"inlinedResponses":{"inlinedResponses":[%s]}}}`,
			r.URL.Path[at+1:], results), nil
	}

	var create struct {
		Batch struct {
			Name  string `json:"displayName"`
			Input struct {
				Requests struct {
					Requests []struct {
						Request  jsontext.Value    `json:"request"`
						Metadata map[string]string `json:"metadata"`
					} `json:"requests"`
				} `json:"requests"`
			} `json:"inputConfig"`
		} `json:"batch"`
	}
	err := json.Unmarshal(body, &create)
	requests := create.Batch.Input.Requests.Requests
	if err != nil || create.Batch.Name == "" || len(requests) == 0 {
		return "", fmt.Errorf("batch.display_name, batch.input_config: %v", err)
	}
	var results []string
	for _, one := range requests {
		reply := f.one(r, strings.Replace(r.URL.Path, ":batchGenerateContent", ":generateContent", 1), one.Request)
		result := `{"response":` + reply.Body + `}`
		if reply.Batch != "" {
			result = `{"error":{"code":1,"message":"` + reply.Batch + `"}}`
		} else if reply.Status != http.StatusOK {
			result = `{"error":{"code":3,"message":"refused"}}`
		}
		results = append(results, result)
	}
	id := f.create("batches/", strings.Join(results, ","))
	return fmt.Sprintf(`{"name":%q,"metadata":{"state":"BATCH_STATE_PENDING"}}`, id), nil
}
