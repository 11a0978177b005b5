package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/talosop/terraform-provider-talosop/internal/backup/s3"
	"github.com/talosop/terraform-provider-talosop/internal/finding"
)

// ErrNoRegion is an AWS bucket without a region.
var ErrNoRegion = errors.New("no region is set in s3, in the environment or in the profile")

// Diagnosis explains an error of a store: the causes, a line for each, and what to do, which is empty for errors
// without advice.
func (p Place) Diagnosis(err error) (cause []string, next string) {
	if p.Bucket.Bucket == "" {
		return p.folderDiagnosis(err)
	}

	var api smithy.APIError
	if errors.As(err, &api) {
		next = p.remedy(api.ErrorCode())
	}

	var (
		elsewhere *s3.RegionError
		headers   *s3.HeaderError
	)

	switch {
	case errors.Is(err, ErrNoRegion):
		next = "Set `region` in `s3`, or AWS_REGION in the environment."
	case errors.As(err, &elsewhere):
		next = fmt.Sprintf("Set `region = %q` in `s3`.", elsewhere.Region)
	case errors.As(err, &headers):
		next = "If the server does not support them, set " + settings(headers.Headers) + " in `s3`."
	}

	return strings.Split(withoutTrace(err), "\n"), next
}

// settings returns the settings that omit headers.
func settings(headers []s3.Header) string {
	var named []string
	for _, h := range headers {
		named = append(named, "`"+h.Setting+" = false`")
	}

	slices.Sort(named)

	return strings.Join(slices.Compact(named), " and ")
}

// remedy is the advice for an error code of S3 (Amazon S3 API Reference, Error responses).
func (p Place) remedy(code string) string {
	switch code {
	case "NoSuchBucket":
		at := "on AWS"
		if p.Bucket.Endpoint != "" {
			at = "at " + p.Bucket.Endpoint
		}

		return fmt.Sprintf("Create the bucket %s %s, or correct `bucket`.", p.Bucket.Bucket, at)
	case "InvalidAccessKeyId", "SignatureDoesNotMatch":
		return "Check the access key: it comes from `access_key_id` and `secret_access_key`, from `s3` of the provider, or " +
			"from the environment."
	case "PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException":
		return "Correct `region`: the bucket is in another one."
	case "AccessDenied":
		return "Give the access key the permissions in this bucket that the documentation of `s3` lists."
	default:
		return ""
	}
}

// withoutTrace is the text of an error without the request IDs that the SDK adds.
func withoutTrace(err error) string {
	text := err.Error()

	for _, e := range finding.Flatten(err) {
		var (
			operation *smithy.OperationError
			api       smithy.APIError
		)

		if errors.As(e, &operation) && errors.As(e, &api) {
			answer := strings.TrimSuffix(api.ErrorCode()+": "+api.ErrorMessage(), ": ")
			text = strings.ReplaceAll(text, operation.Error(), answer)
		}
	}

	return text
}

func (p Place) folderDiagnosis(err error) (cause []string, next string) {
	cause = strings.Split(err.Error(), "\n")
	info, unseen := os.Stat(p.Folder)

	switch {
	case errors.Is(err, fs.ErrPermission):
		return cause, "Give the user that runs Terraform access to that path."
	case unseen == nil && !info.IsDir():
		return []string{p.Folder + " is a file, not a folder"}, "Correct `path` in `file`."
	default:
		return cause, ""
	}
}
