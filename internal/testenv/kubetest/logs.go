package kubetest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/talosop/terraform-provider-talosop/internal/testenv/kubelet"
)

// logServers answer for the kubelets of nodes, by the node's address.
type logServers map[string]*httptest.Server

// serve opens the servers of nodes that are new.
func (s *logServers) serve(ctx context.Context, nodes []*corev1.Node, k *kubelets) {
	for _, node := range nodes {
		address := addressOf(node)
		if address == "" || (*s)[address] != nil || k.machineOf(node) == nil {
			continue
		}

		mux := http.NewServeMux()
		mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.serveLog)

		server, err := kubelet.Serve(ctx, address, mux)
		if err != nil {
			k.log("serve logs of node %s: %v", node.Name, err)

			continue
		}

		if *s == nil {
			*s = logServers{}
		}

		(*s)[address] = server
	}
}

func (s *logServers) close() {
	for _, server := range *s {
		server.Close()
	}
}

// serveLog is the kubelet's (Kubernetes 1.36, kubelet/server/server.go getContainerLogs).
func (k *kubelets) serveLog(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("pod")

	pod, err := k.pods.Pods(r.PathValue("namespace")).Get(name)
	if err != nil {
		http.Error(w, fmt.Sprintf("pod %q does not exist", name), http.StatusNotFound)

		return
	}

	container := r.PathValue("container")
	began, ended := false, false

	for _, status := range append(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses...) {
		if status.Name == container {
			began = status.State.Waiting == nil || status.LastTerminationState.Terminated != nil
			ended = status.LastTerminationState.Terminated != nil
		}
	}

	switch previous := r.URL.Query().Get("previous") == "true"; {
	case previous && !ended:
		http.Error(w, fmt.Sprintf("previous terminated container %q in pod %q not found", container, name),
			http.StatusBadRequest)
	case !began:
		http.Error(w, fmt.Sprintf("container %q in pod %q is waiting to start: ContainerCreating", container, name),
			http.StatusBadRequest)
	default:
		_, _ = io.WriteString(w, tail(logOf(pod), r.URL.Query().Get("tailLines"))) // the asker may be gone
	}
}

// logOf is the log of every container of a pod.
func logOf(pod *corev1.Pod) string {
	text := "started\n"
	if annotated, ok := pod.Annotations[LogAnnotation]; ok {
		text = strings.TrimSuffix(annotated, "\n") + "\n"
	}

	if _, reason, fails := failureOf(pod); fails {
		text += reason + "\n"
	}

	return text
}

func tail(text, lines string) string {
	n, err := strconv.Atoi(lines)
	if err != nil {
		return text
	}

	list := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")

	return strings.Join(list[max(0, len(list)-n):], "") + "\n"
}
