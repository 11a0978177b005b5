package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

const (
	// worth is how many bytes of a connection make it count: one that brings less is as good as
	// one that brings nothing.
	worth = 64 << 10
	// firstPause is that after the first cut; it doubles with each in a row, to 3.2 s.
	firstPause = 200 * time.Millisecond
)

// reading is an object that is read to its end over more than one connection if need be.
type reading struct {
	ctx   context.Context //nolint:containedctx // an io.Reader has no other way to be canceled
	store *Store
	key   string
	etag  *string // of the object as it was opened; another one must not go on from its middle
	body  io.ReadCloser
	next  int64 // the byte that is read next
	end   int64 // the byte after the last; 0 is not known yet
	came  int64 // bytes since the last cut
	cuts  int   // in a row, without worth of bytes in between
}

// open requests the rest of the object.
func (r *reading) open() error {
	span := fmt.Sprintf("bytes=%d-", r.next)
	if r.end > 0 {
		span = fmt.Sprintf("bytes=%d-%d", r.next, r.end-1)
	}

	in := &s3.GetObjectInput{Bucket: &r.store.config.Bucket, Key: &r.key, IfMatch: r.etag}
	if r.next > 0 || r.end > 0 {
		in.Range = &span
	}

	ctx, cancel := context.WithCancelCause(r.ctx)

	out, err := r.store.client.GetObject(ctx, in)
	if err != nil {
		cancel(nil)

		// The one condition of a reading is that the object is the one that was opened.
		if err = r.store.classified("read", r.key, err); errors.Is(err, store.ErrExists) {
			return fmt.Errorf("read %s: %w: the object changed during the read", r.key, store.ErrDiffers)
		}

		return err
	}

	if out.ContentLength == nil || *out.ContentLength < 0 {
		defer cancel(nil)

		return errors.Join(fmt.Errorf("read %s: the response has no content length", r.key), out.Body.Close())
	}

	// A range may reach past the object; the announced length is what must arrive.
	r.body, r.etag, r.end = paced(ctx, out.Body, cancel, r.store.config.stall()), out.ETag,
		r.next+aws.ToInt64(out.ContentLength)

	return nil
}

// pace ends a connection that stopped moving: one whose other side lost its power is waited
// for as long as the network stack tries.
type pace struct {
	io.ReadCloser

	ctx    context.Context //nolint:containedctx // the connection's, whose cause says why it ended
	cancel context.CancelCauseFunc
	limit  time.Duration
	timer  *time.Timer
}

// paced is the body of an answer that a context ends, with its pace.
func paced(ctx context.Context, body io.ReadCloser, cancel context.CancelCauseFunc, limit time.Duration) *pace {
	timer := time.AfterFunc(limit, func() { cancel(fmt.Errorf("received no data for %s", limit)) })
	timer.Stop()

	return &pace{ReadCloser: body, ctx: ctx, cancel: cancel, limit: limit, timer: timer}
}

func (p *pace) Read(data []byte) (int, error) {
	p.timer.Reset(p.limit)
	defer p.timer.Stop()

	n, err := p.ReadCloser.Read(data)
	if err != nil && p.ctx.Err() != nil {
		err = context.Cause(p.ctx)
	}

	return n, err
}

func (p *pace) Close() error {
	defer p.cancel(nil)

	return p.ReadCloser.Close()
}

// Read continues after a connection was cut or stopped moving: as often as it was worth it, and
// a few times more, with growing pauses.
func (r *reading) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}

	for {
		if r.next >= r.end {
			return 0, io.EOF
		}

		n, err := r.body.Read(p)
		r.next += int64(n)

		if n > 0 {
			if r.came += int64(n); r.came >= worth {
				r.cuts = 0
			}

			return n, nil
		}

		if err == nil {
			continue
		}

		if err := r.again(err); err != nil {
			return 0, err
		}
	}
}

// again opens the rest after the connection broke with that error.
func (r *reading) again(cut error) error {
	if r.ctx.Err() != nil {
		return fmt.Errorf("read %s: %w", r.key, context.Cause(r.ctx))
	}

	if r.cuts++; r.cuts >= attempts {
		return fmt.Errorf("read %s: received %d of %d bytes: %w", r.key, r.next, r.end, unexpected(cut))
	}

	_ = r.body.Close() // the connection is broken, which is known
	r.came = 0

	// A server that fails needs some time.
	pause := time.NewTimer(firstPause << (r.cuts - 1))
	defer pause.Stop()

	select {
	case <-pause.C:
		return r.open()
	case <-r.ctx.Done():
		return fmt.Errorf("read %s: %w", r.key, context.Cause(r.ctx))
	}
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}

	return err
}

// Close ends the reading.
func (r *reading) Close() error { return r.body.Close() }
