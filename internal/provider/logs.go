package provider

import (
	"context"
	"os"
	"slices"
	"strings"
)

// Logged is whether the CLI that began this process keeps logs: its environment has the level that it was asked for. A
// path alone makes none, nor does the level OFF.
func Logged(environment []string) bool {
	return slices.ContainsFunc(environment, func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")

		return strings.HasPrefix(name, "TF_LOG") && name != "TF_LOG_PATH" && value != "" && !strings.EqualFold(value, "off")
	})
}

// withoutLoggers is a context that ends with another one and has no loggers, where nobody keeps logs. The framework
// adds to its logger for each value of a plan the path of that value, to the context of all values after it
// (terraform-plugin-framework 1.19, MarkComputedNilsAsUnknown and NullifyWriteOnlyAttributes), so that a plan takes
// time with the square of its values; where it finds no logger it adds nothing.
func withoutLoggers(ctx context.Context) context.Context {
	if Logged(os.Environ()) {
		return ctx
	}

	bare, cancel := context.WithCancelCause(context.Background())
	context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })

	return bare
}
