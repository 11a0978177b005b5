package provider

import (
	"context"
	"os"
	"slices"
	"strings"
)

// Logged reports whether the CLI that started this process keeps logs: its environment sets a log level. A path
// alone enables none, nor does the level OFF.
func Logged(environment []string) bool {
	return slices.ContainsFunc(environment, func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")

		return strings.HasPrefix(name, "TF_LOG") && name != "TF_LOG_PATH" && value != "" && !strings.EqualFold(value, "off")
	})
}

// withoutLoggers returns a child context without loggers when the CLI keeps no logs. For each value of a plan, the
// framework adds the path of that value to the logger in the context of all later values (terraform-plugin-framework
// 1.19, MarkComputedNilsAsUnknown and NullifyWriteOnlyAttributes). A plan then takes time quadratic in its values.
// Without a logger the framework adds nothing.
func withoutLoggers(ctx context.Context) context.Context {
	if Logged(os.Environ()) {
		return ctx
	}

	bare, cancel := context.WithCancelCause(context.Background())
	context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })

	return bare
}
