package store

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
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// Place is where backups are, in plain values.
type Place struct {
	// Folder holds the files; empty for a bucket.
	Folder string
	Bucket s3.Config
	// Prefix of the keys of a bucket.
	Prefix string
	// key of a single snapshot, if one is meant.
	key string
	// lockDays is how long an object is locked.
	lockDays int64
	// Unknown is true while any part is unknown: it cannot be opened then.
	Unknown bool
}

// PlaceOf reads `s3` and `file` of KeepsBackups, ListsBackups or RestoresBackup. Only configurations have values of
// write-only attributes.
func PlaceOf(bucket, folder types.Object) Place {
	r := &tf.Reader{Unknown: bucket.IsUnknown() || folder.IsUnknown()}
	f, b := tf.Fields{Reader: r, Attributes: folder}, tf.Fields{Reader: r, Attributes: bucket}

	p := Place{
		Folder: f.Text("path"),
		Prefix: b.Text("prefix"), key: b.Text("key"),
		Bucket: s3.Config{
			Bucket: b.Text("bucket"), Region: b.Text("region"), Endpoint: b.Text("endpoint"),
			PathStyle: b.Truth("path_style", b.Text("endpoint") != ""),
			CA:        b.Text("ca"), InsecureSkipTLSVerify: b.Truth("insecure_skip_tls_verify", false),
			NoChecksums:         !b.Truth(s3.Checksums, true),
			NoConditionalWrites: !b.Truth(s3.ConditionalWrites, true),
			Encryption:          s3.Encryption{Algorithm: b.Text("sse"), KMSKey: b.Text("kms_key")},
			Lock:                s3.Lock{Mode: b.Nested("object_lock").Text("retention")},
			Credentials:         CredentialsIn(b),
		},
		lockDays: b.Nested("object_lock").Number("days", 0),
	}
	p.Unknown = r.Unknown

	return p
}

// CredentialsIn reads the credentials of a bucket.
func CredentialsIn(b tf.Fields) s3.Credentials {
	role := b.Nested("role")

	return s3.Credentials{
		AccessKeyID: b.Secret("access_key_id"), SecretAccessKey: b.Secret("secret_access_key"),
		SessionToken: b.Secret("session_token"),
		Profile:      b.Text("profile"),
		Role: s3.Role{
			ARN: role.Text("arn"), ExternalID: role.Text("external_id"), SessionName: role.Text("session_name"),
			Endpoint: role.Text("endpoint"),
		},
	}
}

// OwnKey reports whether the place has its own access key, which only configurations have.
func (p Place) OwnKey() bool { return p.Bucket.Credentials.AccessKeyID != "" }

// String names the place for people, without anything secret.
func (p Place) String() string {
	if p.Bucket.Bucket == "" {
		return filepath.Join(p.Folder, p.key)
	}

	name := "s3://" + strings.Join(finding.NonEmpty(p.Bucket.Bucket, p.Prefix, p.key), "/")
	if p.Bucket.Endpoint != "" {
		name += " at " + p.Bucket.Endpoint
	}

	return name
}

// Same reports whether two places are one, however it is reached.
func (p Place) Same(other Place) bool {
	return filepath.Clean(cmp.Or(p.Folder, ".")) == filepath.Clean(cmp.Or(other.Folder, ".")) &&
		p.Bucket.Bucket == other.Bucket.Bucket && p.Bucket.Endpoint == other.Bucket.Endpoint && p.Prefix == other.Prefix
}

// Open makes the store of a place, with the provider's credentials when the place has none. It asks no server. The
// context hides the credentials from logs.
func (p Place) Open(ctx context.Context, fallback Credentials) (context.Context, store.Store, error) {
	if p.Bucket.Bucket == "" {
		return ctx, file.Store{Path: p.Folder}, nil
	}

	config := p.Bucket
	config.Credentials = fallback.Under(config.Credentials)

	if config.Lock.Mode != "" {
		config.Lock.Until = time.Now().Add(time.Duration(p.lockDays) * 24 * time.Hour)
	}

	ctx = MaskCredentials(ctx, config.Credentials)

	s, err := s3.New(ctx, config)
	if err != nil {
		return ctx, nil, err
	}

	if s.Region() == "" {
		return ctx, nil, ErrNoRegion
	}

	return ctx, s, nil
}

// Snapshot is the place of one snapshot as a store and its key there.
func (p Place) Snapshot(ctx context.Context, fallback Credentials) (context.Context, store.Store, string, error) {
	if p.Bucket.Bucket == "" {
		return ctx, file.Store{Path: filepath.Dir(p.Folder)}, filepath.Base(p.Folder), nil
	}

	ctx, s, err := p.Open(ctx, fallback)

	return ctx, s, p.key, err
}

// Credentials are those of the provider's configuration.
type Credentials struct {
	s3.Credentials

	// Unknown is true while any of them is unknown.
	Unknown bool
}

// Given reports whether the provider has any.
func (c Credentials) Given() bool { return c.Credentials != s3.Credentials{} }

// Under completes credentials of a resource. A key or a profile of the resource uses only the role of the resource,
// if any.
func (c Credentials) Under(own s3.Credentials) s3.Credentials {
	if own.AccessKeyID != "" || own.Profile != "" {
		return own
	}

	completed := c.Credentials
	if own.Role.ARN != "" {
		completed.Role = own.Role
	}

	return completed
}

// MaskCredentials hides credentials from logs.
func MaskCredentials(ctx context.Context, c s3.Credentials) context.Context {
	if masks := finding.NonEmpty(c.SecretAccessKey, c.SessionToken, c.Role.ExternalID); len(masks) > 0 {
		ctx = tflog.MaskLogStrings(ctx, masks...)
	}

	return ctx
}
