package tf

import (
	"crypto/sha256"
	"fmt"
)

func DigestOf(texts ...string) string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q", texts)))
}
