package picture

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// OneLine is a text in one line of at most limit runes, without invisible characters that change its display, such as
// those for the text direction.
func OneLine(text string, limit int) string {
	var out strings.Builder

	for _, r := range text {
		switch {
		case r == utf8.RuneError || r == '\uFFFE' || r == '\uFFFF':
			out.WriteRune(utf8.RuneError)
		case unicode.IsSpace(r) || unicode.IsControl(r):
			out.WriteByte(' ')
		case unicode.Is(unicode.Cf, r):
		default:
			out.WriteRune(r)
		}
	}

	return shortened(strings.Join(strings.Fields(out.String()), " "), limit)
}

// shortened cuts a text that is longer than limit runes.
func shortened(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}

	return text
}

// wrapped breaks a text into at most most lines of a width: between words, after separators of addresses and
// versions, and anywhere in a longer word.
func wrapped(text string, width, most int) []string {
	var lines []string

	for rest := []rune(text); len(rest) > 0; {
		n, last := fitting(rest, width), len(lines) == most-1

		switch {
		case n == len(rest):
		case last:
			return append(lines, strings.TrimSpace(string(rest[:max(n-1, 1)]))+"…")
		default:
			n = lineEnd(rest, n)
		}

		lines = append(lines, strings.TrimSpace(string(rest[:n])))
		rest = []rune(strings.TrimSpace(string(rest[n:])))
	}

	return lines
}

// lineEnd is where a line with room for n runes ends in a longer text.
func lineEnd(rest []rune, n int) int {
	if rest[n] == ' ' {
		return n
	}

	for i := n; i > n/3; i-- {
		if rest[i-1] == ' ' {
			return i
		}
	}

	for i := n; i > n/2; i-- {
		if strings.ContainsRune("-/,:.", rest[i-1]) {
			return i
		}
	}

	return n
}

// fitting is how many runes fit into a width, at least one.
func fitting(text []rune, width int) int {
	used := 0.0

	for i, r := range text {
		if used += runeWidth(r); used > float64(width) && i > 0 {
			return i
		}
	}

	return len(text)
}

// runeWidth is the approximate width of a rune at 13 pixels in the widest usual font, because the reader's font is
// unknown. East Asian scripts are square.
func runeWidth(r rune) float64 {
	const hangul = 0x1100 // the first of the wide ones

	switch {
	case r >= hangul && r != '…':
		return 14
	case strings.ContainsRune("iIljt.,:;()[]'| ", r):
		return 4.9
	case strings.ContainsRune("mwMW", r):
		return 12
	default:
		return 8
	}
}
