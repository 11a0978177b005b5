package s3

import (
	"context"
	"encoding/base64"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// sender is the client of one upload. It gives each request the sum of its body, which is in
// memory, in a header: left to itself the SDK sends it in a trailer, which many servers do
// not know, or reads each body for a SHA-256 as well.
type sender struct {
	*s3.Client
	// bare sends no sums; those of the parts are kept to compare what is read back.
	bare bool
	// unsigned leaves the body out of the signature, which has the sum in it.
	unsigned bool
	// again is true when an upload was begun more than once: an answer that was lost took
	// the id of an upload with it, which would stay for ever.
	again atomic.Bool
	sums  sums
}

// CreateMultipartUpload begins an upload.
func (s *sender) CreateMultipartUpload(
	ctx context.Context, in *s3.CreateMultipartUploadInput, options ...func(*s3.Options),
) (*s3.CreateMultipartUploadOutput, error) {
	out, err := s.Client.CreateMultipartUpload(ctx, in, options...)
	if err != nil {
		return nil, err
	}

	attempts, ok := retry.GetAttemptResults(out.ResultMetadata)
	s.again.Store(!ok || len(attempts.Results) > 1)

	return out, nil
}

// UploadPart sends a part.
func (s *sender) UploadPart(
	ctx context.Context, in *s3.UploadPartInput, options ...func(*s3.Options),
) (*s3.UploadPartOutput, error) {
	sum, err := summed(in.Body)
	if err != nil {
		return nil, err
	}

	s.sums.add(aws.ToInt32(in.PartNumber), sum)

	in.ChecksumCRC32C = s.header(sum)

	return s.Client.UploadPart(ctx, in, s.signed(options)...)
}

// PutObject sends an object that has one part.
func (s *sender) PutObject(
	ctx context.Context, in *s3.PutObjectInput, options ...func(*s3.Options),
) (*s3.PutObjectOutput, error) {
	sum, err := summed(in.Body)
	if err != nil {
		return nil, err
	}

	s.sums.single = true
	s.sums.add(1, sum)

	in.ChecksumCRC32C = s.header(sum)

	return s.Client.PutObject(ctx, in, s.signed(options)...)
}

// header is a sum as a request carries it, or nil.
func (s *sender) header(sum []byte) *string {
	if s.bare {
		return nil
	}

	return aws.String(base64.StdEncoding.EncodeToString(sum))
}

// signed has the body in the signature where no sum is in it, or where nothing else protects it.
func (s *sender) signed(options []func(*s3.Options)) []func(*s3.Options) {
	if s.bare || !s.unsigned {
		return options
	}

	return append(slices.Clone(options), s3.WithAPIOptions(v4.SwapComputePayloadSHA256ForUnsignedPayloadMiddleware))
}

// sums are those of the parts of an object. They may be added side by side.
type sums struct {
	mu     sync.Mutex
	parts  map[int32][]byte // by their number, from 1
	single bool             // the object came in one piece
}

func (s *sums) add(number int32, sum []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.parts == nil {
		s.parts = map[int32][]byte{}
	}

	s.parts[number] = sum
}

// checksum is what S3 answers: for an object that came in parts the sum over their sums, with
// their number (AWS, "Checking object integrity": composite checksums).
func (s *sums) checksum() string {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.single {
		return checksum(s.parts[1])
	}

	sum := newCRC()
	for number := range int32(len(s.parts)) {
		sum.Write(s.parts[number+1])
	}

	return fmt.Sprintf("%s-%d", checksum(sum.Sum(nil)), len(s.parts))
}

// newCRC is the sum that requests carry and servers answer. It finds what a network or a
// disk does to a part; it is fast, and was known to servers before the others were.
func newCRC() hash.Hash32 { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) }

// checksum names a sum as Object.Checksum does.
func checksum(sum []byte) string { return "CRC32C:" + base64.StdEncoding.EncodeToString(sum) }

// summed is the sum of a body, which is read again for each attempt to send it.
func summed(body io.Reader) ([]byte, error) {
	again, ok := body.(io.ReadSeeker)
	if !ok {
		return nil, fmt.Errorf("the request body (%T) cannot be read twice", body)
	}

	sum := newCRC()
	if _, err := io.Copy(sum, again); err != nil {
		return nil, err
	}

	_, err := again.Seek(0, io.SeekStart)

	return sum.Sum(nil), err
}

// secure is true when requests go over TLS.
func (c Config) secure() bool { return !strings.HasPrefix(c.Endpoint, "http://") }
