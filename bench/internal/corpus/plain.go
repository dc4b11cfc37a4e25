package corpus

import (
	"bytes"
	"encoding/json"
	"time"

	gojson "github.com/goccy/go-json"

	"github.com/plait-dev/plait/dag"
)

// Document is a saved conversation as plain structs: the baseline for encoding and decoding.
type Document struct {
	Format  string    `json:"format"`
	Version int       `json:"version"`
	Created time.Time `json:"created"`
	Heads   []string  `json:"heads"`
	Nodes   []Node    `json:"nodes"`
}

// Node is a saved node.
type Node struct {
	ID      string    `json:"id"`
	Parents []string  `json:"parents"`
	Kind    string    `json:"kind"`
	Time    time.Time `json:"time"`
	Body    Body      `json:"body"`
	Sum     string    `json:"sum"`
}

// Body is the content of a node. It has the members of all kinds in a corpus.
type Body struct {
	Text    string          `json:"text,omitempty"`
	Role    string          `json:"role,omitempty"`
	Tools   json.RawMessage `json:"tools,omitempty"`
	Blocks  []Block         `json:"blocks,omitempty"`
	CallID  string          `json:"call_id,omitempty"`
	Index   int             `json:"index,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	Result  []Block         `json:"result,omitempty"`
	IsError bool            `json:"is_error,omitempty"`
}

// Block is a block of a message or a result.
type Block struct {
	Type     string          `json:"type"`
	Text     string          `json:"text,omitempty"`
	ID       string          `json:"id,omitempty"`
	Name     string          `json:"name,omitempty"`
	Input    json.RawMessage `json:"input,omitempty"`
	Source   *Source         `json:"source,omitempty"`
	ResultOf *int            `json:"result_of,omitempty"`
}

// Source is the data of an image.
type Source struct {
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
}

// Saved returns the saved form of a conversation, and the same data as plain structs.
func Saved(d dag.DAG) ([]byte, *Document) {
	var text bytes.Buffer
	if err := d.Write(&text); err != nil {
		panic(err)
	}
	doc := new(Document)
	if err := gojson.Unmarshal(text.Bytes(), doc); err != nil {
		panic(err)
	}
	return text.Bytes(), doc
}
