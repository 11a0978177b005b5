package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

const (
	// mostLines is how many lines of one text are shown.
	mostLines = 3
	// mostSteps bounds the work to find the lines that two texts share.
	mostSteps = 250_000
	// before is how much is shown in front of what differs.
	before = 20
)

// pair is such as `1 -> 2`, of long values the part in which they begin to differ.
func pair(before, after string) string {
	from := shared([]rune(before), []rune(after))

	return part(before, from) + " -> " + part(after, from)
}

// shared is how much two sequences have in common at their beginning.
func shared[E comparable](a, b []E) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}

	return min(len(a), len(b))
}

// part is the text around an index of a long value.
func part(value string, at int) string {
	runes := []rune(value)
	if from := min(at, len(runes)) - before; len(runes) > longestValue && from > 0 {
		return "…" + short(string(runes[from:]))
	}

	return short(value)
}

// differentLines says which lines of two JSON strings differ, and nothing of what has one line.
func differentLines(before, after string) string {
	var was, is string
	if json.Unmarshal([]byte(before), &was) != nil || json.Unmarshal([]byte(after), &is) != nil ||
		!strings.Contains(was+is, "\n") {
		return ""
	}

	olds, news := strings.Split(was, "\n"), strings.Split(is, "\n")

	var (
		texts                   []string
		altered, added, removed int
	)

	for _, h := range hunks(olds, news) {
		// A replacement is reported as one change, line by line.
		both := min(h.olds, h.news)
		for i := range both {
			if altered++; altered <= mostLines {
				texts = append(texts, fmt.Sprintf("line %d: %s", h.at+i+1, pair(quoted(olds[h.from+i]), quoted(news[h.at+i]))))
			}
		}

		removed += h.olds - both
		added += h.news - both
	}

	if altered > mostLines {
		texts = append(texts, counted(altered-mostLines, "more ", "changed"))
	}

	if added > 0 {
		texts = append(texts, counted(added, "", "added"))
	}

	if removed > 0 {
		texts = append(texts, counted(removed, "", "removed"))
	}

	return strings.Join(texts, ", ")
}

func counted(n int, more, what string) string {
	if n == 1 {
		return fmt.Sprintf("1 %sline %s", more, what)
	}

	return fmt.Sprintf("%d %slines %s", n, more, what)
}

func quoted(line string) string {
	var text bytes.Buffer

	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)

	if err := encoder.Encode(line); err != nil {
		return line
	}

	return strings.TrimSuffix(text.String(), "\n")
}

// hunk is a replacement of lines: where, how many old ones, and how many new ones.
type hunk struct{ from, olds, at, news int }

// hunks are the differences of two texts, as few lines as possible. Of very long texts they are one.
func hunks(olds, news []string) []hunk {
	first := shared(olds, news)
	olds, news = olds[first:], news[first:]

	for len(olds) > 0 && len(news) > 0 && olds[len(olds)-1] == news[len(news)-1] {
		olds, news = olds[:len(olds)-1], news[:len(news)-1]
	}

	if len(olds)*len(news) > mostSteps {
		return []hunk{{from: first, olds: len(olds), at: first, news: len(news)}}
	}

	var (
		found  []hunk
		common = commonLines(olds, news)
		same   = true
	)

	for i, j := 0, 0; i < len(olds) || j < len(news); {
		if i < len(olds) && j < len(news) && olds[i] == news[j] {
			same = true
			i++
			j++

			continue
		}

		if same {
			same = false
			found = append(found, hunk{from: first + i, at: first + j})
		}

		if j == len(news) || i < len(olds) && common[i+1][j] >= common[i][j+1] {
			found[len(found)-1].olds++
			i++
		} else {
			found[len(found)-1].news++
			j++
		}
	}

	return found
}

// commonLines is how many lines the rests of two texts have in common, by where these begin.
func commonLines(olds, news []string) [][]int {
	common := make([][]int, len(olds)+1)
	for i := range common {
		common[i] = make([]int, len(news)+1)
	}

	for i := len(olds) - 1; i >= 0; i-- {
		for j := len(news) - 1; j >= 0; j-- {
			if olds[i] == news[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}

	return common
}
