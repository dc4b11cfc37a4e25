package png

import (
	"slices"
	"unicode"
)

// An Arabic letter has up to four forms in a row in Unicode: alone, at the end of a word, at its beginning, and in the
// middle. forms has the first of them for each letter. Letters in neverJoin have only the first two.
var forms = map[rune]rune{
	'ء': 0xfe80, 'آ': 0xfe81, 'أ': 0xfe83, 'ؤ': 0xfe85, 'إ': 0xfe87, 'ئ': 0xfe89, 'ا': 0xfe8d, 'ب': 0xfe8f, 'ة': 0xfe93, 'ت': 0xfe95,
	'ث': 0xfe99, 'ج': 0xfe9d, 'ح': 0xfea1, 'خ': 0xfea5, 'د': 0xfea9, 'ذ': 0xfeab, 'ر': 0xfead, 'ز': 0xfeaf, 'س': 0xfeb1, 'ش': 0xfeb5,
	'ص': 0xfeb9, 'ض': 0xfebd, 'ط': 0xfec1, 'ظ': 0xfec5, 'ع': 0xfec9, 'غ': 0xfecd, 'ف': 0xfed1, 'ق': 0xfed5, 'ك': 0xfed9, 'ل': 0xfedd,
	'م': 0xfee1, 'ن': 0xfee5, 'ه': 0xfee9, 'و': 0xfeed, 'ى': 0xfeef, 'ي': 0xfef1,
}

const neverJoin = "آأؤإاةدذرزوى"

// laa has the first of the two forms of ل with one of these letters after it, which are written as one.
var laa = map[rune]rune{'آ': 0xfef5, 'أ': 0xfef7, 'إ': 0xfef9, 'ا': 0xfefb}

// arranged returns a line with its Arabic words joined, and these and Hebrew words from right to left, as they are drawn.
// It has as many characters as before.
func arranged(line string) string {
	if !slices.ContainsFunc([]rune(line), rightToLeft) {
		return line
	}

	text := []rune(line)
	for from := 0; from < len(text); from++ {
		if !rightToLeft(text[from]) {
			continue
		}

		// The words end with the last such letter before something else than spaces.
		to := from + 1
		for i := to; i < len(text) && (rightToLeft(text[i]) || text[i] == ' ' || unicode.Is(unicode.Mn, text[i])); i++ {
			if text[i] != ' ' {
				to = i + 1
			}
		}
		words := joined(text[from:to])
		slices.Reverse(words)
		copy(text[from:to], words)
		from = to
	}
	return string(text)
}

// rightToLeft reports whether r is a letter of Arabic or Hebrew.
func rightToLeft(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Hebrew) && unicode.IsLetter(r)
}

// joined returns the forms of letters, in the order in which they are read. Marks are left out. Spaces at the end make up
// for what is left out.
func joined(text []rune) []rune {
	letters := slices.DeleteFunc(slices.Clone(text), func(r rune) bool { return unicode.Is(unicode.Mn, r) })
	out := make([]rune, 0, len(text))
	for i := 0; i < len(letters); i++ {
		r := letters[i]
		first, known := forms[r]
		if !known {
			out = append(out, r)
			continue
		}

		before := i > 0 && joinsNext(letters[i-1])
		ligature := i+1 < len(letters) && r == 'ل' && laa[letters[i+1]] != 0
		after := i+1 < len(letters) && joinsNext(r) && forms[letters[i+1]] != 0 && letters[i+1] != 'ء'
		switch {
		case ligature && before:
			first = laa[letters[i+1]] + 1
		case ligature:
			first = laa[letters[i+1]]
		case r == 'ء':
		case before && after:
			first += 3
		case after:
			first += 2
		case before:
			first++
		}
		out = append(out, first)
		if ligature {
			i++
		}
	}

	for len(out) < len(text) {
		out = append(out, ' ')
	}
	return out
}

// joinsNext reports whether r is joined to the letter after it.
func joinsNext(r rune) bool {
	return forms[r] != 0 && r != 'ء' && !slices.Contains([]rune(neverJoin), r)
}
