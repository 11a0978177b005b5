package sim

import (
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"google.golang.org/grpc"
)

// struckStream is the stream of a call that a fault hits in the middle.
type struckStream struct {
	grpc.ServerStream

	left   int // bytes until then
	strike func() error
}

// SendMsg implements grpc.ServerStream.
func (s *struckStream) SendMsg(msg any) error {
	if err := s.count(msg); err != nil {
		return err
	}

	return s.ServerStream.SendMsg(msg)
}

// RecvMsg implements grpc.ServerStream.
func (s *struckStream) RecvMsg(msg any) error {
	if err := s.ServerStream.RecvMsg(msg); err != nil {
		return err
	}

	return s.count(msg)
}

func (s *struckStream) count(msg any) error {
	data, ok := msg.(*common.Data)
	if !ok || s.left <= 0 {
		return nil
	}

	if s.left -= len(data.GetBytes()); s.left > 0 {
		return nil
	}

	return s.strike()
}
