// Package expansion limits small inputs that expand to large ones: compressed data, and YAML with repeated
// aliases. Pure.
package expansion

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// ErrTooLarge is an input that expands to more than its reader allows.
var ErrTooLarge = errors.New("too large after expansion")

// Budget is how many more bytes may come out of one input, counted over all of its parts however they are nested.
type Budget struct{ most, left int64 }

// NewBudget allows a number of bytes.
func NewBudget(most int64) *Budget { return &Budget{most: most, left: most} }

// Take counts bytes. Its error is ErrTooLarge, once more than allowed were taken.
func (b *Budget) Take(count int64) error {
	if count < 0 || count > b.left {
		b.left = 0

		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, b.most)
	}

	b.left -= count

	return nil
}

// Reader counts what is read. It returns ErrTooLarge in place of the bytes beyond the budget.
func (b *Budget) Reader(from io.Reader) io.Reader { return &reader{from: from, budget: b} }

type reader struct {
	from   io.Reader
	budget *Budget
}

// Read implements io.Reader. It asks for one byte more than is left, because the input may end exactly there.
func (r *reader) Read(p []byte) (int, error) {
	if int64(len(p)) > r.budget.left+1 {
		p = p[:r.budget.left+1]
	}

	n, err := r.from.Read(p)
	if full := r.budget.Take(int64(n)); full != nil {
		return 0, full
	}

	return n, err
}

// Gunzip decompresses content to at most so many bytes, or returns ErrTooLarge.
func Gunzip(content []byte, most int64) ([]byte, error) {
	var plain bytes.Buffer
	if err := gunzip(&plain, content, most); err != nil {
		return nil, err
	}

	return plain.Bytes(), nil
}

// CheckGzip is Gunzip without a result.
func CheckGzip(content []byte, most int64) error { return gunzip(io.Discard, content, most) }

func gunzip(to io.Writer, content []byte, most int64) error {
	zipped, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return err
	}

	if _, err := io.Copy(to, NewBudget(most).Reader(zipped)); err != nil {
		return err
	}

	return zipped.Close()
}
