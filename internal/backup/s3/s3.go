// Package s3 keeps backups as objects of a bucket on AWS or a server that speaks its protocol.
package s3

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

var _ store.Store = (*Store)(nil)

// Store stores each object in a bucket.
type Store struct {
	client *s3.Client
	config Config
}

// Region of the requests; empty when neither Config nor the environment has one, and then no request is possible.
func (s *Store) Region() string { return s.client.Options().Region }

// Head requests size, checksum and time of an object.
func (s *Store) Head(ctx context.Context, key string) (store.Object, error) {
	head, err := s.head(ctx, key)
	if err != nil {
		return store.Object{}, err
	}

	return described(key, head), nil
}

// described is an object as the server describes it. An object of another client may have a sum of another kind,
// which distinguishes it from ours.
func described(key string, head *s3.HeadObjectOutput) store.Object {
	object := store.Object{Key: key, Size: aws.ToInt64(head.ContentLength), Modified: aws.ToTime(head.LastModified)}

	for _, sum := range []struct {
		name  string
		value *string
	}{{"CRC32C", head.ChecksumCRC32C}, {"CRC64NVME", head.ChecksumCRC64NVME}, {"SHA256", head.ChecksumSHA256},
		{"CRC32", head.ChecksumCRC32}} {
		if sum.value != nil {
			object.Checksum = sum.name + ":" + *sum.value
			break
		}
	}

	return object
}

func (s *Store) head(ctx context.Context, key string) (*s3.HeadObjectOutput, error) {
	in := &s3.HeadObjectInput{Bucket: &s.config.Bucket, Key: &key}
	if !s.config.NoChecksums {
		in.ChecksumMode = types.ChecksumModeEnabled
	}

	head, err := s.client.HeadObject(ctx, in)

	return head, s.classified("look up", key, err)
}

// List describes all objects below a prefix, a page of the server's after the other.
func (s *Store) List(ctx context.Context, prefix string) ([]store.Object, error) {
	var objects []store.Object

	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &s.config.Bucket, Prefix: &prefix})
	for count := 0; pages.HasMorePages(); count++ {
		if err := errors.Join(store.Full(prefix, len(objects)), endless(count)); err != nil {
			return nil, s.classified("list", prefix, err)
		}

		page, err := pages.NextPage(ctx, boundedAnswers)
		if err != nil {
			return nil, s.classified("list", prefix, err)
		}

		for _, o := range page.Contents {
			objects = append(objects, store.Object{Key: aws.ToString(o.Key), Size: aws.ToInt64(o.Size),
				Modified: aws.ToTime(o.LastModified)})
		}
	}

	return objects, store.Full(prefix, len(objects))
}

// Delete removes an object. A bucket with versions keeps it as a former one.
func (s *Store) Delete(ctx context.Context, key string) error {
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.config.Bucket, Key: &key})
	if err = s.classified("delete", key, err); errors.Is(err, store.ErrNotFound) {
		return nil
	}

	return err
}

// Sweep aborts multipart uploads, whose parts cost money and are in no listing.
func (s *Store) Sweep(ctx context.Context, prefix string, meant func(key string, begun time.Time) bool) (int, error) {
	return s.abort(ctx, prefix, func(u types.MultipartUpload) bool {
		return meant(aws.ToString(u.Key), aws.ToTime(u.Initiated))
	})
}

// abort ends the multipart uploads below a prefix that are meant.
func (s *Store) abort(ctx context.Context, prefix string, meant func(types.MultipartUpload) bool) (int, error) {
	var (
		aborted int
		errs    []error
	)

	pages := s3.NewListMultipartUploadsPaginator(s.client,
		&s3.ListMultipartUploadsInput{Bucket: &s.config.Bucket, Prefix: &prefix})
	for count := 0; pages.HasMorePages(); count++ {
		if err := endless(count); err != nil {
			return aborted, errors.Join(append(errs, s.classified("list uploads of", prefix, err))...)
		}

		page, err := pages.NextPage(ctx, boundedAnswers)
		if err != nil {
			return aborted, errors.Join(append(errs, s.classified("list uploads of", prefix, err))...)
		}

		for _, u := range page.Uploads {
			if !strings.HasPrefix(aws.ToString(u.Key), prefix) || !meant(u) {
				continue
			}

			_, err := s.client.AbortMultipartUpload(ctx,
				&s3.AbortMultipartUploadInput{Bucket: &s.config.Bucket, Key: u.Key, UploadId: u.UploadId})
			if err = s.classified("abort the upload of", aws.ToString(u.Key), err); err != nil &&
				!errors.Is(err, store.ErrNotFound) {
				errs = append(errs, err)
				continue
			}

			aborted++
		}
	}

	return aborted, errors.Join(errs...)
}

// Open reads an object. A reading that the network cuts continues where it ended.
func (s *Store) Open(ctx context.Context, key string, part store.Range) (io.ReadCloser, error) {
	r := &reading{ctx: ctx, store: s, key: key, next: part.Offset}
	if part.Length > 0 {
		r.end = part.Offset + part.Length
	}

	if err := r.open(); err != nil {
		return nil, err
	}

	return r, nil
}
