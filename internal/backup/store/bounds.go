package store

import "io"

// AtMost reads so many bytes and their end. What has more ends with that error, once it was seen that it has.
func AtMost(from io.Reader, bytes int64, more error) io.Reader {
	return &atMost{from: from, left: bytes, more: more}
}

type atMost struct {
	from io.Reader
	left int64
	more error
}

func (a *atMost) Read(p []byte) (int, error) {
	if a.left < 0 {
		return 0, a.more
	}

	if int64(len(p)) > a.left+1 {
		p = p[:a.left+1]
	}

	n, err := a.from.Read(p)
	if a.left -= int64(n); a.left < 0 {
		return n - 1, a.more
	}

	return n, err
}
