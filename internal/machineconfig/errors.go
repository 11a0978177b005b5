package machineconfig

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// Reasons a FieldError may wrap, for callers that decide by the kind of error.
var (
	// ErrNotYAML says that a patch is not YAML (JSON is YAML, too).
	ErrNotYAML = errors.New("not YAML")
	// ErrNotPatch means that a patch is YAML, but neither configuration documents nor a JSON 6902 list.
	ErrNotPatch = errors.New("not a configuration patch")
	// ErrMultiDocument says that a JSON 6902 patch meets a configuration of several documents.
	ErrMultiDocument = errors.New("JSON 6902 patches need a configuration of one document")
	// ErrUnknownField says that a patch has a field the machine configuration does not have.
	ErrUnknownField = errors.New("unknown configuration field")
	// ErrInvalidConfig says that settings and patches together make a configuration Talos refuses.
	ErrInvalidConfig = errors.New("invalid machine configuration")
)

// FieldError is one error in the settings of a cluster or machine. It names the field, so that the message can be
// shown at its attribute, and has what was found, what is allowed and what to do. It never contains a secret.
type FieldError struct {
	// Field is the path of the setting in the names of the provider's attributes: "endpoint",
	// "cni.urls[0]", `registries.mirrors["docker.io"].endpoints[1].url`. Settings of a Machine start with
	// "machine.", the patches of its pool are "pool.patches[n]". Empty when no single setting is at fault.
	Field string
	// Found is the given value, quoted.
	Found string
	// Allowed describes the allowed values.
	Allowed string
	// Fix is how to fix it; may be empty.
	Fix string
	// Converted is a patch in the form that is allowed, with secrets hidden; may be empty.
	Converted string
	// Err is one of the reasons above, or nil.
	Err error
}

// Error is the whole message on one line.
func (e *FieldError) Error() string {
	message := "found " + e.Found
	if e.Field != "" {
		message = e.Field + ": " + message
	}

	if e.Allowed != "" {
		message += "; allowed: " + e.Allowed
	}

	if e.Fix != "" {
		message += "; " + e.Fix
	}

	return message
}

// Unwrap gives the reason.
func (e *FieldError) Unwrap() error { return e.Err }

var stepPattern = regexp.MustCompile(`([a-z_0-9]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]`)

// Key is a step of a path into a map, as opposed to an attribute.
type Key string

// Steps takes Field apart: a string is an attribute, an int an element of a list, a Key one of a map.
func (e *FieldError) Steps() []any {
	var steps []any

	for _, match := range stepPattern.FindAllStringSubmatch(e.Field, -1) {
		switch {
		case match[1] != "":
			steps = append(steps, match[1])
		case match[2] != "":
			index, err := strconv.Atoi(match[2])
			if err != nil {
				return steps
			}

			steps = append(steps, index)
		default:
			key, err := strconv.Unquote(match[3])
			if err != nil {
				return steps
			}

			steps = append(steps, Key(key))
		}
	}

	return steps
}

// FieldErrors collects every FieldError in the tree of err, in order. An error of this package that is no
// FieldError is a bug or a failure of a library, not of the settings.
func FieldErrors(err error) []*FieldError {
	if err == nil {
		return nil
	}

	if found, ok := err.(*FieldError); ok { //nolint:errorlint // the tree is walked here
		return []*FieldError{found}
	}

	switch wrapped := err.(type) { //nolint:errorlint // the tree is walked here
	case interface{ Unwrap() []error }:
		var all []*FieldError
		for _, one := range wrapped.Unwrap() {
			all = append(all, FieldErrors(one)...)
		}

		return all
	case interface{ Unwrap() error }:
		return FieldErrors(wrapped.Unwrap())
	}

	return nil
}

// problems collects errors, so that all of them are reported at once.
type problems []error

func (p *problems) add(field, found, allowed, fix string) {
	*p = append(*p, &FieldError{Field: field, Found: found, Allowed: allowed, Fix: fix})
}

func (p *problems) err() error { return errors.Join(*p...) }

// at is the path of an element of a list.
func at(field string, index int) string { return fmt.Sprintf("%s[%d]", field, index) }

// under is the path of an element of a map.
func under(field, key string) string { return fmt.Sprintf("%s[%q]", field, key) }
