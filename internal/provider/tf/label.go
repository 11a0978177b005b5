package tf

import (
	"regexp"
)

// Label is the name of an object that is also part of the names of others (RFC 1123).
var Label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
