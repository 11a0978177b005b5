package kubelet

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgo "k8s.io/client-go/kubernetes"
)

// Port is where the kube-apiserver asks a kubelet.
const Port = 10250

// Serve opens the server of the kubelet at an address.
func Serve(ctx context.Context, address string, handler http.Handler) (*httptest.Server, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", net.JoinHostPort(address, strconv.Itoa(Port)))
	if err != nil {
		return nil, err
	}

	server := &httptest.Server{Listener: listener,
		Config: &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}} //nolint:gosec // for a test
	// The kube-apiserver asks for no certificate of a known authority, having none.
	server.StartTLS()

	return server, nil
}

// Warn makes an event of a pod, once for each reason, which reported keeps. That it cannot be made, as in a
// namespace that is to end, is no trouble of the pod.
func Warn(
	ctx context.Context, api clientgo.Interface, pod *corev1.Pod, reported map[string]bool, reason, message string,
) {
	if reported[reason] {
		return
	}

	now := metav1.Now()

	_, err := api.CoreV1().Events(pod.Namespace).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: pod.Name + "."},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
			FieldPath: "spec.containers{" + pod.Spec.Containers[0].Name + "}",
		},
		Type: corev1.EventTypeWarning, Reason: reason, Message: message, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: "kubelet", Host: pod.Spec.NodeName},
	}, metav1.CreateOptions{})

	reported[reason] = err == nil || apierrors.IsForbidden(err)
}
