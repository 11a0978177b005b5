package tf

import (
	"context"

	"github.com/hashicorp/terraform-plugin-log/tflog"
)

// LogDebug logs a line for finding the cause of a problem. Like LogInfo and LogWarn it may be called from several
// goroutines with one context.
func LogDebug(ctx context.Context, message string, fields ...map[string]any) {
	tflog.Debug(withOwnLogger(ctx), message, fields...) //nolint:forbidigo // this is the safe way
}

// LogInfo logs a line about the actions of an operation.
func LogInfo(ctx context.Context, message string, fields ...map[string]any) {
	tflog.Info(withOwnLogger(ctx), message, fields...) //nolint:forbidigo // this is the safe way
}

// LogWarn logs what is too late for a diagnostic.
func LogWarn(ctx context.Context, message string, fields ...map[string]any) {
	tflog.Warn(withOwnLogger(ctx), message, fields...) //nolint:forbidigo // this is the safe way
}

// Rollout is the log subsystem for what runs do to machines; TF_LOG_PROVIDER_TALOSOP_ROLLOUT is its level.
const Rollout = "rollout"

// rolloutLevel is the prefix of that variable.
const rolloutLevel = "TF_LOG_PROVIDER_TALOSOP"

// LogRollout logs a line about what a run does to machines. The context is one of MaskSecrets.
func LogRollout(ctx context.Context, message string, fields ...map[string]any) {
	tflog.SubsystemInfo(tflog.SubsystemMaskMessageStrings(ctx, Rollout), Rollout, message, fields...)
}

// withOwnLogger is a context with a copy of the logger's settings. tflog masks the fields of a logger in place, in a
// map that all lines of a context share (terraform-plugin-log 0.11, internal/logging/filtering.go ApplyMask): two
// concurrent lines would end the process with a concurrent map write.
func withOwnLogger(ctx context.Context) context.Context { return tflog.MaskMessageStrings(ctx) }
