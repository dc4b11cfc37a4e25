package node

import (
	"time"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/blockcodec"
	"github.com/plait-dev/plait/internal/jsonx/plain"
)

// The reader of single blocks. Package content does not export it.
var (
	readBlock = blockcodec.ReadPlain.(func(*plain.Reader, bool) content.Block)
	blockList = blockcodec.List.(func([]content.Block) content.Blocks)
)

// parsePlain reads a line in exactly the form written by Append. It returns nil for any other line and for nodes with
// rare fields: parseAny reads those.
//
// It takes less than half of parseAny's time, because it reads each byte about three times and decodes blocks in place.
// It does not keep the line, because Append writes the same line again.
func parsePlain(line []byte, resolve func(ID) *Node) *Node {
	// After a mismatch r reads nothing more, so it is enough to check at the end.
	r := plain.Read(line)
	n := newNode()
	if n.readEnvelope(&r, resolve) {
		n.payload = n.plainExecution(&r)
	} else {
		n.payload = n.plainMessage(&r)
	}

	both := &struct { // one allocation for both
		hashes
		own sum
	}{own: readSum(&r)}
	if !r.Done() {
		return nil
	}
	both.sum = &both.own
	n.hashes.Store(&both.hashes)
	return n
}

// readEnvelope reads the members of a line before the body, and sets their fields. It reports whether the node is an
// execution. Otherwise it is a message, or r has failed.
func (n *Node) readEnvelope(r *plain.Reader, resolve func(ID) *Node) (execution bool) {
	r.Expect(`{"id":`)
	n.id = r.UUID()

	// Most nodes have few parents: their list stays on the stack.
	var few [8]*Node
	parents := few[:0]
	r.Expect(`,"parents":[`)
	for r.Item() {
		id := r.UUID()
		if r.Failed() {
			return false
		}
		parents = append(parents, resolve(id))
	}

	// Append writes each parent once. Leave a missing or a repeated one to parseAny.
	if n.adopt(parents) != nil || n.NumParents() != len(parents) {
		r.FailIf(true)
		return false
	}

	execution = r.Has(`,"kind":"tool_execution"`)
	if !execution {
		r.Expect(`,"kind":"message"`)
	}
	_ = n.setTime(r.OptTime("time")) // a time that was read can be written
	r.Expect(`,"body":{`)
	return execution
}

func (n *Node) plainMessage(r *plain.Reader) Payload {
	m := Message{Role: content.Assistant}
	if r.Has(`"role":"user"`) {
		m.Role = content.User
	} else {
		r.Expect(`"role":"assistant"`)
	}
	r.Expect(`,"blocks":[`)
	m.Blocks = n.plainBlocks(r)
	r.Expect("}")

	if hasInfo(r) {
		m.Answer = plainAnswer(r)
	}
	return m
}

// plainAnswer reads the members of the info of a message, and the closing bracket.
func plainAnswer(r *plain.Reader) (a Answer) {
	a.API, a.Model = r.OptString("api"), r.OptString("model")
	a.ResponseID, a.Stop = r.OptString("response_id"), content.Stop(r.OptString("stop"))
	a.Usage, a.Latency = plainUsage(r), time.Duration(r.OptInt("latency_ns"))
	a.Retries = int(r.OptInt("retries"))
	if r.Member("seen") {
		r.Expect(`"sha256:`)
		a.Seen = r.Hash()
		r.Expect(`"`)

		// Append omits a zero value, so a line with one is in another form.
		r.FailIf(a.Seen == Seen{})
	}
	a.Details = content.JSON(r.OptJSON("details"))
	r.FailIf(checkDetails(a.Details) != nil)
	r.Expect("}")
	return a
}

// plainBlocks reads the blocks of a message, after the opening bracket, in the form written by appendShared.
func (n *Node) plainBlocks(r *plain.Reader) content.Blocks {
	var list []content.Block
	parents, results := n.parents(), 0
	for r.Item() {
		var b content.Block
		shared := r.Has(`{"type":"tool_result","result_of":`)
		if shared {
			if r.Int() != int64(results) {
				r.FailIf(true)
				break
			}
			var err error
			b, err = n.resultOf(results)
			r.FailIf(err != nil)
			r.Expect("}")
		} else {
			b = readBlock(r, false)
		}

		// Append writes a reference to a parent's result. A copy of the result in its place is another form.
		if result, ok := b.(content.ToolResult); ok {
			r.FailIf(!shared && results < len(parents) && parents[results].answers(result))
			results++
		}
		list = append(list, b)
	}
	return blockList(list)
}

func (n *Node) plainExecution(r *plain.Reader) Payload {
	e := ToolExecution{CallID: r.OptString("call_id")}
	r.FailIf(!r.Member("index"))
	index := r.Int()
	e.Index = int(index)
	r.FailIf(int64(e.Index) != index) // on a 32-bit machine
	e.Tool, e.Input = r.OptString("tool"), content.JSON(r.OptJSON("input"))
	e.State = ExecutionState(r.OptString("state"))

	r.Expect(`,"result":[`)
	var result []content.Block
	for r.Item() {
		result = append(result, readBlock(r, true))
	}
	e.Result = blockList(result)
	e.IsError = r.OptTrue("is_error")

	// A child conversation would come here. parseAny reads an execution with one.
	r.Expect("}")

	if hasInfo(r) {
		// Rare members of the info, ran and full, are left to parseAny too.
		e.Started, e.Ended, e.Usage = r.OptTime("started"), r.OptTime("ended"), plainUsage(r)
		e.Details = content.JSON(r.OptJSON("details"))
		r.FailIf(checkDetails(e.Details) != nil)
		r.Expect("}")
	}
	return e
}

// hasInfo reads up to the members of the info, and reports whether there is one.
func hasInfo(r *plain.Reader) bool {
	if !r.Member("info") {
		return false
	}
	r.Expect("{")
	r.FailIf(r.Has("}")) // Append omits an empty info
	return true
}

// plainUsage reads a usage. It is omitted if it is zero.
func plainUsage(r *plain.Reader) (u content.Usage) {
	if !r.Member("usage") {
		return u
	}
	r.Expect("{")
	u.Input, u.Output = r.OptInt("input"), r.OptInt("output")
	u.CacheRead, u.CacheWrite = r.OptInt("cache_read"), r.OptInt("cache_write")
	u.CacheWriteLong = r.OptInt("cache_write_long")
	u.Reasoning, u.Incomplete = r.OptInt("reasoning"), r.OptTrue("incomplete")
	r.Expect("}")

	// Append omits a zero usage, so a line with one is in another form.
	r.FailIf(u == content.Usage{})
	return u
}
