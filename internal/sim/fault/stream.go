package fault

import (
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"google.golang.org/grpc"
)

// StruckStream is the stream of a call that a fault hits in the middle.
type StruckStream struct {
	grpc.ServerStream

	Left   int // bytes until then
	Strike func() error
}

// SendMsg implements grpc.ServerStream.
func (s *StruckStream) SendMsg(msg any) error {
	if err := s.count(msg); err != nil {
		return err
	}

	return s.ServerStream.SendMsg(msg)
}

// RecvMsg implements grpc.ServerStream.
func (s *StruckStream) RecvMsg(msg any) error {
	if err := s.ServerStream.RecvMsg(msg); err != nil {
		return err
	}

	return s.count(msg)
}

func (s *StruckStream) count(msg any) error {
	data, ok := msg.(*common.Data)
	if !ok || s.Left <= 0 {
		return nil
	}

	if s.Left -= len(data.GetBytes()); s.Left > 0 {
		return nil
	}

	return s.Strike()
}
