// Package parent tells when the process that started this one has ended. A CLI that is killed asks its providers for
// nothing any more, and go-plugin serves until it is asked to stop (go-plugin 1.7, Serve).
package parent
