package content

// Block is one piece of what is said. It is sealed: the variants are
//
//   - [Text]: words.
//   - [Image] and [Document]: a picture or a file, by its bytes, its URL or a provider's file id.
//   - [Thinking]: a model's reasoning, with the signature that lets it be sent back.
//   - [ToolUse]: a tool call of an assistant.
//   - [CutToolUse]: a tool call in an answer that was cut off; kept for the record, never sent or executed.
//   - [ToolResult]: the answer to a tool call.
//   - [Opaque]: a provider's block that Plait does not interpret (a server tool's call, say); only its origin gets it back.
//   - [Unknown]: a block of a saved file that a newer version of Plait wrote; kept byte for byte.
//
// A variant is used as a value: Text{…}, not &Text{…}. A pointer is accepted wherever blocks are taken, and replaced there by
// a copy of what it points to.
type Block interface {
	// kind is the block's "type" in a saved file.
	kind() string
}

// Text is words, in whatever markup the speaker used.
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

// Thinking is a model's reasoning. A provider takes it back only with its Signature and only unchanged. Where the provider
// hides the reasoning, Text is empty and Redacted holds what it sent in its place.
type Thinking struct {
	Text      string
	Signature string
	Redacted  string
	// Stale says that what stands before it is not what the model had seen when it thought so: some providers refuse it there. It is
	// true of this place in this transcript, is set by dag.DAG.Transcript alone, and is never saved.
	Stale bool
	Extra Extra
}

// ToolUse is a tool call.
type ToolUse struct {
	// ID is the id the provider gave the call. Plait does not rely on it: it may be empty or used twice. A call is identified
	// by its assistant node and its place among that node's calls.
	ID string
	// Name is the tool's name.
	Name string
	// Input is the arguments, as the model wrote them: normally a JSON object, but a call that was cut off holds a fragment.
	Input JSON
	Extra Extra
}

// CutToolUse is a tool call in an answer that was cut off ([StopCut]): a whole call or the beginning of one. It is kept for the record. It is
// never sent or executed, needs no result, and is not among [Blocks.ToolUses].
type CutToolUse struct {
	// Name is the tool's name, as far as it arrived.
	Name string
	// Input is the arguments that arrived, usually the beginning of a JSON object.
	Input JSON
}

// ToolResult is the answer to a tool call.
type ToolResult struct {
	// CallID is the ID of the call that is answered.
	CallID string
	// Content is what the tool returned: texts, images, documents. It may be empty.
	Content Blocks
	// IsError tells the model that the call failed.
	IsError bool
	Extra   Extra
}

// Opaque is a block of one provider that Plait carries but does not interpret: its API is sent it as it is, where such a block may stand,
// and a program that makes one itself answers for what it holds.
type Opaque struct {
	// API names the provider's API, as in [Extra].
	API string
	// JSON is the block, byte for byte.
	JSON JSON
}

// Unknown is a block that was read from a file and whose type this version does not know. It is written back byte for byte
// and never sent.
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

// Source is where the bytes of an image or a document are. Exactly one of Data, Text, URL and FileID is set.
type Source struct {
	// MediaType is the MIME type, such as "image/png". It may be empty with URL and FileID.
	MediaType string
	// Data is the bytes in standard base64.
	Data string
	// Text is the document itself, where it is plain text.
	Text string
	// URL is where a provider can fetch it.
	URL string
	// FileID is the id a provider gave an uploaded file.
	FileID string
}

// Extra is what a provider's block held beyond the fields that Plait models (citations, a caller, a cache hint). It goes back
// to the API it came from, unchanged, and is left out everywhere else. What a program itself puts there is sent to that API unchecked.
type Extra struct {
	// API names the provider's API: "anthropic", "openai-chat", "openai-responses", "gemini", or one of a program's own.
	API string
	// JSON is an object with the further members.
	JSON JSON
}

// For returns the further members for one API: an object, or "" when there are none for it.
func (e Extra) For(api string) JSON {
	if e.API != api {
		return ""
	}
	return e.JSON
}
