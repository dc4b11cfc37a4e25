package content

// Block is one piece of a message's content. The interface is sealed; its variants are:
//
//   - [Text]: text.
//   - [Image] and [Document]: a picture or a file, given by its bytes, its URL or a provider's file ID.
//   - [Thinking]: a model's reasoning, with the signature required to send it back.
//   - [ToolUse]: a tool call of an assistant.
//   - [CutToolUse]: a tool call in a response that was cut off. It is kept for the record, never sent or executed.
//   - [ToolResult]: the result of a tool call.
//   - [Opaque]: a provider's block that Plait does not interpret, such as a server tool's call. It is sent back only to
//     the API it came from.
//   - [Unknown]: a block of a saved file, written by a newer version of Plait. It is kept byte for byte.
//
// A variant is used as a value: Text{…}, not &Text{…}. Functions that take blocks also accept a pointer, and replace it
// by a copy of the variant it points to.
type Block interface {
	// kind returns the block's "type" in a saved file.
	kind() string
}

// Text is text, in the markup chosen by its author.
type Text struct {
	Text  string
	Extra Extra
}

// Image is a picture.
type Image struct {
	Source Source
	Extra  Extra
}

// Document is a file: a PDF, plain text, audio, video.
type Document struct {
	Source Source
	Title  string
	Extra  Extra
}

// Thinking is a model's reasoning. A provider accepts it only unchanged and with its Signature. If the provider hides
// the reasoning, Text is empty and Redacted holds the data sent in its place.
type Thinking struct {
	Text      string
	Signature string
	Redacted  string
	// Stale reports that the preceding transcript differs from the one this thinking was produced from. Some providers
	// refuse such thinking. It applies to this position in this transcript: only dag.DAG.Transcript sets it, and it is
	// never saved.
	Stale bool
	Extra Extra
}

// ToolUse is a tool call.
type ToolUse struct {
	// ID is the ID assigned by the provider. Plait does not rely on it: it may be empty or used twice. A call is
	// identified by its assistant node and its index among that node's calls.
	ID string
	// Name is the tool's name.
	Name string
	// Input is the arguments as the model wrote them. They are normally a JSON object, but a call that was cut off
	// holds a fragment of one.
	Input JSON
	Extra Extra
}

// CutToolUse is a tool call in a response that was cut off ([StopCut]): a whole call or the beginning of one. It is
// kept for the record. It is never sent or executed, needs no result, and is not among [Blocks.ToolUses].
type CutToolUse struct {
	// Name is the tool's name, as far as it arrived.
	Name string
	// Input is the arguments as far as they arrived, usually the beginning of a JSON object.
	Input JSON
}

// ToolResult is the result of a tool call.
type ToolResult struct {
	// CallID is the ID of the tool call.
	CallID string
	// Content is the tool's output: texts, images, documents. It may be empty.
	Content Blocks
	// IsError marks a failed call, for the model to see.
	IsError bool
	Extra   Extra
}

// Opaque is a block of one provider. Plait keeps it but does not interpret it. It is sent unchanged, to its own API
// only, in the positions that allow such a block. A program that makes an Opaque is responsible for its content.
type Opaque struct {
	// API names the provider's API, as in [Extra].
	API string
	// JSON is the block, byte for byte.
	JSON JSON
}

// Unknown is a block read from a file, of a type unknown to this version. It is written back byte for byte and never
// sent.
type Unknown struct {
	// JSON is the block, byte for byte.
	JSON JSON
}

func (Text) kind() string       { return "text" }
func (Image) kind() string      { return "image" }
func (Document) kind() string   { return "document" }
func (Thinking) kind() string   { return "thinking" }
func (ToolUse) kind() string    { return "tool_use" }
func (CutToolUse) kind() string { return "cut_tool_use" }
func (ToolResult) kind() string { return "tool_result" }
func (Opaque) kind() string     { return "opaque" }
func (Unknown) kind() string    { return "unknown" }

// Source locates the bytes of an image or a document. Exactly one of Data, Text, URL and FileID is set.
type Source struct {
	// MediaType is the MIME type, such as "image/png". It may be empty with URL and FileID.
	MediaType string
	// Data is the bytes in standard base64.
	Data string
	// Text is the document itself, if it is plain text.
	Text string
	// URL is an address for the provider to fetch it from.
	URL string
	// FileID is the ID of a file uploaded to the provider.
	FileID string
}

// Extra holds members of a provider's block beyond the fields modeled by Plait: citations, a caller, a cache hint. They
// are sent back unchanged to the API they came from, and left out everywhere else. Members set by a program are sent to
// that API unchecked.
type Extra struct {
	// API names the provider's API: "anthropic", "openai-chat", "openai-responses", "gemini", or one defined by the
	// program.
	API string
	// JSON is an object with the further members.
	JSON JSON
}

// For returns the further members for an API: an object, or "" if there are none.
func (e Extra) For(api string) JSON {
	if e.API != api {
		return ""
	}
	return e.JSON
}
