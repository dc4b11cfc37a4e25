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
	"unicode/utf8"

	"github.com/plait-dev/plait/content"
	"github.com/plait-dev/plait/internal/wire"
)

// Target says what an API takes of a conversation that others had a part in: the rules for switching the provider. What it does
// not take is converted or replaced by a text that says what stood there; thinking is left out, because only its origin can read
// it. Everything stays in the conversation as it was, and its origin gets it back. docs/switching.md shows the rules as a table.
type Target struct {
	// API names the API, as in content.Extra.
	API string
	// Files is the APIs whose uploaded files (content.Source.FileID) it can read.
	Files []string
	// Images, Documents and Audio are the media it takes. A document whose media type begins with "audio/" is audio.
	Images, Documents, Audio Media
	// UnsignedThinking says that thinking of its own goes back also without a signature.
	UnsignedThinking bool
	// ToolName is what a tool's name must match; a letter that does not fit becomes "_".
	ToolName *regexp.Regexp
	// NameLength is the most letters of a tool's name.
	NameLength int
	// CallID is what a call's id must match. Another one is replaced, in the call and in its result.
	CallID *regexp.Regexp
	// SchemaTop is the keywords that cannot stand at the top of a tool's schema, and Schema those that can stand anywhere; nil
	// is all. The others are taken out of the schema, which then allows more than it did.
	SchemaTop []string
	Schema    []string
}

// Media is what an API takes of images, documents or audio. The zero value takes none.
type Media struct {
	// Types is the media types it takes as bytes.
	Types []string
	// Most is the most bytes of base64 that one may have; 0 is no limit.
	Most int
	// URL is the beginnings of the URLs that it fetches, such as "https://".
	URL []string
	// Text says that it takes a document that is plain text as a document. Otherwise it becomes a text.
	Text bool
	// Assistant says that the assistant's side may show them.
	Assistant bool
}

// TargetOf returns the rules of an API by its name ("anthropic", "openai-chat", "openai-responses" or "gemini"), and whether there is
// one of that name. The Target is a copy: changing it changes no other.
func TargetOf(api string) (Target, bool) {
	t, ok := targets[api]
	t.Files = slices.Clone(t.Files)
	for _, media := range []*Media{&t.Images, &t.Documents, &t.Audio} {
		media.Types, media.URL = slices.Clone(media.Types), slices.Clone(media.URL)
	}
	t.SchemaTop, t.Schema = slices.Clone(t.SchemaTop), slices.Clone(t.Schema)
	return t, ok
}

// targets is the rules of the four APIs, by name. What documents they take is from their manuals, read in November 2026:
//
//   - Anthropic takes PDF and plain text; others are to be sent as text
//     (docs.claude.com, "Files API", file types and content blocks).
//   - Chat Completions takes PDF alone, the Responses API texts, Office files and spreadsheets as well
//     (developers.openai.com/api/docs/guides/file-inputs). A recorded request with a text/csv was answered, and one with an
//     audio/mpeg refused.
//   - Gemini takes PDF and video; documents that are texts are read as such (ai.google.dev/gemini-api/docs/document-processing).
var targets = map[string]Target{
	"anthropic": {
		API:       "anthropic",
		Files:     []string{"anthropic"},
		Images:    Media{Types: webImages, Most: 5 << 20, URL: []string{"https://"}},
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
		CallID:    shortID,
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

const pdf = "application/pdf"

// responsesDocuments is the documents that the Responses API takes. Texts of other types become text.
var responsesDocuments = append([]string{
	pdf, "text/plain", "text/markdown", "text/html", "text/csv", "application/json", "application/rtf",
}, slices.Sorted(maps.Keys(containers))...)

// containers is the types of documents whose bytes show only the container that they are packed in: an archive, or an older
// Office file. Each is given with what such bytes begin with.
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
	plainName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	shortID   = regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,64}$`)
)

// Accept returns the block as the API takes it, by the rules for switching: the block itself, another one that says the same as
// far as it can be said, or nil to leave it out; and, if it is not the block itself, why. It is made for [Rules].Accept. Blocks
// of the API's own (content.Opaque) are returned as they are: where they may stand is for the provider to say.
//
// What an Opaque of the API's own, or an Extra in its name, holds beyond the members that Plait knows is sent unchecked: it is
// what the API itself said, or what a program says on its own account. A request with such members can be refused.
func (t Target) Accept(role content.Role, block content.Block, nested bool) (content.Block, string) {
	switch b := block.(type) {
	case content.Text:
		if role == content.User && !nested && strings.TrimSpace(b.Text) == "" {
			return nil, "a text of nothing but space"
		}
		return block, ""
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
		if fit, why := t.call(b); why != "" {
			return fit, why
		}
		return block, ""
	case content.ToolResult:
		return block, ""
	case content.Opaque:
		if b.API == t.API {
			return block, ""
		}
		said := neutral(b)
		if said == "" {
			return nil, "a block that only " + short(b.API) + " can read"
		}
		return content.Text{Text: said}, "a block that only " + short(b.API) + " can read became text"
	}
	return nil, "a block that the API has no form for"
}

// foreign says why thinking cannot be sent; "" where it can.
func (t Target) foreign(b content.Thinking) string {
	switch {
	case b.Extra.API != "" && b.Extra.API != t.API:
		return "thinking that only " + short(b.Extra.API) + " can read"
	case b.Signature == "" && b.Redacted == "" && (!t.UnsignedThinking || b.Extra.API == ""):
		return "thinking without a signature"
	}
	return ""
}

// call gives the tool a name that the API takes, and makes the arguments an object.
func (t Target) call(b content.ToolUse) (content.ToolUse, string) {
	var why []string
	if name := t.Name(b.Name); name != b.Name {
		why = append(why, fmt.Sprintf("the tool's name %q became %q", short(b.Name), name))
		b.Name = name
	}
	if !b.Input.IsObject() {
		b.Input = wrapped(b.Input)
		why = append(why, "the arguments of "+b.Name+" were no object")
	}
	return b, strings.Join(why, "; ")
}

// FitsID reports whether the API takes a call's id. It is made for [Rules].ID.
func (t Target) FitsID(id string) bool { return plainID(id) || t.CallID.MatchString(id) } // all APIs take plain ones

// Name returns the tool's name as the API takes it.
func (t Target) Name(name string) string {
	if t.ToolName == nil || plainID(name) && name[0] > '9' || t.ToolName.MatchString(name) {
		return name // all APIs take plain ones
	}
	fit := strings.Map(func(c rune) rune {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '-' {
			return '_'
		}
		return c
	}, name)
	for _, fit := range []string{fit, "_" + fit} {
		if fit = fit[:min(len(fit), t.NameLength)]; fit != "_" && t.ToolName.MatchString(fit) {
			return fit
		}
	}
	return "unnamed"
}

// wrapped puts arguments that are no object into one.
func wrapped(input content.JSON) content.JSON {
	switch {
	case strings.TrimSpace(string(input)) == "":
		return "{}"
	case input.Valid():
		if object := wire.Object([]wire.Member{{Name: "input", Value: input}}); object.Valid() { // not too deep
			return object
		}
	}
	return wire.Object([]wire.Member{{Name: "input", Value: wire.Quote(string(input))}})
}

func (t Target) image(role content.Role, b content.Image) (content.Block, string) {
	source, why := t.media("image", t.Images, role, b.Source, b.Extra.API)
	if source == (content.Source{}) {
		return instead("image", b.Source, "", why)
	}
	b.Source = source
	return b, why
}

func (t Target) document(role content.Role, b content.Document) (content.Block, string) {
	what, rules := "document", t.Documents
	if words, ok := readable(b.Source); ok && !t.asFile(role, b.Source) {
		return t.words(role, b, words)
	}
	switch kind := mediaType(b.Source); {
	case strings.HasPrefix(kind, "audio/"):
		what, rules = "audio", t.Audio
	case b.Source.Data != "" && slices.Contains(t.Images.Types, kind):
		picture, why := t.image(role, content.Image{Source: b.Source})
		return picture, cmp.Or(why, "a document that is an image is sent as one")
	}
	source, why := t.media(what, rules, role, b.Source, b.Extra.API)
	if source == (content.Source{}) {
		return instead(what, b.Source, b.Title, why)
	}
	b.Source = source
	return b, why
}

// asFile reports whether the API takes the bytes of a text as they are.
func (t Target) asFile(role content.Role, s content.Source) bool {
	return s.Data != "" && (role == content.User || t.Documents.Assistant) && slices.Contains(t.Documents.Types, mediaType(s)) &&
		badBase64(s.Data) == ""
}

// words is a document that is a text: as such, or where the API takes none there, as what is said.
func (t Target) words(role content.Role, b content.Document, words string) (content.Block, string) {
	taken := t.Documents.Text && (role == content.User || t.Documents.Assistant)
	switch {
	case strings.TrimSpace(words) == "":
		return instead("document", b.Source, b.Title, "it holds nothing but space")
	case taken && b.Source.Text != "":
		return b, ""
	case taken:
		why := "a document of type " + short(b.Source.MediaType) + " is sent as plain text"
		b.Source = content.Source{MediaType: "text/plain", Text: words}
		return b, why
	case b.Title != "":
		words = "[Document " + quoted(b.Title) + ":]\n" + words
	}
	return content.Text{Text: words}, "a document became text"
}

// media returns the source as the API takes it, or none and why not.
func (t Target) media(what string, m Media, role content.Role, s content.Source, origin string) (content.Source, string) {
	var none content.Source
	switch {
	case len(m.Types) == 0:
		return none, "the model cannot be shown any " + what
	case role == content.Assistant && !m.Assistant:
		return none, "the assistant's side cannot show it"
	case s.Text != "":
		return none, "it cannot be text"
	case s.URL != "":
		if strings.HasPrefix(s.URL, geminiFiles) && t.API != "gemini" {
			return none, "it is a file of another provider"
		}
		if !begins(s.URL, m.URL) {
			return none, "its URL cannot be fetched"
		}
		if what == "image" && s.MediaType != "" && !strings.HasPrefix(strings.ToLower(s.MediaType), "image/") {
			return none, "it is no image, by its type"
		}
		return s, ""
	case s.FileID != "":
		if !slices.Contains(t.Files, origin) && (origin != "" || len(t.Files) == 0) {
			return none, "it is a file of another provider"
		}
		return s, ""
	}
	if why := badBase64(s.Data); why != "" {
		return none, why
	}
	if m.Most > 0 && len(s.Data) > m.Most {
		return none, fmt.Sprintf("it has %d bytes of base64, more than %d", len(s.Data), m.Most)
	}
	kind := mediaType(s)
	if !slices.Contains(m.Types, kind) {
		return none, "its type is none of " + strings.Join(m.Types, ", ")
	}
	if kind != s.MediaType {
		why := fmt.Sprintf("a %s of type %q is sent as %s, which it is", what, short(s.MediaType), kind)
		s.MediaType = kind
		return s, why
	}
	return s, ""
}

// geminiFiles is where files lie that were uploaded to the Gemini API. Nobody else can fetch them.
const geminiFiles = "https://generativelanguage.googleapis.com/"

func begins(url string, with []string) bool {
	return slices.ContainsFunc(with, func(scheme string) bool { return strings.HasPrefix(url, scheme) })
}

// mediaType is the type that the bytes show, where they show any, and otherwise the one that is said, without its parameters; ""
// where what is said cannot be true.
func mediaType(s content.Source) string {
	said, _, _ := strings.Cut(strings.ToLower(s.MediaType), ";")
	said = strings.TrimSpace(said)
	if other, ok := sameType[said]; ok {
		said = other
	}
	if s.Data == "" {
		return said
	}
	if begins, packed := containers[said]; packed {
		if strings.HasPrefix(string(head(s.Data)), begins) {
			return said
		}
		said = ""
	}
	shown, _, _ := strings.Cut(http.DetectContentType(head(s.Data)), ";")
	if other, ok := sameType[shown]; ok {
		shown = other
	}
	switch {
	case shown != "application/octet-stream" && !strings.HasPrefix(shown, "text/"):
		return shown
	case said == pdf || slices.Contains(webImages, said):
		return ""
	}
	return said
}

// sameType is other names of media types.
var sameType = map[string]string{
	"audio/wave": "audio/wav", "audio/x-wav": "audio/wav", "audio/vnd.wave": "audio/wav", "audio/mp3": "audio/mpeg", "audio/x-aiff": "audio/aiff",
	"image/jpg": "image/jpeg", "application/ogg": "audio/ogg", "audio/x-flac": "audio/flac", "text/md": "text/markdown",
	"text/x-markdown": "text/markdown", "text/json": "application/json",
}

// head is the first bytes of valid base64, enough to tell what they are.
func head(data string) []byte {
	b, _ := base64.StdEncoding.DecodeString(data[:min(len(data), 64)])
	return b
}

// readable returns the text of a document that is text of some kind.
func readable(s content.Source) (string, bool) {
	if s.Text != "" {
		return s.Text, true
	}
	kind := strings.ToLower(s.MediaType)
	if _, packed := containers[kind]; packed { // "openxmlformats" is no XML
		return "", false
	}
	if s.Data == "" || !strings.HasPrefix(kind, "text/") && !strings.Contains(kind, "json") && !strings.Contains(kind, "xml") && !strings.Contains(kind, "yaml") {
		return "", false
	}
	data, err := base64.StdEncoding.DecodeString(s.Data)
	return string(data), err == nil && utf8.Valid(data) && strings.TrimSpace(string(data)) != "" && http.DetectContentType(data) != pdf
}

// badBase64 says why s is not standard base64; "" when it is.
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

// instead is the text that stands in the place of what the API would refuse.
func instead(what string, s content.Source, title, why string) (content.Block, string) {
	label := what
	if title != "" {
		label += " " + quoted(title)
	}
	if s.MediaType != "" {
		label += " (" + short(s.MediaType) + ")"
	}
	if s.URL != "" && len(s.URL) <= 2048 && !strings.HasPrefix(s.URL, "data:") {
		label += " " + wire.OneLine(tame(s.URL))
	}
	return content.Text{Text: "[" + label + " left out: " + why + "]"}, what + " left out: " + why
}

func quoted(s string) string { return `"` + short(s) + `"` }
