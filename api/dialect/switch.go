package dialect

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/jsonx"
	"github.com/plait-dev/plait/internal/safetext"
)

// Target describes the parts of other providers' conversations accepted by an API: the rules for switching the
// provider.
//
//   - A block of a kind it does not accept is converted, or replaced by a text with its name.
//   - Thinking is dropped, because only its origin can read it.
//   - The conversation itself does not change, and its origin receives everything again.
//
// docs/switching.md shows the rules as a table.
type Target struct {
	// API names the API, as in content.Extra.
	API string
	// Files are the APIs with uploaded files (content.Source.FileID) it can read.
	Files []string
	// Images, Documents and Audio are the media it accepts. A document with a media type of "audio/…" is audio.
	Images, Documents, Audio Media
	// UnsignedThinking sends the API's own thinking back even without a signature.
	UnsignedThinking bool
	// ToolName matches the names of tools. In any other name, a character other than a letter, a digit, "_" or "-"
	// becomes "_". Plain names (a letter or "_", then letters, digits, "_" and "-", at most 40 in all) are always
	// accepted. Defaults to nil: every name is accepted.
	ToolName *regexp.Regexp
	// NameLength is the maximum length of a tool's name.
	NameLength int
	// CallID matches the IDs of calls. [Repair] replaces any other ID, in the call and in its result, if Rules.ID is
	// Target.FitsID. Plain IDs (letters, digits, "_" and "-", 1 to 40 of them) are always accepted. Defaults to nil:
	// no others are.
	CallID *regexp.Regexp
	// SchemaTop are the keywords not allowed at the top of a tool's schema. They are removed there, and the schema then
	// allows more than before.
	SchemaTop []string
	// Schema are the keywords allowed in a tool's schema; nil allows all. Others are removed, as with SchemaTop.
	Schema []string
}

// Media describes the images, documents or audio accepted by an API. The zero value accepts none.
type Media struct {
	// Types are the media types accepted as bytes.
	Types []string
	// MaxBytes is the maximum size of one, in bytes of base64; 0 is no limit.
	MaxBytes int
	// URL are the prefixes of URLs fetched by the API, such as "https://".
	URL []string
	// Text sends a plain text document as a document. Otherwise it becomes a text block.
	Text bool
	// Assistant allows them in messages of the assistant.
	Assistant bool
}

// TargetOf returns the rules of the API with the given name ("anthropic", "openai-chat", "openai-responses" or
// "gemini"), and reports whether there is one. The Target is a copy: changing it affects no other.
func TargetOf(api string) (Target, bool) {
	t, ok := targets()[api]
	t.Files = slices.Clone(t.Files)
	for _, media := range []*Media{&t.Images, &t.Documents, &t.Audio} {
		media.Types, media.URL = slices.Clone(media.Types), slices.Clone(media.URL)
	}
	t.SchemaTop, t.Schema = slices.Clone(t.SchemaTop), slices.Clone(t.Schema)
	return t, ok
}

// targets holds the rules of the four APIs, by name. The types of documents are from their manuals, read in November
// 2026:
//
//   - Anthropic accepts PDF and plain text; others are to be sent as text
//     (docs.claude.com, "Files API", file types and content blocks).
//   - Chat Completions accepts PDF alone, the Responses API texts, Office files and spreadsheets as well
//     (developers.openai.com/api/docs/guides/file-inputs). A recorded request with a text/csv succeeded, and one with
//     an audio/mpeg was refused.
//   - Gemini accepts PDF and video, and reads text documents as text
//     (ai.google.dev/gemini-api/docs/document-processing).
var targets = sync.OnceValue(func() map[string]Target {
	plainName := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	return map[string]Target{
		"anthropic": {
			API:       "anthropic",
			Files:     []string{"anthropic"},
			Images:    Media{Types: webImages, MaxBytes: 5 << 20, URL: []string{"https://"}},
			Documents: Media{Types: []string{pdf}, URL: []string{"https://"}, Text: true},
			ToolName:  plainName, NameLength: 64,
			CallID:    regexp.MustCompile(`^[a-zA-Z0-9_-]+$`),
			SchemaTop: []string{"oneOf", "allOf", "anyOf"},
		},
		"openai-chat": {
			API:              "openai-chat",
			Files:            openAIs,
			Images:           Media{Types: webImages, URL: []string{"https://", "http://"}},
			Documents:        Media{Types: []string{pdf}},
			Audio:            Media{Types: []string{"audio/wav", "audio/mpeg"}},
			UnsignedThinking: true,
			ToolName:         plainName, NameLength: 64,
			CallID:    regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,40}$`),
			SchemaTop: openAITop,
		},
		"openai-responses": {
			API:       "openai-responses",
			Files:     openAIs,
			Images:    Media{Types: webImages, URL: []string{"https://", "http://"}},
			Documents: Media{Types: responsesDocuments, URL: []string{"https://"}},
			ToolName:  plainName, NameLength: 64,
			CallID:    regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,64}$`),
			SchemaTop: openAITop,
		},
		"gemini": {
			API: "gemini",
			Images: Media{
				Types: []string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}, URL: []string{"https://", "gs://"}, Assistant: true,
			},
			Documents: Media{Types: []string{pdf, "video/mp4", "video/mpeg", "video/webm", "video/quicktime"}, URL: []string{"https://", "gs://"}},
			Audio: Media{
				Types: []string{"audio/wav", "audio/mpeg", "audio/aiff", "audio/aac", "audio/ogg", "audio/flac"}, URL: []string{"https://", "gs://"},
			},
			UnsignedThinking: true,
			ToolName:         regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`), NameLength: 64,
			CallID: regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,128}$`),
			Schema: []string{
				"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "const", "default", "examples", "enum", "items",
				"prefixItems", "minItems", "maxItems", "minimum", "maximum", "minLength", "maxLength", "pattern", "anyOf", "oneOf", "properties",
				"additionalProperties", "required", "minProperties", "maxProperties", "propertyOrdering", "nullable",
			},
		},
	}
})

const pdf = "application/pdf"

// responsesDocuments are the types of documents accepted by the Responses API. Text documents of other types become
// text.
var responsesDocuments = append([]string{
	pdf, "text/plain", "text/markdown", "text/html", "text/csv", "application/json", "application/rtf",
}, slices.Sorted(maps.Keys(containers))...)

// containers maps document types to the first bytes of such a document. The bytes show only the container, a ZIP
// archive or a compound file, and not the type inside.
var containers = map[string]string{
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   zipped,
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": zipped,
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         zipped,
	"application/vnd.oasis.opendocument.text":                                   zipped,
	"application/msword":            compound,
	"application/vnd.ms-powerpoint": compound,
	"application/vnd.ms-excel":      compound,
}

const (
	zipped   = "PK\x03\x04"
	compound = "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
)

var (
	webImages = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
	openAIs   = []string{"openai-chat", "openai-responses"}
	openAITop = []string{"oneOf", "allOf", "anyOf", "enum", "not"}
)

// Accept converts a block into one that the API accepts, by the rules for switching, for use as [Rules].Accept. It
// returns the block itself if nothing has to change, a replacement, or nil to drop it; the string gives the reason for
// a change.
//
// The API's own blocks (content.Opaque) are returned unchanged: the provider decides about their place. Members unknown
// to Plait, in such a block or in an Extra for the API, are sent unchecked. They come from the API itself, or from a
// program that knows better. A request with such members can be refused.
func (t Target) Accept(role content.Role, block content.Block, nested bool) (content.Block, string) {
	switch b := block.(type) {
	case content.Text:
		if role == content.User && !nested && strings.TrimSpace(b.Text) == "" {
			return nil, "a text block of white space"
		}
		var why string
		b.Extra, why = t.withoutCitations(b.Extra)
		return b, why
	case content.Image:
		return t.image(role, b)
	case content.Document:
		return t.document(role, b)
	case content.Thinking:
		if why := t.foreign(b); why != "" {
			return nil, why
		}
		return block, ""
	case content.ToolUse:
		return t.call(b)
	case content.ToolResult:
		return block, ""
	case content.Opaque:
		if b.API == t.API {
			return block, ""
		}

		if text, ok := SystemText(b); ok && strings.TrimSpace(text) != "" {
			return content.Text{Text: text}, "a system message in the line became a text: it is in the form of another API, or the API has none"
		}

		// Another provider's block: the parts readable by a model become text.
		text := neutral(b)
		if text == "" {
			return nil, "a block that only " + safetext.Line(b.API, maxLabel) + " can read"
		}
		return content.Text{Text: text}, "a block that only " + safetext.Line(b.API, maxLabel) + " can read became text"
	}

	return nil, "a block of a kind that the API does not have"
}

// withoutCitations returns the further members of a block without those of another API with citations, and the reason
// for a change. A block has further members of one API, so it loses all of them.
func (t Target) withoutCitations(e content.Extra) (content.Extra, string) {
	if e.API == t.API || e.API == "" || !cites(e) {
		return e, ""
	}
	return content.Extra{}, "citations that only " + safetext.Line(e.API, maxLabel) + " can read are left out"
}

// cites reports whether further members of a block have citations: Anthropic's, OpenAI's or Gemini's.
func cites(e content.Extra) bool {
	list, _ := jsonx.Members(e.JSON) // checked when the block was made
	return slices.ContainsFunc(list, func(m jsonx.Member) bool {
		switch m.Name {
		case "citations", "annotations":
			items, _ := jsonx.Items(m.Value) // none for null
			return len(items) > 0
		case "groundingMetadata", "citationMetadata", "urlContextMetadata":
			return true
		}
		return false
	})
}

// foreign returns why thinking cannot be sent, or "".
func (t Target) foreign(b content.Thinking) string {
	switch {
	case b.Extra.API != "" && b.Extra.API != t.API:
		return "thinking that only " + safetext.Line(b.Extra.API, maxLabel) + " can read"
	case b.Signature == "" && b.Redacted == "" && (!t.UnsignedThinking || b.Extra.API == ""):
		// Unsigned thinking goes back only to the API that wrote it, and only if that API reads it.
		return "thinking without a signature"
	}
	return ""
}

// call returns b with a name accepted by the API and an object as arguments, and the reason for a change.
func (t Target) call(b content.ToolUse) (content.Block, string) {
	var why []string
	extra, lost := t.withoutCitations(b.Extra)
	if lost != "" {
		b.Extra, why = extra, append(why, lost)
	}
	if name := t.Name(b.Name); name != b.Name {
		why = append(why, fmt.Sprintf("the tool's name %s became %q", safetext.Quote(b.Name, maxLabel), name))
		b.Name = name
	}
	if !b.Input.IsObject() {
		b.Input = wrapped(b.Input)
		why = append(why, "the arguments of "+b.Name+" were not an object")
	}
	return b, strings.Join(why, "; ")
}

// FitsID reports whether the API accepts the ID of a call, for use as [Rules].ID.
func (t Target) FitsID(id string) bool {
	return plainID(id) || t.CallID != nil && t.CallID.MatchString(id) // every API accepts plain IDs
}

// Name returns the tool's name as the API accepts it.
func (t Target) Name(name string) string {
	if t.ToolName == nil || plainID(name) && name[0] > '9' || t.ToolName.MatchString(name) {
		return name // every API accepts plain names
	}

	fit := strings.Map(func(c rune) rune {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' {
			return '_'
		}
		return c
	}, name)

	// A first character not allowed in front, such as a digit, gets a "_" before it.
	for _, fit := range []string{fit, "_" + fit} {
		if fit = fit[:min(len(fit), t.NameLength)]; fit != "_" && t.ToolName.MatchString(fit) {
			return fit
		}
	}

	return "unnamed"
}

// wrapped returns an object around arguments of any other kind.
func wrapped(input content.JSON) content.JSON {
	switch {
	case strings.TrimSpace(string(input)) == "":
		return "{}"
	case input.Valid():
		// The object is invalid if it nests too deep.
		if object := jsonx.Object([]jsonx.Member{{Name: "input", Value: input}}); object.Valid() {
			return object
		}
	}

	return jsonx.Object([]jsonx.Member{{Name: "input", Value: jsonx.Quote(string(input))}})
}

func (t Target) image(role content.Role, b content.Image) (content.Block, string) {
	source, why := t.media("image", t.Images, role, b.Source, b.Extra.API)
	if source == (content.Source{}) {
		return placeholder("image", b.Source, "", why)
	}

	b.Source = source
	return b, why
}

func (t Target) document(role content.Role, b content.Document) (content.Block, string) {
	// Every model reads text, whatever files the API accepts.
	if text, ok := readable(b.Source); ok && !t.acceptsTextFile(role, b.Source) {
		return t.textDocument(role, b, text)
	}

	// The bytes, if there are any, decide what the document is: its declared type may be wrong.
	what, rules := "document", t.Documents
	switch kind := mediaType(b.Source); {
	case strings.HasPrefix(kind, "audio/"):
		what, rules = "audio", t.Audio
	case b.Source.Data != "" && slices.Contains(t.Images.Types, kind):
		picture, why := t.image(role, content.Image{Source: b.Source})
		return picture, cmp.Or(why, "a document that is an image is sent as one")
	}

	source, why := t.media(what, rules, role, b.Source, b.Extra.API)
	if source == (content.Source{}) {
		return placeholder(what, b.Source, b.Title, why)
	}
	b.Source = source
	return b, why
}

// acceptsTextFile reports whether the API accepts the bytes of a text document as a file.
func (t Target) acceptsTextFile(role content.Role, s content.Source) bool {
	return s.Data != "" && (role == content.User || t.Documents.Assistant) && slices.Contains(t.Documents.Types, mediaType(s)) &&
		badBase64(s.Data) == ""
}

// textDocument returns a document with the given text: a plain text document if the API accepts one there, and
// otherwise a text block.
func (t Target) textDocument(role content.Role, b content.Document, text string) (content.Block, string) {
	accepted := t.Documents.Text && (role == content.User || t.Documents.Assistant)
	switch {
	case strings.TrimSpace(text) == "":
		return placeholder("document", b.Source, b.Title, "it contains only white space")
	case accepted && b.Source.Text != "":
		return b, ""
	case accepted:
		// The API has no document for other types of text.
		why := "a document of type " + safetext.Line(b.Source.MediaType, maxLabel) + " is sent as plain text"
		b.Source = content.Source{MediaType: "text/plain", Text: text}
		return b, why
	case b.Title != "":
		// A text block has no title.
		text = "[Document " + safetext.Quote(b.Title, maxLabel) + ":]\n" + text
	}

	return content.Text{Text: text}, "a document became text"
}

// media returns the source as the API accepts it and the reason for a change, or the zero Source and why it is refused.
// Origin is the API of an uploaded file, "" if unknown.
func (t Target) media(what string, m Media, role content.Role, s content.Source, origin string) (content.Source, string) {
	var none content.Source
	switch {
	case len(m.Types) == 0:
		return none, "the model does not accept " + what
	case role == content.Assistant && !m.Assistant:
		return none, "an assistant message cannot contain it"
	case s.Text != "":
		return none, "it cannot be sent as text"
	case s.URL != "":
		if strings.HasPrefix(s.URL, geminiFiles) && t.API != "gemini" {
			return none, "it is a file of another provider"
		}
		if !hasAnyPrefix(s.URL, m.URL) {
			return none, "the API does not fetch its URL"
		}
		if what == "image" && s.MediaType != "" && !strings.HasPrefix(strings.ToLower(s.MediaType), "image/") {
			return none, "its type is not that of an image"
		}
		return s, ""
	case s.FileID != "":
		// A file of unknown origin counts as the API's own, if the API has files.
		if !slices.Contains(t.Files, origin) && (origin != "" || len(t.Files) == 0) {
			return none, "it is a file of another provider"
		}
		return s, ""
	}

	// Only bytes are left.
	if why := badBase64(s.Data); why != "" {
		return none, why
	}

	// The APIs limit the length of the base64, because it is sent.
	if m.MaxBytes > 0 && len(s.Data) > m.MaxBytes {
		return none, fmt.Sprintf("it has %d bytes of base64, more than %d", len(s.Data), m.MaxBytes)
	}

	// An API may compare the declared type with the bytes, and refuse a wrong one.
	kind := mediaType(s)
	if !slices.Contains(m.Types, kind) {
		return none, "its type is none of " + strings.Join(m.Types, ", ")
	}
	if kind != s.MediaType {
		why := fmt.Sprintf("a %s declared as %s is sent as %s, its actual type", what, safetext.Quote(s.MediaType, maxLabel), kind)
		s.MediaType = kind
		return s, why
	}
	return s, ""
}

// geminiFiles is the prefix of the URLs of files uploaded to the Gemini API. No other API can fetch them.
const geminiFiles = "https://generativelanguage.googleapis.com/"

func hasAnyPrefix(url string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(url, prefix) })
}

// mediaType returns the media type detected from the bytes, or else the declared one without its parameters. It returns
// "" if the declared type is wrong.
func mediaType(s content.Source) string {
	declared, _, _ := strings.Cut(strings.ToLower(s.MediaType), ";")
	declared = strings.TrimSpace(declared)
	if canonical, ok := typeAliases[declared]; ok {
		declared = canonical
	}
	if s.Data == "" {
		return declared
	}

	// The bytes of a container do not show the type inside.
	if prefix, packed := containers[declared]; packed {
		if strings.HasPrefix(string(head(s.Data)), prefix) {
			return declared
		}
		declared = ""
	}

	detected, _, _ := strings.Cut(http.DetectContentType(head(s.Data)), ";")
	if canonical, ok := typeAliases[detected]; ok {
		detected = canonical
	}
	switch {
	case detected != "application/octet-stream" && !strings.HasPrefix(detected, "text/"):
		return detected
	case declared == pdf || slices.Contains(webImages, declared):
		return "" // these would have been detected
	}
	return declared
}

// typeAliases maps other names of media types to the usual one.
var typeAliases = map[string]string{
	"audio/wave": "audio/wav", "audio/x-wav": "audio/wav", "audio/vnd.wave": "audio/wav", "audio/mp3": "audio/mpeg", "audio/x-aiff": "audio/aiff",
	"image/jpg": "image/jpeg", "application/ogg": "audio/ogg", "audio/x-flac": "audio/flac", "text/md": "text/markdown",
	"text/x-markdown": "text/markdown", "text/json": "application/json",
}

// head returns the first 48 bytes of valid base64, enough to detect their type.
func head(data string) []byte {
	b, _ := base64.StdEncoding.DecodeString(data[:min(len(data), 64)])
	return b
}

// readable returns the text of a document, and reports whether it has one: it is plain text, JSON, XML, YAML or another
// text type.
func readable(s content.Source) (string, bool) {
	if s.Text != "" {
		return s.Text, true
	}
	kind := strings.ToLower(s.MediaType)
	if _, packed := containers[kind]; packed { // "openxmlformats" is not XML
		return "", false
	}

	if s.Data == "" || !strings.HasPrefix(kind, "text/") && !strings.Contains(kind, "json") &&
		!strings.Contains(kind, "xml") && !strings.Contains(kind, "yaml") {
		return "", false
	}

	data, err := base64.StdEncoding.DecodeString(s.Data)
	// A PDF declared as text may be valid UTF-8, too.
	return string(data), err == nil && utf8.Valid(data) && strings.TrimSpace(string(data)) != "" && http.DetectContentType(data) != pdf
}

// badBase64 returns why s is not standard base64, or "". It checks every character but decodes only the last four, to
// save time.
func badBase64(s string) string {
	const not = "its data is not base64"
	body := strings.TrimRight(s, "=")
	if len(s)%4 != 0 || len(s)-len(body) > 2 || body == "" {
		return not
	}

	for i := 0; i < len(body); i++ {
		c := body[i]
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '+' && c != '/' {
			return not
		}
	}

	if _, err := base64.StdEncoding.Strict().DecodeString(s[len(s)-4:]); err != nil {
		return not
	}
	return ""
}

// placeholder returns a text in place of refused media, and the reason.
func placeholder(what string, s content.Source, title, why string) (content.Block, string) {
	label := what
	if title != "" {
		label += " " + safetext.Quote(title, maxLabel)
	}
	if s.MediaType != "" {
		label += " (" + safetext.Line(s.MediaType, maxLabel) + ")"
	}
	// A long URL, or one with the data in it, would only cost tokens.
	if s.URL != "" && len(s.URL) <= 2048 && !strings.HasPrefix(s.URL, "data:") {
		label += " " + safetext.Escape(s.URL, 1000)
	}

	return content.Text{Text: "[" + label + " left out: " + why + "]"}, what + " left out: " + why
}
