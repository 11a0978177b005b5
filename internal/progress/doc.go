// Package progress tells people and programs what an apply does while it does it: in a file, line by line, and as spans
// of OpenTelemetry. Terraform shows what a provider says when an operation is over, which for a rollout is hours later.
package progress
