package viz

import (
	"slices"
	"strings"

	"github.com/plait-dev/plait/internal/safetext"
	"github.com/plait-dev/plait/viz/internal/ink"
)

// The measures of text, in pixels.
const (
	fontSize   = ink.FontSize
	lineHeight = ink.LineHeight
	lineCells  = 40 // a longer line is broken
	fewCells   = 24 // the same, to narrow a picture that is too wide
	padX       = ink.PadX
	padY       = ink.PadY
	minWidth   = 72 // of a box
)

// textWidth returns the width of a line of that many cells in pixels, rounded up to an even number. A letter of the
// common monospaced fonts is 0.60 of the font size wide.
func textWidth(cells int) int { return (cells*29/4 + 3) / 2 * 2 }

// boxSize returns the size of a box with these lines. The width is even: the middle is then a whole number.
func boxSize(lines []string, shape string) (w, h int) {
	for _, line := range lines {
		w = max(w, safetext.Width(line))
	}

	beside, above := ink.Padding(shape)
	return max(textWidth(w)+2*padX, minWidth) + 2*beside, max(len(lines), 1)*lineHeight + 2*padY + above
}

// wrap breaks a plain text into lines of at most that many cells, at spaces if possible. heading is the number of lines
// for the first line of the text. right reports for each line whether it reads from right to left: all pieces of a line
// of the text have its direction. It is nil if none does.
func wrap(text string, cells int) (out []string, right []bool, heading int) {
	mixed := safetext.HasFromRight(text)
	for line := range strings.SplitSeq(text, "\n") {
		fromRight := mixed && safetext.FromRight(line)
		for {
			head, rest := breakLine(line, cells)
			out = append(out, head)
			if mixed {
				right = append(right, fromRight)
			}
			if rest == "" {
				break
			}
			line = rest
		}

		if heading == 0 {
			heading = len(out)
		}
	}

	if !slices.Contains(right, true) {
		right = nil
	}
	return out, right, heading
}

// breakLine cuts line after at most that many cells: after the last space or slash among them, unless that is near the
// beginning.
func breakLine(line string, cells int) (head, rest string) {
	used, stop := 0, 0
	for end := 0; end < len(line); {
		_, width, size := safetext.Cluster(line[end:])

		// A line takes its first cluster even if that is too wide. Otherwise wrap would not end.
		if used+width > cells && end > 0 {
			if stop > 0 {
				end = stop
			}
			return strings.TrimRight(line[:end], " "), strings.TrimLeft(line[end:], " ")
		}

		used, end = used+width, end+size
		if (line[end-1] == ' ' || line[end-1] == '/') && used > cells/3 {
			stop = end
		}
	}
	return line, ""
}
