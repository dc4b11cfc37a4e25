package content_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plait-dev/plait/content"
)

func write(t *testing.T, name, data string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
	return path
}

func TestImageFileKnowsImagesByTheirBytes(t *testing.T) {
	for data, mediaType := range map[string]string{
		"\x89PNG\r\n\x1a\n…": "image/png", "\xff\xd8\xff\xe0": "image/jpeg", "GIF89a": "image/gif", "GIF87a…": "image/gif",
		"RIFF\x10\x00\x00\x00WEBPVP8 ": "image/webp", "\x00\x00\x00\x18ftypheic": "image/heic", "\x00\x00\x00\x18ftypmif1": "image/heif",
		"\x00\x00\x00\x18ftypavif": "image/avif",
	} {
		image, err := content.ImageFile(write(t, "picture.txt", data))
		require.NoError(t, err, mediaType)
		require.Equal(t, content.ImageOf(mediaType, []byte(data)), image)
		require.Equal(t, mediaType, image.Source.MediaType)
		_, err = content.Of(image)
		require.NoError(t, err)
	}
	for _, data := range []string{"hello", "\x89PNG", "RIFF\x10\x00\x00\x00WAVE", "\x00\x00\x00\x18ftypmp42", "<svg/>", "%PDF-1.7 …"} {
		_, err := content.ImageFile(write(t, "picture.png", data))
		require.ErrorIs(t, err, content.ErrMediaType, data)
		require.ErrorContains(t, err, "picture.png")
	}
}

func TestDocumentFileKnowsDocumentsByTheirNames(t *testing.T) {
	const word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	for name, test := range map[string]struct {
		data string
		want content.Document
	}{
		"a.PDF":    {"%PDF", content.DocumentOf("application/pdf", []byte("%PDF"))},
		"a.docx":   {"PK", content.DocumentOf(word, []byte("PK"))},
		"a.md":     {"# A", content.Document{Source: content.Source{MediaType: "text/markdown", Text: "# A"}}},
		"a.json":   {"{}", content.Document{Source: content.Source{MediaType: "application/json", Text: "{}"}}},
		"latin.md": {"\xe9", content.DocumentOf("text/markdown", []byte("\xe9"))},
		"Makefile": {"all:", content.Document{Source: content.Source{MediaType: "text/plain", Text: "all:"}}},
	} {
		path := write(t, name, test.data)
		document, err := content.DocumentFile(path)
		require.NoError(t, err, name)
		test.want.Title = name
		require.Equal(t, test.want, document)
	}
	for _, data := range []string{"\xff\xfe", "a\x00b"} {
		_, err := content.DocumentFile(write(t, "a.bin", data))
		require.ErrorIs(t, err, content.ErrMediaType)
	}
}

func TestFilesThatCannotBeSent(t *testing.T) {
	huge := write(t, "a.txt", "")
	require.NoError(t, os.Truncate(huge, 100<<20+1))
	for name, test := range map[string]struct {
		path string
		want error
	}{
		"no file":      {filepath.Join(t.TempDir(), "none"), fs.ErrNotExist},
		"a directory":  {t.TempDir(), content.ErrMediaType},
		"an empty one": {write(t, "a.txt", ""), content.ErrFileSize},
		"a huge one":   {huge, content.ErrFileSize},
	} {
		_, err := content.ImageFile(test.path)
		require.ErrorIs(t, err, test.want, name)
		_, err = content.DocumentFile(test.path)
		require.ErrorIs(t, err, test.want, name)
		require.True(t, strings.HasPrefix(err.Error(), "content: "), err)
	}
}

// A picture from a file, beside a question.
func ExampleImageFile() {
	dir, err := os.MkdirTemp("", "plait")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "cat.png")
	if err := os.WriteFile(path, []byte("\x89PNG\r\n\x1a\n…"), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	cat, err := content.ImageFile(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	blocks, err := content.Of(content.Text{Text: "What is this?"}, cat)
	fmt.Println(blocks.Len(), cat.Source.MediaType, err)
	// Output: 2 image/png <nil>
}

func ExampleImageOf() {
	image := content.ImageOf("image/png", []byte("\x89PNG"))
	fmt.Println(image.Source.MediaType, image.Source.Data)
	// Output: image/png iVBORw==
}

func ExampleDocumentFile() {
	dir, err := os.MkdirTemp("", "plait")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "notes.md")
	if err := os.WriteFile(path, []byte("# Oslo\nIt rains."), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	notes, err := content.DocumentFile(path)
	fmt.Printf("%s (%s): %q %v\n", notes.Title, notes.Source.MediaType, notes.Source.Text, err)
	// Output: notes.md (text/markdown): "# Oslo\nIt rains." <nil>
}
