package provider

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
)

// validateStore checks `s3` and `file` below a path (the empty path for the top level) as far as
// they are known: those of keepsBackups, listsBackups or restoresBackup.
func validateStore(at path.Path, bucket, folder types.Object) diag.Diagnostics {
	var diags diag.Diagnostics

	switch {
	case bucket.IsUnknown() || folder.IsUnknown():
		return nil
	case bucket.IsNull() == folder.IsNull():
		found := "found neither s3 nor file"
		if !bucket.IsNull() {
			found = "found both s3 and file"
		}

		diags.Append(invalid(at.AtName("s3"), "location", found, "allowed is exactly one of them", "give the bucket or the folder of the backups"))
	case bucket.IsNull():
		if v, ok := folder.Attributes()["path"].(types.String); ok && !v.IsUnknown() && v.ValueString() == "" {
			diags.Append(invalid(at.AtName("file").AtName("path"), "path", `found ""`, "allowed is a path", "write . for the working directory"))
		}
	default:
		c := storeChecks{at: at.AtName("s3"), bucket: fields{&reader{}, bucket}, diags: &diags}
		c.all()
	}

	return diags
}

// storeChecks looks at the attributes of one `s3`.
type storeChecks struct {
	at     path.Path
	bucket fields
	diags  *diag.Diagnostics
}

func (c storeChecks) all() {
	c.name()
	c.server()
	c.keys("prefix")
	c.keys("key")
	c.certificates()
	c.encryption()
	c.lock()
	validateCredentials(c.at, c.bucket, c.diags)
}

// value is the text of an attribute; ok is false when it is null, unknown or not there.
func (f fields) value(name string) (text string, ok bool) {
	v, ok := f.attributes.Attributes()[name].(types.String)

	return v.ValueString(), ok && !v.IsNull() && !v.IsUnknown()
}

// absent is whether an attribute is known to be null.
func (f fields) absent(name string) bool {
	v, ok := f.attributes.Attributes()[name]

	return !ok || v.IsNull()
}

var (
	bucketOnAWS     = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	bucketElsewhere = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{1,254}$`)
)

// name checks the name of the bucket: servers other than AWS allow more. The ARN of an
// access point may stand for it.
func (c storeChecks) name() {
	name, ok := c.bucket.value("bucket")
	if !ok || strings.HasPrefix(name, "arn:") {
		return
	}

	allowed, pattern := "allowed are 3 to 63 lower-case letters, digits, dots and hyphens", bucketOnAWS
	if !c.bucket.absent("endpoint") {
		allowed, pattern = "allowed are 2 to 255 letters, digits, dots, underscores and hyphens", bucketElsewhere
	}

	if !pattern.MatchString(name) {
		c.diags.Append(invalid(c.at.AtName("bucket"), "bucket", "found "+quote(name), allowed,
			"write the name alone, and what comes behind it in the keys as prefix"))
	}
}

func (c storeChecks) server() {
	if text, ok := c.bucket.value("endpoint"); ok {
		validateEndpoint(c.at.AtName("endpoint"), text, c.diags)
	}
}

// validateEndpoint checks the URL of a server. It may hold a password by mistake, so it is
// not shown then.
func validateEndpoint(at path.Path, text string, diags *diag.Diagnostics) {
	const allowed = "allowed is a URL such as https://s3.example.org:9000"

	u, err := url.Parse(text)

	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		diags.Append(invalid(at, "endpoint", "found no URL of http or https with a host", allowed, "write scheme, host and port of the server"))
	case u.User != nil:
		diags.Append(invalid(at, "endpoint", "found a user name in the URL", allowed, "give credentials in the attributes that are made for them"))
	case u.RawQuery != "" || u.Fragment != "":
		diags.Append(invalid(at, "endpoint", "found a query or a fragment in the URL", allowed, "leave out what begins with ? or #"))
	}
}

// keys checks the prefix or the key: what a path would lose is told before it is lost.
func (c storeChecks) keys(name string) {
	text, ok := c.bucket.value(name)
	if !ok {
		return
	}

	const allowed = "allowed are names with single slashes between them, such as talos/backups, and none at the ends"

	at := c.at.AtName(name)

	switch segments := strings.Split(text, "/"); {
	case strings.HasPrefix(text, "s3://"):
		c.diags.Append(invalid(at, name, "found the URL "+quote(text), allowed, "leave out s3:// and the bucket"))
	case slices.Contains(segments, ""):
		c.diags.Append(invalid(at, name, "found "+quote(text), allowed, "remove the slashes at its ends, or the attribute for no "+name))
	case slices.Contains(segments, ".") || slices.Contains(segments, ".."):
		c.diags.Append(invalid(at, name, "found "+quote(text)+" with a dot segment", allowed, "write the whole path"))
	case strings.ContainsFunc(text, unicode.IsControl) || len(text) > 800:
		c.diags.Append(invalid(at, name, "found control characters, or more than 800 bytes", allowed, "choose a plain name"))
	}
}

func (c storeChecks) certificates() {
	text, ok := c.bucket.value("ca")
	if !ok {
		return
	}

	if err := checkPEM(text); err != nil {
		c.diags.Append(invalid(c.at.AtName("ca"), "ca", err.Error(), "allowed are one or more certificates in PEM",
			"write file(\"ca.pem\") for the content of a file"))
	}
}

// checkPEM says what is wrong with certificates in PEM, without quoting them.
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
	algorithm, ok := c.bucket.value("sse")
	if ok && !slices.Contains([]string{"AES256", "aws:kms", "aws:kms:dsse"}, algorithm) {
		c.diags.Append(invalid(c.at.AtName("sse"), "sse", "found "+quote(algorithm), "allowed are AES256, aws:kms and aws:kms:dsse",
			"leave it out for what the bucket does by default"))
	}

	if !c.bucket.absent("kms_key") && (c.bucket.absent("sse") || algorithm == "AES256") {
		c.diags.Append(invalid(c.at.AtName("kms_key"), "kms_key", "found kms_key without an sse that uses it", "allowed is kms_key with aws:kms or aws:kms:dsse",
			`set sse = "aws:kms", or remove kms_key`))
	}
}

func (c storeChecks) lock() {
	lock := c.bucket.nested("object_lock")
	at := c.at.AtName("object_lock")

	if mode, ok := lock.value("mode"); ok && mode != "GOVERNANCE" && mode != "COMPLIANCE" {
		c.diags.Append(invalid(at.AtName("mode"), "mode", "found "+quote(mode), "allowed are GOVERNANCE and COMPLIANCE",
			"choose GOVERNANCE unless nobody at all may delete a snapshot early"))
	}

	if days, ok := lock.attributes.Attributes()["days"].(types.Int64); ok && !days.IsNull() && !days.IsUnknown() &&
		(days.ValueInt64() < 1 || days.ValueInt64() > 36500) {
		c.diags.Append(invalid(at.AtName("days"), "days", fmt.Sprintf("found %d", days.ValueInt64()), "allowed is 1 to 36500", "write how many days the lock holds"))
	}
}

var roleARNs = regexp.MustCompile(`^arn:[^:]+:iam::[^:]*:role/.+$`)

// validateCredentials checks credentials of a resource or of the provider. None of their
// values is shown.
func validateCredentials(at path.Path, c fields, diags *diag.Diagnostics) {
	id, secret := c.absent("access_key_id"), c.absent("secret_access_key")

	for _, name := range []string{"access_key_id", "secret_access_key", "session_token", "profile"} {
		if text, ok := c.value(name); ok && (text == "" || strings.TrimSpace(text) != text) {
			diags.Append(invalid(at.AtName(name), name, "found an empty value or spaces around it", "allowed is the value alone", "leave it out for none"))
		}
	}

	switch {
	case id != secret:
		missing, there := "access_key_id", "secret_access_key"
		if secret {
			missing, there = there, missing
		}

		diags.Append(invalid(at.AtName(there), there, "found it without "+missing, "allowed are both or none", "set "+missing+", too"))
	case id && !c.absent("session_token"):
		diags.Append(invalid(at.AtName("session_token"), "session_token", "found it without an access key", "allowed is a token with the key it belongs to",
			"set access_key_id and secret_access_key, too"))
	case !id && !c.absent("profile"):
		diags.Append(invalid(at.AtName("profile"), "profile", "found it beside an access key", "allowed is one of them", "remove the profile or the key"))
	}

	role := c.nested("role")

	if arn, ok := role.value("arn"); ok && !roleARNs.MatchString(arn) {
		diags.Append(invalid(at.AtName("role").AtName("arn"), "arn", "found "+quote(arn), "allowed is an ARN such as arn:aws:iam::123456789012:role/backups",
			"copy it from the role"))
	}

	if endpoint, ok := role.value("endpoint"); ok {
		validateEndpoint(at.AtName("role").AtName("endpoint"), endpoint, diags)
	}
}
