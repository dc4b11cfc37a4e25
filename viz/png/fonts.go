package png

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"

	"github.com/plait-dev/plait/viz/internal/ink"
)

// fontNames are the names of fonts with letters that Go Mono lacks, without "-Regular" and in lower case, the best first.
// Color fonts are not among them: they hold pictures in place of outlines.
var fontNames = []string{
	"dejavusansmono", "notosansmonocjk", "notosanscjk", "sourcehansans", "pingfang", "hiragino sans gb", "applesdgothicneo", "msgothic", "msyh",
	"malgun", "wqy-microhei", "wqy-zenhei", "droidsansfallback", "notosansarabic", "notonaskharabic", "geezapro", "arial", "arial unicode",
	"dejavusans", "notoemoji", "symbola", "seguisym", "notosanssymbols2", "unifont",
}

// fontDirs returns the folders in which the system keeps fonts.
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

// systemFonts returns the files below dirs with a font of fontNames, the best first.
func systemFonts(dirs []string) []string {
	type found struct {
		rank int
		path string
	}
	var list []found
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return nil // a folder that cannot be read has no fonts
			}

			ext := strings.ToLower(filepath.Ext(path))
			stem := strings.ToLower(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
			rank := slices.Index(fontNames, strings.TrimSuffix(stem, "-regular"))
			if rank >= 0 && slices.Contains([]string{".ttf", ".ttc", ".otf", ".otc"}, ext) {
				list = append(list, found{rank, path})
			}
			return nil
		})
	}

	slices.SortFunc(list, func(a, b found) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.path, b.path)) })
	paths := make([]string, len(list))
	for i, f := range list {
		paths[i] = f.path
	}
	return paths
}

// fallback holds the fonts for letters that Go Mono lacks. Fonts are looked for when the first such letter is drawn, and
// opened one after the other until one has the letter.
type fallback struct {
	scale  int
	paths  []string // not opened yet
	search bool     // look for the fonts of the system first
	opened []*sfnt.Font
	faces  []font.Face
	files  []*os.File
}

// close closes the files of the fonts.
func (b *fallback) close() {
	for _, f := range b.files {
		_ = f.Close() // it was only read
	}
}

// find returns the first face with a letter for r, or nil.
func (b *fallback) find(r rune, buf *sfnt.Buffer) font.Face {
	if b.search {
		b.paths, b.search = systemFonts(fontDirs()), false
	}

	for i := 0; ; i++ {
		if i == len(b.opened) && !b.open() {
			return nil
		}
		if index, err := b.opened[i].GlyphIndex(buf, r); err == nil && index != 0 {
			return b.faces[i]
		}
	}
}

// open opens the next font that can be read, and reports whether there was one. Of a collection it takes the first.
func (b *fallback) open() bool {
	for len(b.paths) > 0 {
		path := b.paths[0]
		b.paths = b.paths[1:]

		file, err := os.Open(path)
		if err != nil {
			continue
		}
		b.files = append(b.files, file)
		collection, err := opentype.ParseCollectionReaderAt(file)
		if err != nil {
			continue
		}
		parsed, err := collection.Font(0)
		if err != nil {
			continue
		}
		face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: float64(ink.FontSize * b.scale), DPI: 72})
		if err != nil {
			continue
		}

		b.opened, b.faces = append(b.opened, parsed), append(b.faces, face)
		return true
	}
	return false
}
