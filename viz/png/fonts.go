package png

import (
	"bytes"
	"cmp"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/go-text/typesetting/font"
	"github.com/go-text/typesetting/font/opentype"
)

// fontNames are the names of fonts with characters missing in Go Mono, without "-Regular" and in lower case, the best
// first.
var fontNames = []string{
	"dejavusansmono", "notosansmonocjk", "notosanscjk", "sourcehansans", "pingfang", "hiragino sans gb", "applesdgothicneo", "msgothic", "msyh",
	"malgun", "wqy-microhei", "wqy-zenhei", "droidsansfallback", "notosansarabic", "notonaskharabic", "geezapro", "notosanshebrew",
	"notosansdevanagari", "lohit-devanagari", "kohinoor", "nirmala", "notosansthai", "thonburi", "leelawui", "notosansbengali", "notosanstamil",
	"notosanstelugu", "notosansgujarati", "notosansgurmukhi", "notosanskannada", "notosansmalayalam", "notosanssinhala", "notosanskhmer",
	"notosanslao", "notosansmyanmar", "notosansethiopic", "notosansarmenian", "notosansgeorgian", "arial", "arial unicode", "dejavusans",
	"freeserif", "notocoloremoji", "apple color emoji", "notoemoji", "symbola", "symbola_hint", "seguiemj", "seguisym", "notosanssymbols",
	"notosanssymbols2", "unifont",
}

// emojiFonts are the fonts in fontNames to try first for an emoji.
var emojiFonts = []string{"notocoloremoji", "apple color emoji", "notoemoji", "seguiemj"}

// fontDirs returns the font folders of the system.
func fontDirs() []string {
	home, _ := os.UserHomeDir()
	switch runtime.GOOS {
	case "windows":
		return []string{filepath.Join(os.Getenv("WINDIR"), "Fonts")}
	case "darwin":
		return []string{"/System/Library/Fonts", "/Library/Fonts", filepath.Join(home, "Library/Fonts")}
	}
	return []string{"/usr/share/fonts", "/usr/local/share/fonts", filepath.Join(home, ".local/share/fonts"), filepath.Join(home, ".fonts")}
}

// systemFonts returns the fonts of fontNames in files below dirs, the best first.
func systemFonts(dirs []string) []*otherFont {
	type found struct {
		rank int
		font *otherFont
	}
	var list []found
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return nil // treat an unreadable folder as empty
			}

			ext := strings.ToLower(filepath.Ext(path))
			stem := strings.ToLower(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
			stem = strings.TrimSuffix(stem, "-regular")
			rank := slices.Index(fontNames, stem)
			if rank >= 0 && slices.Contains([]string{".ttf", ".ttc", ".otf", ".otc"}, ext) {
				list = append(list, found{rank, &otherFont{path: path, emoji: slices.Contains(emojiFonts, stem)}})
			}
			return nil
		})
	}

	// The path decides between files of the same name: the result does not depend on the order of the folders.
	slices.SortFunc(list, func(a, b found) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.font.path, b.font.path))
	})
	fonts := make([]*otherFont, len(list))
	for i, f := range list {
		fonts[i] = f.font
	}
	return fonts
}

// fallback holds the fonts for characters missing in Go Mono. It lists the fonts at the first such character, and reads
// them one after the other until one has the character.
type fallback struct {
	fonts  []*otherFont
	search bool // look for the fonts of the system first
}

// otherFont is a font in a file.
type otherFont struct {
	path     string
	emoji    bool                     // it is the first choice for an emoji
	read     bool                     // true once the file was read
	face     *font.Face               // nil before reading, and for a file without a font
	pictures map[font.GID]image.Image // decoded pictures, at most maxPictures; nil for one that cannot be decoded
}

// find returns the first font with all of these characters, or nil. Characters that are not shown do not count.
func (b *fallback) find(text []rune, emoji bool) *otherFont {
	if b.search {
		b.fonts, b.search = systemFonts(fontDirs()), false
	}

	// Fonts for emoji come first for an emoji, and last for other text.
	for _, first := range []bool{emoji, !emoji} {
		for _, f := range b.fonts {
			if f.emoji == first && f.draws(text) {
				return f
			}
		}
	}
	return nil
}

// draws reports whether the font has all of these characters, and an image of the first.
func (f *otherFont) draws(text []rune) bool {
	if !f.read {
		f.read, f.face = true, readFont(f.path)
	}
	if f.face == nil {
		return false
	}

	for i, r := range text {
		glyph, ok := f.face.NominalGlyph(r)
		if !ok && shown(r) || i == 0 && !f.hasImage(glyph) {
			return false
		}
	}
	return true
}

// hasImage reports whether a glyph has an outline or a picture.
func (f *otherFont) hasImage(glyph font.GID) bool {
	outline, picture := f.image(glyph)
	return len(outline.Segments) > 0 || picture != nil
}

// image returns the picture of a glyph, or its outline if it has none. For a glyph of several colored outlines, it
// returns the plain outline without color.
func (f *otherFont) image(glyph font.GID) (font.GlyphOutline, image.Image) {
	switch data := f.face.GlyphData(glyph).(type) {
	case font.GlyphOutline:
		return data, nil
	case font.GlyphSVG:
		return data.Outline, nil
	case font.GlyphBitmap:
		return font.GlyphOutline{}, f.picture(glyph, data)
	}
	outline, _ := f.face.GlyphDataOutline(glyph)
	return outline, nil
}

// maxPictures is the limit on decoded pictures of a font. Each takes about 70 KB.
const maxPictures = 200

// picture decodes the picture of a glyph and keeps it. It returns nil if the picture is not a PNG.
func (f *otherFont) picture(glyph font.GID, data font.GlyphBitmap) image.Image {
	if img, ok := f.pictures[glyph]; ok {
		return img
	}

	var img image.Image
	if data.Format == font.PNG {
		img, _ = png.Decode(bytes.NewReader(data.Data))
	}
	if f.pictures == nil || len(f.pictures) >= maxPictures {
		f.pictures = map[font.GID]image.Image{}
	}
	f.pictures[glyph] = img
	return img
}

// readFont reads a font, the first of a collection. It returns nil if there is none in the file.
func readFont(path string) *font.Face {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil // a pipe would never be read to its end
	}
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()

	fonts, err := opentype.NewLoaders(file)
	if err != nil || len(fonts) == 0 {
		return nil
	}
	parsed, err := font.NewFont(fonts[0])
	if err != nil {
		return nil
	}
	return font.NewFace(parsed)
}
