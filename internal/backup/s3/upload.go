package s3

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	tmtypes "github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager/types"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

const (
	// partSize in bytes: 10,000 parts, S3's limit, make 78 GiB, ten times what etcd
	// supports; the transfer manager holds concurrency + 1 of them in memory.
	partSize    = 8 << 20
	concurrency = 4
	// mark is the metadata that identifies the object of one call.
	mark = "talosop-upload"
	// cleanup is how long removing what an interrupted call left may take.
	cleanup = time.Minute
)

// Put uploads an object, in parts when it is larger than one.
func (s *Store) Put(ctx context.Context, key string, body io.Reader) (store.Object, error) {
	if s.config.NoConditionalWrites {
		if err := s.free(ctx, key); err != nil {
			return store.Object{}, err
		}
	}

	sent := &upload{ctx: ctx, from: body, nonce: rand.Text()}
	client := &sender{Client: s.client, bare: s.config.NoChecksums, unsigned: s.config.secure()}

	_, err := transfer(client).UploadObject(ctx, s.input(key, sent))

	object, err := s.settled(ctx, key, sent, client, s.classified("store", key, err))
	if err == nil && client.again.Load() {
		_, err = s.abort(ctx, key, func(u types.MultipartUpload) bool { return aws.ToString(u.Key) == key })
	}

	if err != nil {
		return store.Object{}, errors.Join(err, s.cleanedUp(ctx, key, sent, err))
	}

	return object, nil
}

// free is nil when there is no object of a key: what a server without conditional writes can say.
func (s *Store) free(ctx context.Context, key string) error {
	_, err := s.head(ctx, key)

	switch {
	case err == nil:
		return fmt.Errorf("store %s: %w", key, store.ErrExists)
	case errors.Is(err, store.ErrNotFound):
		return nil
	default:
		return err
	}
}

func transfer(client *sender) *transfermanager.Client {
	return transfermanager.New(client, func(o *transfermanager.Options) {
		o.PartSizeBytes, o.MultipartUploadThreshold = partSize, partSize
		o.Concurrency = concurrency
		o.FailTimeout = cleanup

		if client.bare {
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		} else {
			o.ChecksumAlgorithm = tmtypes.ChecksumAlgorithmCrc32c
		}
	})
}

func (s *Store) input(key string, body *upload) *transfermanager.UploadObjectInput {
	in := &transfermanager.UploadObjectInput{
		Bucket: &s.config.Bucket, Key: &key, Body: body, Metadata: map[string]string{mark: body.nonce},
	}

	if !s.config.NoConditionalWrites {
		in.IfNoneMatch = aws.String("*")
	}

	if e := s.config.Encryption; e.Algorithm != "" {
		in.ServerSideEncryption = tmtypes.ServerSideEncryption(e.Algorithm)
		if e.KMSKey != "" {
			in.SSEKMSKeyID = &e.KMSKey
		}
	}

	if l := s.config.Lock; l.Mode != "" {
		in.ObjectLockMode = tmtypes.ObjectLockMode(l.Mode)
		in.ObjectLockRetainUntilDate = &l.Until
	}

	return in
}

// settled compares what the server holds with what was sent. It asks after a failure, too:
// an answer that was lost makes the SDK repeat a request that had worked, and the second
// one is refused because of the first.
func (s *Store) settled(
	ctx context.Context, key string, sent *upload, client *sender, failed error,
) (store.Object, error) {
	if failed != nil && (!sent.ended || ctx.Err() != nil) {
		return store.Object{}, failed
	}

	head, err := s.head(ctx, key)
	if err != nil {
		return store.Object{}, cmp.Or(failed, err)
	}

	if head.Metadata[mark] != sent.nonce {
		if failed == nil {
			failed = fmt.Errorf("%w: %s was replaced during the upload", store.ErrDiffers, key)
		}

		return store.Object{}, failed
	}

	object := described(key, head)
	if object.Size != sent.size {
		return store.Object{}, fmt.Errorf("%w: %s has %d bytes, expected %d", store.ErrDiffers, key, object.Size, sent.size)
	}

	return object, s.compared(ctx, object, client)
}

// compared checks the sum that the server made when it stored the object. A server that makes
// none, or one of another kind, is asked for the bytes.
func (s *Store) compared(ctx context.Context, object store.Object, client *sender) (err error) {
	want := client.sums.checksum()
	if object.Checksum == want {
		return nil
	}

	body, err := s.Open(ctx, object.Key, store.Range{})
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, body.Close()) }()

	got := sums{single: client.sums.single}

	for number := int32(1); ; number++ {
		sum := newCRC()

		n, err := io.CopyN(sum, body, partSize)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read %s: %w", object.Key, err)
		}

		if n > 0 || number == 1 {
			got.add(number, sum.Sum(nil))
		}

		if err != nil {
			break
		}
	}

	if got := got.checksum(); got != want {
		return fmt.Errorf("%w: %s has checksum %s, expected %s", store.ErrDiffers, object.Key, got, want)
	}

	return nil
}

// cleanedUp removes what a failed call may have left: the object of a completion whose
// answer was lost or that did not bear out, and an upload whose id was lost. The transfer
// manager has aborted the one it knew.
func (s *Store) cleanedUp(ctx context.Context, key string, sent *upload, failed error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanup)
	defer cancel()

	var errs []error

	if sent.ended && !denied(failed) {
		head, err := s.head(ctx, key)

		switch {
		case err == nil && head.Metadata[mark] == sent.nonce:
			errs = append(errs, s.Delete(ctx, key))
		case err != nil && !errors.Is(err, store.ErrNotFound):
			errs = append(errs, fmt.Errorf("check whether the object was stored: %w", err))
		}
	}

	if sent.size >= partSize && !errors.Is(failed, store.ErrExists) {
		_, err := s.abort(ctx, key, func(u types.MultipartUpload) bool { return aws.ToString(u.Key) == key })
		errs = append(errs, err)
	}

	return errors.Join(errs...)
}

// denied is true for a request that a server refused to this caller, so that there is no object to look for and no
// right to.
func denied(err error) bool {
	var answer *awshttp.ResponseError

	// Not 404: a repeated completion also gets that when the first one succeeded and its answer was lost.
	return errors.As(err, &answer) &&
		(answer.HTTPStatusCode() == http.StatusUnauthorized || answer.HTTPStatusCode() == http.StatusForbidden)
}

// upload is a body that is being sent: it knows what was sent.
type upload struct {
	ctx   context.Context //nolint:containedctx // an io.Reader has no other way to be canceled, and it lives for one call
	from  io.Reader
	nonce string
	size  int64
	ended bool // everything was read
}

func (u *upload) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}

	if u.ended {
		return 0, io.EOF
	}

	n, err := u.from.Read(p)
	u.size += int64(n)
	u.ended = errors.Is(err, io.EOF)

	return n, err
}
