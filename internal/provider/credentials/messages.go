package credentials

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about kubeconfigs and talosconfigs.
var Messages = finding.NewCatalog("Kubeconfig and talosconfig")

var (
	invalidFileTTL = Messages.Invalid("invalid_file_ttl",
		"Found {{quote .value}}.",
		"Allowed: a duration from 1m to 720h, such as 8h.",
		"Set how long a person may use the file. An apply writes new credentials when they are due.")

	invalidTTL = Messages.Invalid("invalid_ttl",
		"Found {{quote .value}}.",
		"Allowed: a duration above 0s and up to 24h, such as 30m or 8h.",
		"Set the length of one run, because each run issues its own credentials.")

	invalidRenewBefore = Messages.Invalid("invalid_renew_before",
		"Found {{quote .value}} with a `ttl` of {{.ttl}}.",
		"Allowed: a duration from 0s to less than `ttl`.",
		"Set a shorter duration, or a longer `ttl`.")

	emptyPath = Messages.Invalid("empty_file_path",
		"Found an empty path.", "Allowed: the path of a file.", "Set a path such as ./kubeconfig.")

	pathWithHome = Messages.Invalid("file_path_with_tilde",
		"Found {{quote .path}}.",
		"Allowed: a path without ~, which only shells resolve.",
		"Write pathexpand({{quote .path}}).")

	pathOfFolder = Messages.Invalid("file_path_of_folder",
		"Found {{quote .path}}.",
		"Allowed: the path of a file, not of a folder.",
		"Add the name of the file.")

	pathTaken = Messages.Invalid("file_path_taken",
		"Found {{quote .path}}, which {{.content}}.",
		"Allowed: a new path, or a {{.kind}} that contains only credentials of this cluster.",
		"Choose another path, or move the file away. {{if .kubeconfig}}kubectl reads several files from KUBECONFIG, "+
			"separated by colons.{{else}}`talosctl config merge` adds one file to another.{{end}}")

	emptyUser = Messages.Invalid("empty_user",
		"Found an empty name.", "Allowed: any other name.", "Set the name of the user of the file, or remove `user`.")

	emptyGroup = Messages.Invalid("empty_group",
		"Found an empty name.", "Allowed: the name of a group.", "Remove the element.")

	noRoles = Messages.Invalid("no_roles",
		"Found an empty list.", "Allowed: {{.roles}}.", "List at least one role, or remove `roles`.")

	unknownRole = Messages.Invalid("unknown_role",
		"Found {{quote .role}}.", "Allowed: {{.roles}}.", "Use one of these.")

	noEndpoints = Messages.Invalid("talosconfig_without_endpoints",
		"{{if .hidden}}Only the host cluster reaches the addresses of this cluster in containers."+
			"{{else}}Neither `endpoints` nor the cluster handle has an address.{{end}}",
		"Allowed: addresses at which the Talos API of control planes answers.",
		"List at least one address. For machines in containers, the ephemeral resource talosop_talosconfig opens a tunnel.")

	rewrittenForCluster = Messages.Warning("credentials_rewritten",
		"Credentials in {{.path}} will be written again",
		"Since the file was written, {{.changes}} of the cluster changed.",
		"The old credentials stay valid until {{.ends}}, if the cluster still accepts them.")

	notWritten = Messages.Error("credentials_not_written",
		"Unable to write {{.kind}} {{.path}}",
		"talosop could not write the file: {{.cause}}.",
		"The previous content is unchanged.",
		"Make sure that the folder is writable, then apply again.")

	readableByOthers = Messages.Warning("credentials_readable",
		"Other users may read {{.path}}",
		"The file system stores no permissions and shows the file as {{.mode}}. "+
			"Any user with access to it can read the credentials.",
		"Choose a path on a file system with permissions.")

	notReadFile = Messages.Warning("credentials_not_read",
		"{{.path}} was not read",
		"talosop could not read the {{.kind}}: {{.cause}}.",
		"The plan assumes that the file is unchanged.",
		"Make sure that the file is readable, then plan again.")

	fileStays = Messages.Warning("credentials_file_stays",
		"{{.path}} is not deleted",
		"The file {{.content}}.",
		"Delete it yourself if you do not need it.")

	notDeleted = Messages.Error("credentials_not_deleted",
		"Unable to delete {{.kind}} {{.path}}",
		"talosop could not delete the file: {{.cause}}.",
		"Delete it yourself, then destroy again.")

	notIssued = Messages.Error("credentials_not_issued",
		"Unable to issue a {{.kind}}",
		"talosop could not sign the credentials: {{.cause}}.",
		"Check `secrets` of the cluster.")
)
