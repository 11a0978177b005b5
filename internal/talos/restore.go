package talos

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
)

// uploadSnapshot sends a snapshot to the machine, which keeps it as a file until it is told
// to bootstrap from it. A file that is there is replaced (Talos 1.13, EtcdRecover).
func (m *Machine) uploadSnapshot(ctx context.Context, s *session, snapshot io.Reader) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	stream, err := s.machine.EtcdRecover(ctx)
	if err != nil {
		return fmt.Errorf("send the snapshot: %w", s.failed(err))
	}

	chunk := make([]byte, uploadChunk)

	for {
		n, err := snapshot.Read(chunk)
		if n > 0 {
			// The stream ends early when the machine refuses; CloseAndRecv knows why.
			if stream.Send(&common.Data{Bytes: chunk[:n]}) != nil {
				break
			}
		}

		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("read the snapshot: %w", err)
		}
	}

	if _, err := stream.CloseAndRecv(); err != nil {
		return fmt.Errorf("send the snapshot: %w", s.failed(err))
	}

	return nil
}

// uploadChunk is the bytes of one message, far below gRPC's limit of 4 MiB.
const uploadChunk = 64 << 10
