// Package environ reads the environment variables that switch something on or off.
package environ

import (
	"fmt"
	"os"
	"strconv"
)

// Switch reports whether a variable is true, by the rules of [strconv.ParseBool]. Unset it is off. Any other value
// is an error, an empty one too: ignoring it would leave off what its author wants on.
func Switch(name string) (bool, error) {
	value, set := os.LookupEnv(name)
	if !set {
		return false, nil
	}

	on, err := strconv.ParseBool(value)
	if err != nil {
		return false, fmt.Errorf("environment variable %s is %q; set it to true, false, 1 or 0, or unset it", name, value)
	}

	return on, nil
}
