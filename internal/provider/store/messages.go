package store

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about `s3` and `file` of backups and restores.
var Messages = finding.NewCatalog("Backup locations")

var (
	oneLocation = Messages.Error("backup_location",
		"Invalid location: {{.at}}",
		"Found {{if .both}}both `s3` and `file`{{else}}neither `s3` nor `file`{{end}}.",
		"Allowed: exactly one of them.",
		"Set the bucket or the folder.")

	emptyFolder = Messages.Invalid("empty_backup_folder",
		"Found an empty path.", "Allowed: a path.", "Write `.` for the working directory.")

	invalidBucket = Messages.Invalid("invalid_bucket_name",
		"Found {{quote .name}}.",
		"Allowed: {{if .aws}}3 to 63 lower-case letters, digits, dots and hyphens"+
			"{{else}}2 to 255 letters, digits, dots, underscores and hyphens{{end}}.",
		"Write only the name. A path within the bucket belongs in `prefix`.")

	invalidServer = Messages.Invalid("invalid_s3_endpoint",
		"Found a value that is not an http or https URL with a host.",
		allowedServer, "Write scheme, host and port of the server.")

	serverWithUser = Messages.Invalid("s3_endpoint_with_user",
		"Found a user name in the URL.",
		allowedServer, "Set credentials in their own attributes.")

	serverWithQuery = Messages.Invalid("s3_endpoint_with_query",
		"Found a query or a fragment in the URL.",
		allowedServer, "Remove the part from `?` or `#` on.")

	keyIsURL = Messages.Invalid("s3_key_is_url",
		"Found the URL {{quote .value}}.", allowedKey, "Remove `s3://` and the bucket.")

	keyWithEmptyPart = Messages.Invalid("s3_key_with_empty_part",
		"Found {{quote .value}}.", allowedKey,
		"Remove slashes at the ends and double slashes. To use no `{{.attribute}}`, remove the attribute.")

	keyWithDots = Messages.Invalid("s3_key_with_dots",
		"Found {{quote .value}}, with a dot segment.", allowedKey, "Write the whole path.")

	keyTooLong = Messages.Invalid("s3_key_too_long",
		"Found control characters, or more than 800 bytes.", allowedKey, "Choose another name.")

	invalidCA = Messages.Invalid("invalid_s3_ca",
		"The certificates are not usable: {{.cause}}.",
		"Allowed: one or more certificates in PEM.",
		"For the content of a file, write `file(\"ca.pem\")`.")

	invalidSSE = Messages.Invalid("invalid_sse",
		"Found {{quote .value}}.",
		"Allowed: `AES256`, `aws:kms` and `aws:kms:dsse`.",
		"To use the default of the bucket, remove the attribute.")

	keyWithoutSSE = Messages.Invalid("kms_key_without_sse",
		"Found `kms_key` without an `sse` that uses it.",
		"Allowed: `kms_key` with `aws:kms` or `aws:kms:dsse`.",
		"Set `sse = \"aws:kms\"`, or remove `kms_key`.")

	lockWithoutChecksums = Messages.Invalid("object_lock_without_checksums",
		"Found false together with `object_lock`.",
		"S3 locks only objects that are uploaded with a checksum.",
		"Remove this attribute or `object_lock`.")

	invalidRetention = Messages.Invalid("invalid_lock_retention",
		"Found {{quote .value}}.",
		"Allowed: `GOVERNANCE` and `COMPLIANCE`.",
		"Choose `GOVERNANCE`, unless no user at all may delete a snapshot early.")

	invalidLockDays = Messages.Invalid("invalid_lock_days",
		"Found {{.days}}.", "Allowed: 1 to 36500.", "Write for how many days an object stays locked.")

	emptyCredential = Messages.Invalid("empty_credential",
		"Found an empty value, or spaces around the value.",
		"Allowed: the value alone.",
		"Remove the spaces, or remove the attribute to set none.")

	halfAccessKey = Messages.Invalid("half_access_key",
		"Found it without `{{.missing}}`.", "Allowed: both or none.", "Also set `{{.missing}}`.")

	tokenWithoutKey = Messages.Invalid("session_token_without_key",
		"Found it without an access key.",
		"A session token belongs to an access key.",
		"Also set `{{.id}}` and `{{.secret}}`.")

	profileWithKey = Messages.Invalid("profile_with_access_key",
		"Found it together with an access key.", "Allowed: one of them.", "Remove the profile or the access key.")

	invalidRole = Messages.Invalid("invalid_role_arn",
		"Found {{quote .value}}.",
		"Allowed: an ARN such as arn:aws:iam::123456789012:role/backups.",
		"Copy the ARN of the role.")
)

// What is allowed for several of them.
const (
	allowedServer = "Allowed: a URL such as https://s3.example.org:9000."
	allowedKey    = "Allowed: names with single slashes between them, such as talos/backups, and no slash at the ends."
)
