package finding

import "strings"

// Messages are those that several concepts show.
var Messages = NewCatalog("Every resource")

var (
	protectedMessage = Messages.Error("deletion_protection",
		"Deletion protection of {{.kind}} {{.id}} is enabled",
		"{{.kind}} {{quote .id}} would be {{.operation}}, and its `deletion_protection` is true.",
		"Nothing was changed.",
		"To remove it, set `deletion_protection = false` and apply. Then plan the removal again.")

	lastControlPlaneDestroyed = Messages.Error("deletion_protection_cluster",
		"Deletion protection of {{.protected}} is enabled",
		"{{.object}} would be destroyed together with all other control planes of its cluster. "+
			"`deletion_protection` of {{.protected}} is true.",
		"Nothing was changed.",
		"To remove the cluster, set `deletion_protection = false` on all of them and apply. Then plan the removal again.")

	lastControlPlaneReplaced = Messages.Error("deletion_protection_replacement",
		"Deletion protection of {{.protected}} is enabled",
		"{{.object}} would be replaced together with all other control planes of its cluster. "+
			"`deletion_protection` of {{.protected}} is true.",
		"Nothing was changed.",
		"Replace one control plane in each apply.")

	lockedMessage = Messages.Error("locked_machines",
		"Machines of {{.kind}} {{.id}} are locked",
		"{{.kind}} {{quote .id}} would be {{.operation}}, and {{.machines}} {{plural .machines \"is\" \"are\"}} locked.",
		"Nothing was changed.",
		"To remove it, set `locked = false` on every machine that has it and apply. Then plan the removal again.")

	internalError = Messages.Error("internal_error",
		"Internal error",
		"{{.what}}.",
		"Report this with the version of the provider and the plan.")

	endlessPlan = Messages.Warning("endless_plan",
		"Internal error in the plan of {{.object}}",
		"The plan of the {{.object}} does not end. `operations` lists its beginning.",
		"The apply stops when nothing changes any more.",
		"Report this with the version of the provider and the plan.")

	invalidSetting = Messages.Invalid("invalid_setting",
		"Found {{.found}}{{if .machines}}, for {{brief .machines}}{{end}}.",
		"{{if .allowed}}Allowed: {{.allowed}}.{{end}}",
		"{{.fix}}{{if .converted}}\n\nThe patch as documents; the function convert_patches also keeps its comments and "+
			"secrets:\n\n{{.converted}}{{end}}")

	invalidSecrets = Messages.Invalid("invalid_secrets",
		"{{.problems}}.",
		"Allowed is YAML as `talosctl gen secrets` writes it.",
		"Use `bundle` of a talosop_secrets resource, or import the secrets of an existing cluster into one.")
)

// Protected is the error about a removal that deletion_protection forbids.
func Protected(object, id, operation string) Finding {
	return protectedMessage.At(Root("deletion_protection"), Args{"kind": object, "id": id, "operation": operation})
}

// What a plan does to objects whose machines it resets.
const (
	OperationDestroy = "destroyed"
	OperationReplace = "replaced"
)

// ProtectedEnd is the error about a plan that resets the last control plane of a cluster while deletion_protection
// forbids it.
func ProtectedEnd(object, operation, protected string) Finding {
	message := lastControlPlaneDestroyed
	if operation == OperationReplace {
		message = lastControlPlaneReplaced
	}

	return message.At(Root("deletion_protection"), Args{"object": object, "protected": protected})
}

// Locked is the error about an operation on a resource with locked machines; empty if none is locked.
func Locked(object, id, operation string, machines []string) List {
	if len(machines) == 0 {
		return nil
	}

	return List{lockedMessage.With(Args{"kind": object, "id": id, "operation": operation, "machines": machines})}
}

// Bug is an internal error of the provider.
func Bug(what string) Finding { return internalError.With(Args{"what": strings.TrimSuffix(what, ".")}) }

// Endless warns about a plan that repeats itself, which is an internal error.
func Endless(object string) Finding { return endlessPlan.With(Args{"object": object}) }

// InvalidSecrets is the error about a bundle that cannot be used. Its causes name parts of the bundle and never quote
// them.
func InvalidSecrets(at Path, err error) Finding {
	return invalidSecrets.At(at, Args{"problems": strings.Join(strings.Split(err.Error(), "\n"), "; ")})
}
