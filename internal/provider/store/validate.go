package store

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
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
		diags.Append(tf.Diagnostic(oneLocation.At(tf.PathOf(at.AtName("s3")), finding.Args{"both": !bucket.IsNull()})))
	case bucket.IsNull():
		if v, ok := folder.Attributes()["path"].(types.String); ok && !v.IsUnknown() && v.ValueString() == "" {
			diags.Append(tf.Diagnostic(emptyFolder.At(tf.PathOf(at.AtName("file").AtName("path")), nil)))
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

	onAWS, pattern := c.Bucket.Absent("endpoint"), bucketElsewhere
	if onAWS {
		pattern = bucketOnAWS
	}

	if len(name) > longestBucket || !pattern.MatchString(name) {
		c.Diags.Append(tf.Diagnostic(invalidBucket.At(
			tf.PathOf(c.At.AtName("bucket")), finding.Args{"name": name, "aws": onAWS})))
	}
}

func (c storeChecks) Server() {
	if text, ok := c.Bucket.Value("endpoint"); ok {
		validateEndpoint(c.At.AtName("endpoint"), text, c.Diags)
	}
}

// validateEndpoint checks the URL of a server. It may contain a password by mistake, so the error does not show it.
func validateEndpoint(at path.Path, text string, diags *diag.Diagnostics) {
	u, err := url.Parse(text)

	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		diags.Append(tf.Diagnostic(invalidServer.At(tf.PathOf(at), nil)))
	case u.User != nil:
		diags.Append(tf.Diagnostic(serverWithUser.At(tf.PathOf(at), nil)))
	case u.RawQuery != "" || u.Fragment != "":
		diags.Append(tf.Diagnostic(serverWithQuery.At(tf.PathOf(at), nil)))
	}
}

// keys checks the prefix or the key: the error names what a path would drop.
func (c storeChecks) keys(name string) {
	text, ok := c.Bucket.Value(name)
	if !ok {
		return
	}

	at := c.At.AtName(name)

	switch segments := strings.Split(text, "/"); {
	case strings.HasPrefix(text, "s3://"):
		c.Diags.Append(tf.Diagnostic(keyIsURL.At(tf.PathOf(at), finding.Args{"value": text})))
	case slices.Contains(segments, ""):
		c.Diags.Append(tf.Diagnostic(keyWithEmptyPart.At(tf.PathOf(at), finding.Args{"value": text, "attribute": name})))
	case slices.Contains(segments, ".") || slices.Contains(segments, ".."):
		c.Diags.Append(tf.Diagnostic(keyWithDots.At(tf.PathOf(at), finding.Args{"value": text})))
	case strings.ContainsFunc(text, unicode.IsControl) || len(text) > 800:
		c.Diags.Append(tf.Diagnostic(keyTooLong.At(tf.PathOf(at), nil)))
	}
}

func (c storeChecks) certificates() {
	text, ok := c.Bucket.Value("ca")
	if !ok {
		return
	}

	if err := checkPEM(text); err != nil {
		c.Diags.Append(tf.Diagnostic(invalidCA.At(tf.PathOf(c.At.AtName("ca")), finding.Args{"cause": err.Error()})))
	}
}

// checkPEM returns what is wrong with certificates in PEM, without quoting them.
func checkPEM(text string) error {
	count := 0

	for rest := []byte(text); ; {
		var block *pem.Block

		if block, rest = pem.Decode(rest); block == nil {
			if count == 0 {
				return errors.New("found no certificate")
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
		c.Diags.Append(tf.Diagnostic(invalidSSE.At(tf.PathOf(c.At.AtName("sse")), finding.Args{"value": algorithm})))
	}

	if !c.Bucket.Absent("kms_key") && (c.Bucket.Absent("sse") || algorithm == "AES256") {
		c.Diags.Append(tf.Diagnostic(keyWithoutSSE.At(tf.PathOf(c.At.AtName("kms_key")), nil)))
	}
}

func (c storeChecks) lock() {
	lock := c.Bucket.Nested("object_lock")
	at := c.At.AtName("object_lock")

	// Amazon S3 API Reference, PutObject: an upload with a retention period needs a checksum.
	if !c.Bucket.Absent("object_lock") && !c.Bucket.Truth(s3.Checksums, true) {
		c.Diags.Append(tf.Diagnostic(lockWithoutChecksums.At(tf.PathOf(c.At.AtName(s3.Checksums)), nil)))
	}

	if mode, ok := lock.Value("retention"); ok && mode != "GOVERNANCE" && mode != "COMPLIANCE" {
		c.Diags.Append(tf.Diagnostic(invalidRetention.At(tf.PathOf(at.AtName("retention")), finding.Args{"value": mode})))
	}

	if days, ok := lock.Attributes.Attributes()["days"].(types.Int64); ok && !days.IsNull() && !days.IsUnknown() &&
		(days.ValueInt64() < 1 || days.ValueInt64() > 36500) {
		c.Diags.Append(tf.Diagnostic(invalidLockDays.At(
			tf.PathOf(at.AtName("days")), finding.Args{"days": days.ValueInt64()})))
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
			diags.Append(tf.Diagnostic(emptyCredential.At(tf.PathOf(at.AtName(name)), nil)))
		}
	}

	switch {
	case id != secret:
		missing, there := idName, secretName
		if secret {
			missing, there = there, missing
		}

		diags.Append(tf.Diagnostic(halfAccessKey.At(tf.PathOf(at.AtName(there)), finding.Args{"missing": missing})))
	case id && !c.Absent(tokenName):
		diags.Append(tf.Diagnostic(tokenWithoutKey.At(
			tf.PathOf(at.AtName(tokenName)), finding.Args{"id": idName, "secret": secretName})))
	case !id && !c.Absent("profile"):
		diags.Append(tf.Diagnostic(profileWithKey.At(tf.PathOf(at.AtName("profile")), nil)))
	}

	role := c.Nested("role")

	if arn, ok := role.Value("arn"); ok && !roleARNs.MatchString(arn) {
		diags.Append(tf.Diagnostic(invalidRole.At(tf.PathOf(at.AtName("role").AtName("arn")), finding.Args{"value": arn})))
	}

	if endpoint, ok := role.Value("endpoint"); ok {
		validateEndpoint(at.AtName("role").AtName("endpoint"), endpoint, diags)
	}
}
