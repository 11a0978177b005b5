package store

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// ValidateStore checks the known part of `s3` and `file` below a path (the empty path for the top level): those of
// KeepsBackups, ListsBackups or RestoresBackup.
func ValidateStore(at path.Path, bucket, folder types.Object) diag.Diagnostics {
	var diags diag.Diagnostics

	switch {
	case bucket.IsUnknown() || folder.IsUnknown():
		return nil
	case bucket.IsNull() == folder.IsNull():
		found := "found neither s3 nor file"
		if !bucket.IsNull() {
			found = "found both s3 and file"
		}

		diags.Append(tf.Invalid(at.AtName("s3"), "location", found, "allowed is exactly one of them",
			"give the bucket or the folder of the backups"))
	case bucket.IsNull():
		if v, ok := folder.Attributes()["path"].(types.String); ok && !v.IsUnknown() && v.ValueString() == "" {
			diags.Append(tf.Invalid(at.AtName("file").AtName("path"), "path", `found ""`, "allowed is a path",
				"write . for the working directory"))
		}
	default:
		c := storeChecks{At: at.AtName("s3"), Bucket: tf.Fields{Reader: &tf.Reader{}, Attributes: bucket}, Diags: &diags}
		c.all()
	}

	return diags
}

// storeChecks checks the attributes of one `s3`.
type storeChecks struct {
	At     path.Path
	Bucket tf.Fields
	Diags  *diag.Diagnostics
}

func (c storeChecks) all() {
	c.Name()
	c.Server()
	c.keys("prefix")
	c.keys("key")
	c.certificates()
	c.encryption()
	c.lock()
	ValidateCredentials(c.At, c.Bucket, c.Diags)
}

var (
	bucketOnAWS     = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	bucketElsewhere = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]+$`)
)

// longestBucket is the longest name that any server accepts, in bytes. A limit in the expression would be expanded
// at each start of the provider.
const longestBucket = 255

// Name checks the name of the bucket: servers other than AWS allow more. An ARN of an access point is allowed, too.
func (c storeChecks) Name() {
	name, ok := c.Bucket.Value("bucket")
	if !ok || strings.HasPrefix(name, "arn:") {
		return
	}

	allowed, pattern := "allowed are 3 to 63 lower-case letters, digits, dots and hyphens", bucketOnAWS
	if !c.Bucket.Absent("endpoint") {
		allowed, pattern = "allowed are 2 to 255 letters, digits, dots, underscores and hyphens", bucketElsewhere
	}

	if len(name) > longestBucket || !pattern.MatchString(name) {
		c.Diags.Append(tf.Invalid(c.At.AtName("bucket"), "bucket", "found "+finding.Quote(name), allowed,
			"write the name alone, and what comes behind it in the keys as prefix"))
	}
}

func (c storeChecks) Server() {
	if text, ok := c.Bucket.Value("endpoint"); ok {
		validateEndpoint(c.At.AtName("endpoint"), text, c.Diags)
	}
}

// validateEndpoint checks the URL of a server. It may contain a password by mistake, so the error does not show it.
func validateEndpoint(at path.Path, text string, diags *diag.Diagnostics) {
	const allowed = "allowed is a URL such as https://s3.example.org:9000"

	u, err := url.Parse(text)

	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		diags.Append(tf.Invalid(at, "endpoint", "found no URL of http or https with a host", allowed,
			"write scheme, host and port of the server"))
	case u.User != nil:
		diags.Append(tf.Invalid(at, "endpoint", "found a user name in the URL", allowed,
			"give credentials in the attributes that are made for them"))
	case u.RawQuery != "" || u.Fragment != "":
		diags.Append(tf.Invalid(at, "endpoint", "found a query or a fragment in the URL", allowed,
			"leave out what begins with ? or #"))
	}
}

// keys checks the prefix or the key: the error names what a path would drop.
func (c storeChecks) keys(name string) {
	text, ok := c.Bucket.Value(name)
	if !ok {
		return
	}

	const allowed = "allowed are names with single slashes between them, such as talos/backups, and none at the ends"

	at := c.At.AtName(name)

	switch segments := strings.Split(text, "/"); {
	case strings.HasPrefix(text, "s3://"):
		c.Diags.Append(tf.Invalid(at, name, "found the URL "+finding.Quote(text), allowed, "leave out s3:// and the bucket"))
	case slices.Contains(segments, ""):
		c.Diags.Append(tf.Invalid(at, name, "found "+finding.Quote(text), allowed,
			"remove the slashes at its ends, or the attribute for no "+name))
	case slices.Contains(segments, ".") || slices.Contains(segments, ".."):
		c.Diags.Append(tf.Invalid(at, name, "found "+finding.Quote(text)+" with a dot segment", allowed,
			"write the whole path"))
	case strings.ContainsFunc(text, unicode.IsControl) || len(text) > 800:
		c.Diags.Append(tf.Invalid(at, name, "found control characters, or more than 800 bytes", allowed,
			"choose a plain name"))
	}
}

func (c storeChecks) certificates() {
	text, ok := c.Bucket.Value("ca")
	if !ok {
		return
	}

	if err := checkPEM(text); err != nil {
		c.Diags.Append(tf.Invalid(c.At.AtName("ca"), "ca", err.Error(), "allowed are one or more certificates in PEM",
			"write file(\"ca.pem\") for the content of a file"))
	}
}

// checkPEM returns what is wrong with certificates in PEM, without quoting them.
func checkPEM(text string) error {
	count := 0

	for rest := []byte(text); ; {
		var block *pem.Block

		if block, rest = pem.Decode(rest); block == nil {
			if count == 0 {
				return fmt.Errorf("found no certificate")
			}

			return nil
		}

		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("found a %s", strings.ToLower(block.Type))
		}

		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("found a certificate that cannot be read: %w", err)
		}

		count++
	}
}

func (c storeChecks) encryption() {
	algorithm, ok := c.Bucket.Value("sse")
	if ok && !slices.Contains([]string{"AES256", "aws:kms", "aws:kms:dsse"}, algorithm) {
		c.Diags.Append(tf.Invalid(c.At.AtName("sse"), "sse", "found "+finding.Quote(algorithm),
			"allowed are AES256, aws:kms and aws:kms:dsse",
			"leave it out for what the bucket does by default"))
	}

	if !c.Bucket.Absent("kms_key") && (c.Bucket.Absent("sse") || algorithm == "AES256") {
		c.Diags.Append(tf.Invalid(c.At.AtName("kms_key"), "kms_key", "found kms_key without an sse that uses it",
			"allowed is kms_key with aws:kms or aws:kms:dsse",
			`set sse = "aws:kms", or remove kms_key`))
	}
}

func (c storeChecks) lock() {
	lock := c.Bucket.Nested("object_lock")
	at := c.At.AtName("object_lock")

	// Amazon S3 API Reference, PutObject: an upload with a retention period needs a checksum.
	if !c.Bucket.Absent("object_lock") && !c.Bucket.Truth(s3.Checksums, true) {
		c.Diags.Append(tf.Invalid(c.At.AtName(s3.Checksums), s3.Checksums, "found false with object_lock",
			"allowed is true: S3 locks only objects that are uploaded with a checksum", "remove checksums or object_lock"))
	}

	if mode, ok := lock.Value("retention"); ok && mode != "GOVERNANCE" && mode != "COMPLIANCE" {
		c.Diags.Append(tf.Invalid(at.AtName("retention"), "retention", "found "+finding.Quote(mode),
			"allowed are GOVERNANCE and COMPLIANCE",
			"choose GOVERNANCE unless no user at all may delete a snapshot early"))
	}

	if days, ok := lock.Attributes.Attributes()["days"].(types.Int64); ok && !days.IsNull() && !days.IsUnknown() &&
		(days.ValueInt64() < 1 || days.ValueInt64() > 36500) {
		c.Diags.Append(tf.Invalid(at.AtName("days"), "days", fmt.Sprintf("found %d", days.ValueInt64()),
			"allowed is 1 to 36500", "write how many days the lock holds"))
	}
}

var roleARNs = regexp.MustCompile(`^arn:[^:]+:iam::[^:]*:role/.+$`)

// ValidateCredentials checks credentials of a resource or of the provider. None of their
// values is shown.
func ValidateCredentials(at path.Path, c tf.Fields, diags *diag.Diagnostics) {
	idName, secretName, tokenName := c.NameOf("access_key_id"), c.NameOf("secret_access_key"), c.NameOf("session_token")
	id, secret := c.Absent(idName), c.Absent(secretName)

	for _, name := range []string{idName, secretName, tokenName, "profile"} {
		if text, ok := c.Value(name); ok && (text == "" || strings.TrimSpace(text) != text) {
			diags.Append(tf.Invalid(at.AtName(name), name, "found an empty value or spaces around it",
				"allowed is the value alone", "leave it out for none"))
		}
	}

	switch {
	case id != secret:
		missing, there := idName, secretName
		if secret {
			missing, there = there, missing
		}

		diags.Append(tf.Invalid(at.AtName(there), there, "found it without "+missing, "allowed are both or none",
			"set "+missing+", too"))
	case id && !c.Absent(tokenName):
		diags.Append(tf.Invalid(at.AtName(tokenName), tokenName, "found it without an access key",
			"allowed is a token with the key it belongs to", "set "+idName+" and "+secretName+", too"))
	case !id && !c.Absent("profile"):
		diags.Append(tf.Invalid(at.AtName("profile"), "profile", "found it beside an access key", "allowed is one of them",
			"remove the profile or the key"))
	}

	role := c.Nested("role")

	if arn, ok := role.Value("arn"); ok && !roleARNs.MatchString(arn) {
		diags.Append(tf.Invalid(at.AtName("role").AtName("arn"), "arn", "found "+finding.Quote(arn),
			"allowed is an ARN such as arn:aws:iam::123456789012:role/backups",
			"copy it from the role"))
	}

	if endpoint, ok := role.Value("endpoint"); ok {
		validateEndpoint(at.AtName("role").AtName("endpoint"), endpoint, diags)
	}
}
