package store_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/smithy-go"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
)

// The credentials that are used, and the role that they assume.
func TestStore_credentials(t *testing.T) {
	t.Parallel()

	role := func(arn string) s3.Role { return s3.Role{ARN: arn} }
	shared := s3.Credentials{AccessKeyID: "shared", SecretAccessKey: "shared-secret", Role: role("shared")}

	for name, test := range map[string]struct{ own, want s3.Credentials }{
		"none of its own": {s3.Credentials{}, shared},
		"a key of its own": {s3.Credentials{AccessKeyID: "own", SecretAccessKey: "secret"},
			s3.Credentials{AccessKeyID: "own", SecretAccessKey: "secret"}},
		"a profile of its own": {s3.Credentials{Profile: "own"}, s3.Credentials{Profile: "own"}},
		"a role of its own": {
			s3.Credentials{Role: role("own")},
			s3.Credentials{AccessKeyID: "shared", SecretAccessKey: "shared-secret", Role: role("own")},
		},
	} {
		if got := (store.Credentials{Credentials: shared}).Under(test.own); got != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Another route to a place is the same place.
func TestPlace_sameWhateverTheAccess(t *testing.T) {
	t.Parallel()

	base := store.Place{Bucket: s3.Config{Bucket: "b", Endpoint: "https://s3.example.org"}, Prefix: "p"}

	for name, test := range map[string]struct {
		change func(p *store.Place)
		Same   bool
	}{
		"region":   {func(p *store.Place) { p.Bucket.Region = "eu" }, true},
		"key":      {func(p *store.Place) { p.Bucket.Credentials.AccessKeyID = "x" }, true},
		"ca":       {func(p *store.Place) { p.Bucket.CA = "x" }, true},
		"bucket":   {func(p *store.Place) { p.Bucket.Bucket = "c" }, false},
		"endpoint": {func(p *store.Place) { p.Bucket.Endpoint = "" }, false},
		"prefix":   {func(p *store.Place) { p.Prefix = "" }, false},
		"a folder": {func(p *store.Place) { *p = store.Place{Folder: "b"} }, false},
	} {
		other := base
		test.change(&other)

		if got := base.Same(other); got != test.Same {
			t.Errorf("with another %s it is the same place: %v", name, got)
		}
	}

	if a, b := (store.Place{Folder: "./backups/"}), (store.Place{Folder: "backups"}); !a.Same(b) {
		t.Error("two spellings of a folder are two places")
	}
}

// A refusal of a server is reported with advice, and without the IDs of its requests.
func TestStoreDiagnosis_ofBuckets(t *testing.T) {
	t.Parallel()

	at := store.Place{Bucket: s3.Config{Bucket: "prod-backup", Endpoint: "https://s3.example.org"}}

	for code, remedy := range map[string]string{
		"NoSuchBucket":                 "Create the bucket prod-backup at https://s3.example.org",
		"SignatureDoesNotMatch":        "Check the access key",
		"InvalidAccessKeyId":           "Check the access key",
		"AuthorizationHeaderMalformed": "Correct `region`",
		"Unheard":                      "",
	} {
		answer := fmt.Errorf("RequestID: 1, HostID: 2, %w", &smithy.GenericAPIError{Code: code, Message: "no"})
		err := fmt.Errorf("cp-1: list prod/: %w", &smithy.OperationError{ServiceID: "S3", OperationName: "List", Err: answer})
		cause, next := at.Diagnosis(errors.Join(errors.New("cp-2: no answer"), err))

		if text := strings.Join(cause, "|"); text != "cp-2: no answer|cp-1: list prod/: "+code+": no" ||
			!strings.Contains(next, remedy) || (remedy == "") != (next == "") {
			t.Errorf("%s: %s, %q", code, text, next)
		}
	}

	answer := errors.New("no")
	header := func(name, setting string) s3.Header { return s3.Header{Name: name, Setting: setting} }

	for next, err := range map[string]error{
		"Set `region` in `s3`, or AWS_REGION in the environment.": store.ErrNoRegion,
		"Set `region = \"eu-central-1\"` in `s3`.": fmt.Errorf("list: %w",
			&s3.RegionError{Bucket: "prod-backup", Region: "eu-central-1", Err: answer}),
		"If the server does not support them, set `conditional_writes = false` in `s3`.": &s3.HeaderError{Err: answer,
			Headers: []s3.Header{header("If-None-Match", s3.ConditionalWrites)}},
		"If the server does not support them, set `checksums = false` and `conditional_writes = false` in `s3`.": &s3.HeaderError{
			Err: answer, Headers: []s3.Header{header("If-None-Match", s3.ConditionalWrites),
				header("x-amz-checksum-crc32c", s3.Checksums), header("x-amz-sdk-checksum-algorithm", s3.Checksums)}},
	} {
		if _, got := at.Diagnosis(err); got != next {
			t.Errorf("%v: %q, want %q", err, got, next)
		}
	}
}

// The settings of s3 that omit headers, and their defaults.
func TestPlaceOf_headers(t *testing.T) {
	t.Parallel()

	typed := map[string]attr.Type{"bucket": types.StringType, "checksums": types.BoolType,
		"conditional_writes": types.BoolType}

	for name, test := range map[string]struct {
		checksums, conditional types.Bool
		want                   s3.Config
	}{
		"default":      {types.BoolNull(), types.BoolNull(), s3.Config{Bucket: "b"}},
		"true":         {types.BoolValue(true), types.BoolValue(true), s3.Config{Bucket: "b"}},
		"no checksums": {types.BoolValue(false), types.BoolNull(), s3.Config{Bucket: "b", NoChecksums: true}},
		"no conditions": {types.BoolNull(), types.BoolValue(false),
			s3.Config{Bucket: "b", NoConditionalWrites: true}},
	} {
		bucket := types.ObjectValueMust(typed, map[string]attr.Value{"bucket": types.StringValue("b"),
			"checksums": test.checksums, "conditional_writes": test.conditional})
		folder := types.ObjectNull(map[string]attr.Type{"path": types.StringType})

		if got := store.PlaceOf(bucket, folder); got.Bucket != test.want || got.Unknown {
			t.Errorf("%s: %+v", name, got)
		}
	}

	unknown := types.ObjectValueMust(typed, map[string]attr.Value{"bucket": types.StringValue("b"),
		"checksums": types.BoolUnknown(), "conditional_writes": types.BoolNull()})
	if !store.PlaceOf(unknown, types.ObjectNull(nil)).Unknown {
		t.Error("unknown checksums are known")
	}
}
