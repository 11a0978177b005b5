// Package example has what each rule of the command changes.
package example

import "errors"

var errNone = errors.New("none")

const limit = 10

// Weak lists the names of the even numbers, with a default.
func Weak(numbers []int, strict bool) (names []string, err error) {
	if len(numbers) == 0 && strict {
		return nil, errNone
	}

	for _, n := range numbers {
		switch {
		case n < 0 || n > limit:
			continue
		case n%2 == 1:
			return nil, errNone
		}

		names = append(names, text(n+1))
	}

	return names, nil
}

// Endless never ends with a mutant.
func Endless() (sum int) {
	for i := 0; i < 3; {
		i++
		sum += i
	}

	return sum
}

func text(n int) string { return string(rune('a' + n)) }

// Unreached has no test.
func Unreached() bool { return true }
