package png

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/image/font/gofont/goregular"

	"github.com/plait-dev/plait/dag"
)

func TestArabicIsJoinedAndReadsFromTheRight(t *testing.T) {
	for text, want := range map[string]string{
		"سلام":    " \ufee1\ufefc\ufeb3",
		"a باب b": "a \ufe8f\ufe8e\ufe91 b",
		"من هنا":  "\ufe8e\ufee8\ufeeb \ufee6\ufee3",
		"ءَا":     " \ufe8d\ufe80",
		"עברית":   "תירבע",
		"hello":   "hello",
		"漢字":      "漢字",
	} {
		require.Equal(t, want, arranged(text), text)
		require.Len(t, []rune(arranged(text)), len([]rune(text)))
	}
}

func TestFontsOfTheSystemAreFoundByName(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755))
	for _, name := range []string{"a/NotoSansCJK-Regular.ttc", "a/b/DejaVuSansMono.ttf", "a/NotoSansCJK-Bold.ttc", "a/NotoColorEmoji.ttf", "wqy-zenhei.txt"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("not a font"), 0o600))
	}
	want := []string{filepath.Join(dir, "a/b/DejaVuSansMono.ttf"), filepath.Join(dir, "a/NotoSansCJK-Regular.ttc")}
	require.Equal(t, want, systemFonts([]string{dir, filepath.Join(dir, "missing")}))

	others := &fallback{scale: 1, paths: want}
	defer others.close()
	require.Nil(t, others.find('漢', nil), "files that are no fonts are skipped")
}

// TestFontsAreAskedInTheirOrder also draws with each font that this machine has.
func TestFontsAreAskedInTheirOrder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "go.ttf")
	require.NoError(t, os.WriteFile(file, goregular.TTF, 0o600))
	others := &fallback{scale: 2, paths: []string{"missing.ttf", file}}
	defer others.close()
	plain, _, err := typefaces(2, others)
	require.NoError(t, err)
	require.NotNil(t, others.find('a', &plain.buf))
	require.Nil(t, plain.glyph('漢'), "none has it")

	d := dag.New().User("漢字 سلام 🙂")
	for _, path := range systemFonts(fontDirs()) {
		draw1(t, d, &Options{Fonts: []string{path}})
	}
	draw1(t, d, &Options{Fonts: systemFonts(fontDirs())})
}
