package backup

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
)

// unit is what sizes of etcd's databases are multiples of (etcd 3.6, etcdutl snapshot).
const (
	unit    = 512
	sumSize = sha256.Size
)

// ErrIncomplete is a stream that is no complete snapshot.
var ErrIncomplete = errors.New("the snapshot is incomplete")

// verifier is an io.Writer that follows a snapshot and knows in the end whether it is
// whole. It holds back the last bytes, which are the sum if the stream ends there.
type verifier struct {
	sum  hash.Hash
	tail []byte
	size int64
}

func newVerifier() *verifier { return &verifier{sum: sha256.New()} }

// Write follows the stream; it never fails.
func (v *verifier) Write(p []byte) (int, error) {
	v.size += int64(len(p))

	// Large pieces are hashed where they are.
	if len(p) >= sumSize {
		v.sum.Write(v.tail)
		v.sum.Write(p[:len(p)-sumSize])
		v.tail = append(v.tail[:0], p[len(p)-sumSize:]...)

		return len(p), nil
	}

	v.tail = append(v.tail, p...)
	if surplus := len(v.tail) - sumSize; surplus > 0 {
		v.sum.Write(v.tail[:surplus])
		v.tail = append(v.tail[:0], v.tail[surplus:]...)
	}

	return len(p), nil
}

// all is the SHA-256 of the whole stream, its last bytes included. The stream has ended.
func (v *verifier) all() []byte {
	v.sum.Write(v.tail)

	return v.sum.Sum(nil)
}

// verify is nil when what was written is a database and its sum.
func (v *verifier) verify() error {
	switch {
	case v.size > 0 && v.size%unit == 0:
		return fmt.Errorf("%w: its %d bytes have no checksum at the end, like an interrupted stream or a copy of a "+
			"member's database; take it with `talosctl etcd snapshot`", ErrIncomplete, v.size)
	case v.size <= sumSize || v.size%unit != sumSize:
		return fmt.Errorf("%w: its %d bytes are not a database with a checksum", ErrIncomplete, v.size)
	case !bytes.Equal(v.sum.Sum(nil), v.tail):
		return fmt.Errorf("%w: the checksum does not match its %d bytes", ErrIncomplete, v.size-sumSize)
	default:
		return nil
	}
}
