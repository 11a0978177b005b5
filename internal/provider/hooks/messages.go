package hooks

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about hooks.
var Messages = finding.NewCatalog("Hooks")

var (
	noPart = Messages.Invalid("hook_without_part",
		"Found a hook without `before` and `after`.",
		"Allowed: at least one of them.",
		"Set what runs before machines go out of service in `before`, and what undoes it in `after`.")

	oneAction = Messages.Invalid("hook_action",
		"Found {{if .given}}{{.given}}{{else}}none of `job`, `patch` and `http`{{end}}.",
		"Allowed: one of `job`, `patch` and `http`.",
		"Write a hook of its own for each.")

	placeholderInRollout = Messages.Invalid("hook_placeholder",
		"Found a placeholder, {{.placeholders}}, in a hook of scope `rollout`.",
		"Allowed: placeholders in hooks of scope `machine`, which run for each machine.",
		"Set `scope` to `machine`, or remove the placeholder.")

	invalidPatch = Messages.Invalid("invalid_object_patch",
		"The patch is not valid: {{.cause}}.",
		"Allowed: a merge patch (a mapping), or a list of JSON 6902 operations, in YAML.",
		"Write a patch that `kubectl patch --type merge` or `--type json` accepts.")
)
