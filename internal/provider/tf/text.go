package tf

import (
	"crypto/sha256"
	"fmt"
)

// DigestOf is a digest of texts in order, in hexadecimal.
func DigestOf(texts ...string) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", texts)))
}
