// Package progress reports the progress of an apply while it runs: in a file, line by line, and as OpenTelemetry
// spans. Terraform shows the messages of a provider when an operation is over, which for a rollout is hours later.
package progress
