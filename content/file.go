package content

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/plait-dev/plait/internal/safetext"
)

// Errors of [ImageFile] and [DocumentFile], in addition to those of opening and reading a file.
var (
	// ErrMediaType is in the chain of the error for a file of an unknown or wrong type, or for anything but a regular
	// file.
	ErrMediaType = errors.New("unknown media type")
	// ErrFileSize is in the chain of the error for a file that is empty, or larger than 100 MiB. No API accepts a
	// larger one.
	ErrFileSize = errors.New("file is empty or too large")
)

// maxFile is the limit on the size of a file, in bytes.
const maxFile = 100 << 20

// ImageOf returns an image with the given bytes. The media type is a MIME type such as "image/png". The bytes are not
// checked, but [Of] refuses an image without any.
func ImageOf(mediaType string, data []byte) Image {
	return Image{Source: Source{MediaType: mediaType, Data: base64.StdEncoding.EncodeToString(data)}}
}

// DocumentOf returns a document with the given bytes. The media type is a MIME type such as "application/pdf". The
// bytes are not checked, but [Of] refuses a document without any.
func DocumentOf(mediaType string, data []byte) Document {
	return Document{Source: Source{MediaType: mediaType, Data: base64.StdEncoding.EncodeToString(data)}}
}

// ImageFile reads an image from a file. It detects the media type from the first bytes: PNG, JPEG, GIF, WebP, HEIC,
// HEIF or AVIF. An API may accept only some of them. Use [ImageOf] for other types.
//
// Errors: those of opening and reading the file, ErrFileSize, and ErrMediaType for anything but an image of these
// types.
func ImageFile(path string) (Image, error) {
	data, err := readFile(path)
	if err != nil {
		return Image{}, err
	}
	mediaType := imageType(data)
	if mediaType == "" {
		return Image{}, fmt.Errorf("content: %s: %w: not a PNG, JPEG, GIF, WebP, HEIC, HEIF or AVIF image",
			path, ErrMediaType)
	}
	return ImageOf(mediaType, data), nil
}

// DocumentFile reads a document from a file. The title is the file's name, and the media type follows from the name's
// extension. Text is kept as text, even if the extension is unknown. Use [DocumentOf] for other types.
//
// Errors: those of opening and reading the file, ErrFileSize, and ErrMediaType for a file with an unknown extension
// that is not UTF-8 text.
func DocumentFile(path string) (Document, error) {
	data, err := readFile(path)
	if err != nil {
		return Document{}, err
	}

	// A NUL byte is valid UTF-8, but occurs in binary files and not in text.
	mediaType := documentTypes[strings.ToLower(filepath.Ext(path))]
	readable := utf8.Valid(data) && !bytes.ContainsRune(data, 0)
	if mediaType == "" && !readable {
		return Document{}, fmt.Errorf("content: %s: %w: the extension is not known, and it is not text",
			path, ErrMediaType)
	}

	// Text in another encoding stays as bytes: in Source.Text, Of would replace its bytes.
	d := DocumentOf(mediaType, data)
	if mediaType == "" {
		d.Source.MediaType = "text/plain"
	}

	if isText := mediaType == "" || strings.HasPrefix(mediaType, "text/") ||
		textTypes[mediaType]; isText && readable {
		d.Source.Data, d.Source.Text = "", string(data)
	}
	d.Title = safetext.UTF8(filepath.Base(path))
	return d, nil
}

// readFile reads a regular file of at most maxFile bytes that is not empty.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	defer f.Close()

	// Reading a pipe or a device could block, or never end.
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("content: %s: %w: not a regular file", path, ErrMediaType)
	}

	// The file may grow after Stat, so limit the reading too.
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	if len(data) == 0 || len(data) > maxFile {
		return nil, fmt.Errorf("content: %s: %w: %d bytes of at most %d", path, ErrFileSize, info.Size(), maxFile)
	}
	return data, nil
}

// imageType returns the media type of an image by its first bytes, or "".
func imageType(data []byte) string {
	for magic, mediaType := range map[string]string{
		"\x89PNG\r\n\x1a\n": "image/png",
		"\xff\xd8\xff":      "image/jpeg",
		"GIF87a":            "image/gif",
		"GIF89a":            "image/gif",
	} {
		if bytes.HasPrefix(data, []byte(magic)) {
			return mediaType
		}
	}

	// The other types need 12 bytes.
	if len(data) < 12 {
		return ""
	}

	// A container's type comes after a length field: at byte 8 in RIFF and in ISO base media files.
	switch kind := string(data[8:12]); {
	case string(data[:4]) == "RIFF" && kind == "WEBP":
		return "image/webp"
	case string(data[4:8]) != "ftyp":
		return ""
	case kind == "avif" || kind == "avis":
		return "image/avif"
	case kind == "heic" || kind == "heix" || kind == "heim" || kind == "heis":
		return "image/heic"
	case kind == "mif1" || kind == "msf1" || kind == "heif":
		return "image/heif"
	}
	return ""
}

// documentTypes maps the extensions of files to media types registered with IANA.
var documentTypes = map[string]string{
	".pdf": "application/pdf",
	".txt": "text/plain", ".log": "text/plain", ".md": "text/markdown",
	".csv": "text/csv", ".tsv": "text/tab-separated-values",
	".html": "text/html", ".htm": "text/html", ".xml": "application/xml", ".json": "application/json",
	".yaml": "application/yaml", ".yml": "application/yaml", ".rtf": "application/rtf",
	".doc": "application/msword", ".xls": "application/vnd.ms-excel", ".ppt": "application/vnd.ms-powerpoint",
	".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	".odt":  "application/vnd.oasis.opendocument.text", ".epub": "application/epub+zip",
	".wav": "audio/wav", ".mp3": "audio/mpeg", ".m4a": "audio/mp4", ".flac": "audio/flac", ".ogg": "audio/ogg",
	".mp4": "video/mp4", ".mov": "video/quicktime", ".webm": "video/webm", ".mpeg": "video/mpeg",
}

// textTypes holds the media types of text that do not begin with "text/".
var textTypes = map[string]bool{"application/json": true, "application/xml": true, "application/yaml": true}
