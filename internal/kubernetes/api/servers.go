package api

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// ControlPlaneLabel is on the nodes of control planes: Talos gives it to them, as
// kubeadm does (Talos 1.13, constants.LabelNodeRoleControlPlane).
const ControlPlaneLabel = "node-role.kubernetes.io/control-plane"

// Learn records the control planes among all nodes of the cluster. So the client survives the loss of an endpoint
// when the options named none of them, or not all. It does not trust the address of a node: the server there must
// show a certificate of the cluster's CA. It skips an address that makes no URL.
func (c *Client) Learn(nodes []corev1.Node) {
	var learned []*Server

	for i := range nodes {
		if _, controlPlane := nodes[i].Labels[ControlPlaneLabel]; !controlPlane {
			continue
		}

		for _, ip := range InternalIPs(&nodes[i]) {
			if s, given := c.serverOf(ip); s != nil && !given {
				learned = append(learned, s)
			}
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	for _, s := range c.learned {
		if !slices.Contains(learned, s) {
			s.http.CloseIdleConnections()
		}
	}

	c.learned = learned

	if c.preferred != nil && !slices.Contains(c.given, c.preferred) && !slices.Contains(learned, c.preferred) {
		c.preferred = nil
	}
}

// serverOf is the API server of a control plane, by the machine's own address. given is true when the options name
// it, in which case the port is theirs. It is nil for an address that makes no URL, and for a client of a
// kubeconfig, which only asks the server that it names.
func (c *Client) serverOf(ip string) (s *Server, given bool) {
	for _, s := range c.given[1:] {
		if s.host() == ip {
			return s, true
		}
	}

	base := "https://" + net.JoinHostPort(ip, c.Options.Port)

	for _, s := range c.given {
		if s.URL == base {
			return s, true
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	for _, s := range c.learned {
		if s.URL == base {
			return s, false
		}
	}

	if c.connect == nil {
		return nil, false
	}

	if u, err := url.Parse(base); err != nil || u.Host == "" {
		return nil, false
	}

	return c.connect(base), false
}

// Servers are all that are known, the one that answered last first.
func (c *Client) Servers() []*Server { return c.order() }

// At is the API of one server alone.
func (c *Client) At(s *Server) (rest.Interface, error) {
	api, err := c.restOf(c.pinnedTo(s))
	if err != nil {
		return nil, fmt.Errorf("prepare the Kubernetes API at %s: %w", s.URL, err)
	}

	return api, nil
}

// pinnedTo is the transport to one server alone.
func (c *Client) pinnedTo(s *Server) *Failover {
	pinned := c.typed(func() []*Server { return []*Server{s} })
	pinned.pinned = true

	return pinned
}

// restOf is the API through a transport.
func (c *Client) restOf(through *Failover) (rest.Interface, error) {
	api, err := corev1client.NewForConfigAndClient(c.restConfig(), &http.Client{Transport: through})
	if err != nil {
		return nil, err
	}

	return api.RESTClient(), nil
}

func (s *Server) host() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return ""
	}

	return u.Hostname()
}

// InternalIPs are the addresses of a node's machine.
func InternalIPs(n *corev1.Node) []string {
	var out []string

	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			out = append(out, a.Address)
		}
	}

	return out
}
