package provider

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// place is where backups are, in plain values.
type place struct {
	// folder holds the files; empty for a bucket.
	folder string
	bucket s3.Config
	// prefix of the keys of a bucket.
	prefix string
	// key of the one snapshot that is meant, where one is.
	key string
	// lockDays is how long an object is locked.
	lockDays int64
	// unknown is true when any of it is not known yet: it cannot be opened then.
	unknown bool
}

// fields reads the attributes of a nested object by name, for objects that differ in which
// attributes they have. One that is not there reads as null.
type fields struct {
	*reader

	attributes types.Object
}

func (f fields) text(name string) string {
	v, _ := f.attributes.Attributes()[name].(types.String)

	return f.reader.text(v)
}

func (f fields) truth(name string, fallback bool) bool {
	v, _ := f.attributes.Attributes()[name].(types.Bool)

	return f.reader.truth(v, fallback)
}

func (f fields) number(name string) int64 {
	v, _ := f.attributes.Attributes()[name].(types.Int64)
	f.unknown = f.unknown || v.IsUnknown()

	return v.ValueInt64()
}

func (f fields) nested(name string) fields {
	v, _ := f.attributes.Attributes()[name].(types.Object)
	f.unknown = f.unknown || v.IsUnknown()

	return fields{f.reader, v}
}

// placeOf reads `s3` and `file`, of keepsBackups, listsBackups or restoresBackup. Write-only
// attributes have values in configurations alone.
func placeOf(bucket, folder types.Object) place {
	r := &reader{unknown: bucket.IsUnknown() || folder.IsUnknown()}
	f, b := fields{r, folder}, fields{r, bucket}

	p := place{
		folder: f.text("path"),
		prefix: b.text("prefix"), key: b.text("key"),
		bucket: s3.Config{
			Bucket: b.text("bucket"), Region: b.text("region"), Endpoint: b.text("endpoint"), PathStyle: b.truth("path_style", b.text("endpoint") != ""),
			CA: b.text("ca"), InsecureSkipTLSVerify: b.truth("insecure_skip_tls_verify", false),
			Encryption:  s3.Encryption{Algorithm: b.text("sse"), KMSKey: b.text("kms_key")},
			Lock:        s3.Lock{Mode: b.nested("object_lock").text("mode")},
			Credentials: credentialsIn(b),
		},
		lockDays: b.nested("object_lock").number("days"),
	}
	p.unknown = r.unknown

	return p
}

func credentialsIn(b fields) s3.Credentials {
	role := b.nested("role")

	return s3.Credentials{
		AccessKeyID: b.text("access_key_id"), SecretAccessKey: b.text("secret_access_key"), SessionToken: b.text("session_token"),
		Profile: b.text("profile"),
		Role: s3.Role{
			ARN: role.text("arn"), ExternalID: role.text("external_id"), SessionName: role.text("session_name"), Endpoint: role.text("endpoint"),
		},
	}
}

// ownKey is whether the place comes with an access key of its own, which is in
// configurations alone.
func (p place) ownKey() bool { return p.bucket.Credentials.AccessKeyID != "" }

// String names the place as a person would, without anything secret.
func (p place) String() string {
	if p.bucket.Bucket == "" {
		return filepath.Join(p.folder, p.key)
	}

	name := "s3://" + strings.Join(nonEmpty(p.bucket.Bucket, p.prefix, p.key), "/")
	if p.bucket.Endpoint != "" {
		name += " at " + p.bucket.Endpoint
	}

	return name
}

func nonEmpty(parts ...string) []string {
	var out []string

	for _, part := range parts {
		if part != "" {
			out = append(out, part)
		}
	}

	return out
}

// same is whether two places are one, however it is reached.
func (p place) same(other place) bool {
	return filepath.Clean(cmp.Or(p.folder, ".")) == filepath.Clean(cmp.Or(other.folder, ".")) &&
		p.bucket.Bucket == other.bucket.Bucket && p.bucket.Endpoint == other.bucket.Endpoint && p.prefix == other.prefix
}

// open makes the store of a place, with the provider's credentials where the place has none.
// It asks no server. The context hides the credentials from logs.
func (p place) open(ctx context.Context, fallback storeCredentials) (context.Context, store.Store, error) {
	if p.bucket.Bucket == "" {
		return ctx, file.Store{Path: p.folder}, nil
	}

	config := p.bucket
	config.Credentials = fallback.under(config.Credentials)

	if config.Lock.Mode != "" {
		config.Lock.Until = time.Now().Add(time.Duration(p.lockDays) * 24 * time.Hour)
	}

	ctx = maskCredentials(ctx, config.Credentials)

	s, err := s3.New(ctx, config)
	if err != nil {
		return ctx, nil, err
	}

	if s.Region() == "" {
		return ctx, nil, errNoRegion
	}

	return ctx, s, nil
}

// snapshot is the place of one snapshot as a store and its key there.
func (p place) snapshot(ctx context.Context, fallback storeCredentials) (context.Context, store.Store, string, error) {
	if p.bucket.Bucket == "" {
		return ctx, file.Store{Path: filepath.Dir(p.folder)}, filepath.Base(p.folder), nil
	}

	ctx, s, err := p.open(ctx, fallback)

	return ctx, s, p.key, err
}

// storeCredentials are those of the provider's configuration.
type storeCredentials struct {
	s3.Credentials

	// unknown is true when any of them is not known yet.
	unknown bool
}

// given is whether the provider has any.
func (c storeCredentials) given() bool { return c.Credentials != s3.Credentials{} }

// under completes credentials of a resource. A key or a profile of its own comes with its
// own role, or with none.
func (c storeCredentials) under(own s3.Credentials) s3.Credentials {
	if own.AccessKeyID != "" || own.Profile != "" {
		return own
	}

	completed := c.Credentials
	if own.Role.ARN != "" {
		completed.Role = own.Role
	}

	return completed
}

// maskCredentials hides credentials from logs.
func maskCredentials(ctx context.Context, c s3.Credentials) context.Context {
	if masks := nonEmpty(c.SecretAccessKey, c.SessionToken, c.Role.ExternalID); len(masks) > 0 {
		ctx = tflog.MaskLogStrings(ctx, masks...)
	}

	return ctx
}
