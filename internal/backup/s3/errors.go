package s3

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// RegionError is a request for a bucket that is in another region.
type RegionError struct {
	Bucket string
	// Region of the bucket, as the server says.
	Region string
	Err    error
}

// Error names the region.
func (e *RegionError) Error() string {
	return fmt.Sprintf("%v: bucket %s is in region %s", e.Err, e.Bucket, e.Region)
}

// Unwrap is the answer of the server.
func (e *RegionError) Unwrap() error { return e.Err }

// HeaderError is a request that a server refused, perhaps because it does not support headers of it.
type HeaderError struct {
	// Headers that the request had, with the settings that leave them out.
	Headers []Header
	Err     error
}

// Header is one that a Config can leave out.
type Header struct {
	Name string
	// Setting is [Checksums] or [ConditionalWrites].
	Setting string
}

// The settings that leave headers out where they are false, as users write them.
const (
	Checksums         = "checksums"
	ConditionalWrites = "conditional_writes"
)

// Error names the headers and their settings.
func (e *HeaderError) Error() string {
	var names []string
	for _, h := range e.Headers {
		names = append(names, fmt.Sprintf("%s (set %s = false to omit it)", h.Name, h.Setting))
	}

	return fmt.Sprintf("%v: the server may not support %s", e.Err, strings.Join(names, " or "))
}

// Unwrap is the answer of the server.
func (e *HeaderError) Unwrap() error { return e.Err }

// classified adds the verb and the object to an error, and its class in package store.
func (s *Store) classified(verb, key string, err error) error {
	if err == nil {
		return nil
	}

	err = s.explained(err)

	var api smithy.APIError
	if errors.As(err, &api) {
		switch api.ErrorCode() {
		case "NoSuchKey", "NotFound", "NoSuchUpload":
			return fmt.Errorf("%s %s: %w: %w", verb, key, store.ErrNotFound, err)
		// 409 is what AWS answers when two conditional writes of a key meet.
		case "PreconditionFailed", "ConditionalRequestConflict":
			return fmt.Errorf("%s %s: %w: %w", verb, key, store.ErrExists, err)
		}
	}

	var answer *awshttp.ResponseError
	if errors.As(err, &answer) && answer.HTTPStatusCode() == http.StatusForbidden {
		return fmt.Errorf("%s %s: %w: %w", verb, key, store.ErrDenied, err)
	}

	return fmt.Errorf("%s %s: %w", verb, key, err)
}

// explained is an error with what the request and its answer say about it.
func (s *Store) explained(err error) error {
	answer := answerOf(err) //nolint:bodyclose // the SDK has read it
	if answer == nil {
		return err
	}

	if region := answer.Header.Get("X-Amz-Bucket-Region"); region != "" && region != s.Region() && misdirected(answer) {
		return &RegionError{Bucket: s.config.Bucket, Region: region, Err: err}
	}

	// AWS supports all headers.
	if s.config.Endpoint == "" || !refusesHeaders(err, answer) {
		return err
	}

	if headers := optional(answer.Request.Header, err); len(headers) > 0 {
		return &HeaderError{Headers: headers, Err: err}
	}

	return err
}

// answerOf is the answer in an error that comes with the request it was for, or nil.
func answerOf(err error) *http.Response {
	var failed *awshttp.ResponseError
	if !errors.As(err, &failed) || failed.Response == nil || failed.Response.Response == nil ||
		failed.Response.Request == nil {
		return nil
	}

	return failed.Response.Response
}

// misdirected is how S3 answers a request for another region (Amazon S3 API Reference, Error responses:
// PermanentRedirect, TemporaryRedirect, AuthorizationHeaderMalformed, IllegalLocationConstraintException).
func misdirected(answer *http.Response) bool {
	return answer.StatusCode >= 300 && answer.StatusCode < 400 || answer.StatusCode == http.StatusBadRequest
}

// refusesHeaders is how S3 answers headers that it does not support (Amazon S3 API Reference, Error
// responses: NotImplemented, InvalidArgument, InvalidRequest). An answer to HEAD has the status alone.
func refusesHeaders(err error, answer *http.Response) bool {
	if answer.StatusCode == http.StatusNotImplemented {
		return true
	}

	var api smithy.APIError
	if answer.StatusCode != http.StatusBadRequest || !errors.As(err, &api) {
		return false
	}

	switch api.ErrorCode() {
	case "NotImplemented", "InvalidArgument", "InvalidRequest", "BadRequest":
		return true
	default:
		return false
	}
}

// optional are the headers of a request that a Config can leave out: those that the server names, or all.
func optional(sent http.Header, err error) []Header {
	var all, named []Header

	answer := strings.ToLower(err.Error())

	for _, name := range []string{
		"If-None-Match", "X-Amz-Checksum-Crc32c", "X-Amz-Checksum-Algorithm", "X-Amz-Checksum-Mode",
		"X-Amz-Sdk-Checksum-Algorithm", "X-Amz-Checksum-Type",
	} {
		if sent.Get(name) == "" {
			continue
		}

		h := Header{Name: strings.ToLower(name), Setting: Checksums}
		if name == "If-None-Match" {
			h = Header{Name: name, Setting: ConditionalWrites}
		}

		all = append(all, h)

		if strings.Contains(answer, strings.ToLower(name)) {
			named = append(named, h)
		}
	}

	if len(named) > 0 {
		return named
	}

	return all
}
