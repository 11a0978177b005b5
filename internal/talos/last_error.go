package talos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/api/common"
	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"github.com/talosop/terraform-provider-talosop/internal/cluster/step"
	"github.com/talosop/terraform-provider-talosop/internal/kubenames"
)

// logTail is how many of the last lines of a log are searched.
const logTail = 200

// fatal finds why a component of Kubernetes ended (k8s.io/component-base 0.36, cli/run.go), or why it does not become
// ready (k8s.io/client-go 0.36, tools/cache/reflector.go).
var fatal = regexp.MustCompile(`"(?:command failed|Failed to watch)" err=("(?:[^"\\]|\\.)*")`)

// LastError is the last error in the log of a component of Kubernetes that keeps it from its work; empty for none.
func (m *Machine) LastError(ctx context.Context, component kubenames.Component) (string, error) {
	s, err := m.dial(ctx)
	if err == nil {
		err = s.expect(step.Member)
	}

	if err != nil {
		return "", fmt.Errorf("read the log of %s on %s: %w", component, m.address, err)
	}

	logs, err := s.logsOf(ctx, component)

	var last string

	for _, log := range logs {
		content, unread := s.log(ctx, log)
		err = errors.Join(err, unread)

		for _, found := range fatal.FindAllStringSubmatch(content, -1) {
			if text, invalid := strconv.Unquote(found[1]); invalid == nil {
				last = text
			}
		}
	}

	if last == "" && err != nil {
		return "", fmt.Errorf("read the log of %s on %s: %w", component, m.address, err)
	}

	return last, nil
}

// logsOf are the logs of a component: that of a service, or those of the containers of its static pod.
func (s *session) logsOf(ctx context.Context, component kubenames.Component) ([]*machineapi.LogsRequest, error) {
	if !component.StaticPod() {
		return []*machineapi.LogsRequest{{Namespace: constants.SystemContainerdNamespace, Id: string(component),
			Driver: common.ContainerDriver_CONTAINERD, TailLines: logTail}}, nil
	}

	answer, err := s.machine.Containers(ctx, &machineapi.ContainersRequest{
		Namespace: constants.K8sContainerdNamespace, Driver: common.ContainerDriver_CRI})
	if err != nil {
		return nil, s.failed(err)
	}

	var logs []*machineapi.LogsRequest

	for _, message := range answer.GetMessages() {
		for _, c := range message.GetContainers() {
			if c.GetName() == string(component) && c.GetId() != c.GetPodId() &&
				strings.HasPrefix(c.GetPodId(), "kube-system/"+string(component)+"-") {
				logs = append(logs, &machineapi.LogsRequest{Namespace: constants.K8sContainerdNamespace, Id: c.GetId(),
					Driver: common.ContainerDriver_CRI, TailLines: logTail})
			}
		}
	}

	return logs, nil
}

// log is the end of a log.
func (s *session) log(ctx context.Context, of *machineapi.LogsRequest) (string, error) {
	stream, err := s.machine.Logs(ctx, of)
	if err != nil {
		return "", s.failed(err)
	}

	var content strings.Builder

	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return content.String(), nil
		}

		if err != nil {
			return content.String(), s.failed(err)
		}

		content.Write(part.GetBytes())
	}
}
