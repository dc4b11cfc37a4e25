// Package corpus makes conversations for benchmarks, and the same data as plain structs.
//
// A conversation is a sequence of exchanges of five nodes: a message of the user, a response with a text and two tool
// calls, two executions, and the message with their results. Texts have 200 to 4,000 bytes, their lengths spread
// evenly on a logarithmic scale, with line breaks, quotes, markup and 5 % of letters outside ASCII. About every 500
// nodes, the user sends an image of 200 KB in base64. 1,000 nodes take about 2 MB.
//
// The smallest whole program:
//
//	d := corpus.New(1).Conversation(10_000)
//	fmt.Println(d.Len())
//
// # Concurrency
//
// A Corpus is for one goroutine.
//
// # Errors
//
// The functions panic if their own data is invalid: that is a mistake in this package.
package corpus

import (
	"encoding/base64"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/dag"
	"github.com/plait-dev/plait/node"
)

// Corpus generates texts and conversations from a seed.
type Corpus struct{ random *rand.Rand }

// New returns a corpus. The same seed gives the same conversations, to the byte.
func New(seed uint64) *Corpus { return &Corpus{rand.New(rand.NewPCG(seed, 1))} }

// ImageEvery is the number of nodes between two images.
const ImageEvery = 500

var words = strings.Fields(`the tool returned a list of files and so on; "quoted" text if (a < b && c > d) { return err }
	func main err != nil /usr/local/bin https://example.com/?q=1&r=2 tab	and it goes on until the evening when it clears up
	{"key": 1, "list": [true, null]} ` + "`code`" + ` **bold** 42 0x1f 3.14 <tag attr="x"> C:\path\file`)

var letters = []string{"Überraschung", "naïve", "東京", "Привет", "café", "🙂", "größer", "Ω"}

// Text returns a text of 200 to 4,000 bytes, or up to one word more.
func (c *Corpus) Text() string {
	return c.TextOf(int(200 * math.Pow(20, c.random.Float64())))
}

// TextOf returns a text of about that many bytes.
func (c *Corpus) TextOf(size int) string {
	var b strings.Builder
	b.Grow(size + 32)
	for b.Len() < size {
		switch c.random.IntN(20) {
		case 0:
			b.WriteString(letters[c.random.IntN(len(letters))])
		case 1:
			b.WriteByte('\n')
		default:
			b.WriteString(words[c.random.IntN(len(words))])
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// Image returns an image of 200 KB in base64.
func (c *Corpus) Image() content.Image {
	data := make([]byte, 150_000)
	for i := range data {
		data[i] = byte(c.random.Uint32())
	}
	return content.Image{Source: content.Source{MediaType: "image/png", Data: base64.StdEncoding.EncodeToString(data)}}
}

// readFile is the tool of every call.
var readFile = content.Tool{Name: "read", Description: "Reads a file.", Schema: `{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"}}}`}

// Conversation returns a conversation of n nodes, or up to four more. Its IDs and times are reproducible.
func (c *Corpus) Conversation(n int) dag.DAG {
	d := dag.New().WithSource(node.Counting(time.Unix(1_700_000_000, 0))).System("Answer briefly.").Tools(readFile)

	// The system prompt and the tools are the first two nodes; i is the index of the first node of an exchange.
	for i := 2; i < n; i += 5 {
		d = c.Exchange(d, i)
	}
	if err := d.Err(); err != nil {
		panic(err)
	}
	return d
}

// Exchange appends five nodes. In a conversation, i is the index of the first; it makes the call IDs unique.
func (c *Corpus) Exchange(d dag.DAG, i int) dag.DAG {
	// One exchange in 500 nodes has an image, from the second 500 on.
	var more []content.Block
	if i%ImageEvery < 5 && i > 5 {
		more = append(more, c.Image())
	}
	call := func(name string) content.ToolUse {
		return content.ToolUse{
			ID: fmt.Sprintf("toolu_%s_%06d", name, i), Name: "read",
			Input: content.JSON(fmt.Sprintf(`{"path":"/src/%s/%d.go","limit":100}`, name, i)),
		}
	}
	return d.User(c.Text(), more...).
		Assistant(c.Text(), call("a"), call("b")).
		CloseTools(
			node.ToolExecution{Index: 1, Result: content.Words(c.Text())},
			node.ToolExecution{Index: 2, Result: content.Words(c.Text())})
}

// Phases returns a conversation of n nodes or a few more, in tool phases of three calls. It has next to no text, for
// measures of the graph alone.
func Phases(n int) dag.DAG {
	calls := make([]content.Block, 3)
	for i := range calls {
		calls[i] = content.ToolUse{ID: fmt.Sprint(i), Name: "f", Input: "{}"}
	}
	blocks, err := content.Of(calls...)
	if err != nil {
		panic(err)
	}

	// Each step appends five nodes: the message with the calls, three executions, and the message with their results.
	d := dag.New().User("go")
	for i := 1; i < n; i += 5 {
		d = d.Append(node.Message{Role: content.Assistant, Blocks: blocks}).CloseTools()
	}
	return d
}

// Chain returns a conversation of n messages, with next to no text.
func Chain(n int) dag.DAG {
	d := dag.New()
	p := node.Message{Role: content.User, Blocks: content.Words("x")}
	for range n {
		d = d.Append(p)
	}
	return d
}
