package kubernetes

import (
	"net"
	"net/url"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// learn takes note of the control planes among all nodes of the cluster, so that an
// endpoint that goes away is survived where the options named none of them, or not all. What
// a node says about its address is not trusted: whoever answers there has to show a
// certificate of the cluster's CA. An address that makes no URL is passed over: there is nothing
// to ask.
func (c *Client) learn(nodes []corev1.Node) {
	var learned []*server

	for i := range nodes {
		if _, controlPlane := nodes[i].Labels[controlPlaneLabel]; !controlPlane {
			continue
		}

		for _, ip := range internalIPs(&nodes[i]) {
			s, given, err := c.serverOf(ip)
			if err == nil && !given {
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

// serverOf is the API server of a control plane, by the machine's own address. given is true
// when the options name it, in which case the port is theirs.
func (c *Client) serverOf(ip string) (s *server, given bool, err error) {
	for _, s := range c.given[1:] {
		if s.host() == ip {
			return s, true, nil
		}
	}

	base := "https://" + net.JoinHostPort(ip, c.port)

	for _, s := range c.given {
		if s.url == base {
			return s, true, nil
		}
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	for _, s := range c.learned {
		if s.url == base {
			return s, false, nil
		}
	}

	s, err = c.connect(base)

	return s, false, err
}

func (s *server) host() string {
	u, err := url.Parse(s.url)
	if err != nil {
		return ""
	}

	return u.Hostname()
}

func internalIPs(n *corev1.Node) []string {
	var out []string

	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			out = append(out, a.Address)
		}
	}

	return out
}
