package workload

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Identity identifies a host cluster, whatever route leads there.
type Identity struct {
	// UID is that of the namespace kube-system, which stays as long as the cluster. It is empty where the credentials
	// may not read it.
	UID string
	// Connection and Server are how the host was reached, for people: such as "context prod", and the URL of its API.
	Connection string
	Server     string
}

// String names the host in errors and warnings.
func (i Identity) String() string {
	uid := "kube-system UID " + i.UID
	if i.UID == "" {
		uid = "kube-system UID unknown: no permission"
	}

	// A state that lost its private part knows the UID alone.
	if i.Connection+i.Server == "" {
		return uid
	}

	return strings.TrimSpace(fmt.Sprintf("%s (%s, %s)", i.Connection, i.Server, uid))
}

// Identity asks the host which cluster it is. That it may not be read is no error.
func (h *Client) Identity(ctx context.Context) (Identity, error) {
	found, err := h.API().CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})

	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return Identity{Connection: h.connection, Server: h.config.Host}, nil
	case err != nil:
		return Identity{}, fmt.Errorf("read the namespace %s of %s: %w", metav1.NamespaceSystem, h, err)
	}

	return Identity{UID: string(found.UID), Connection: h.connection, Server: h.config.Host}, nil
}
