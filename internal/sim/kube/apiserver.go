package kube

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/sim/certs"
	etcdpkg "github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	processpkg "github.com/talosop/terraform-provider-talosop/internal/sim/process"
)

// realKube runs real kube-apiservers on the etcd of a cluster: one process for each minor
// version that its machines have, which reaches etcd through a forwarder that picks a
// member that can serve. While machines are upgraded one by one, processes of two
// versions work on the same objects, as in any cluster with several control planes.
type realKube struct {
	parts  *Parts
	site   Site
	dir    string
	ca     *certs.Authority
	admin  *rest.Config // all but the address
	args   []string     // that every process has; secrets and keys are the same for all
	etcd   *processpkg.Forwarder
	cancel context.CancelFunc
	ctx    context.Context //nolint:containedctx // the lifetime of the processes
	work   sync.WaitGroup

	mu        sync.Mutex
	processes []*apiProcess
	ips       []net.IP // that the serving certificate covers
	dns       []string
}

// NewRealKube implements backends.kube with real kube-apiservers.
func (p *Parts) NewRealKube(site Site, group any) (Backend, error) {
	g, ok := group.(*etcdpkg.RealGroup)
	if !ok {
		return nil, fmt.Errorf("kube-apiserver on %T", group)
	}

	k := &realKube{parts: p, site: site, dir: filepath.Join(p.Dir, "kube-apiserver-"+uuid.NewString()[:8])}

	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make kube-apiserver folder: %w", err)
	}

	if err := k.writePKI(); err != nil {
		return nil, err
	}

	// 127.0.0.1 is in the certificates of all members, so any of them may be behind it.
	l, err := (&net.ListenConfig{}).Listen(site.Ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for kube-apiserver's etcd: %w", err)
	}

	k.etcd = processpkg.Forward(l, g.Dial)
	k.args = k.commonArgs()
	k.ctx, k.cancel = context.WithCancel(site.Ctx)

	return k, nil
}

// writePKI writes the certificates and keys of Talos's kube-apiserver, from the configuration.
func (k *realKube) writePKI() error {
	cluster, front := k.site.Config.K8sAPIServerCAConfig(), k.site.Config.K8sAggregatorCAConfig()

	ca, err := certs.LoadAuthority(cluster.IssuingCA())
	if err != nil {
		return fmt.Errorf("load Kubernetes CA: %w", err)
	}

	aggregator, err := certs.LoadAuthority(front.IssuingCA())
	if err != nil {
		return fmt.Errorf("load aggregator CA: %w", err)
	}

	etcdPair := k.site.Config.Cluster().Etcd().CA()

	etcd, err := certs.LoadAuthority(etcdPair)
	if err != nil {
		return fmt.Errorf("load etcd CA: %w", err)
	}

	clients := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}

	// The issuing one is the first of those that are accepted.
	var trusted []byte
	for _, accepted := range cluster.AcceptedCAs() {
		trusted = slices.Concat(trusted, bytes.TrimSpace(accepted.Crt), []byte("\n"))
	}

	k.ca = ca
	k.name()

	err = errors.Join(
		processpkg.WriteFile(k.dir, "ca.crt", trusted),
		processpkg.WriteFile(k.dir, "aggregator-ca.crt", front.IssuingCA().Crt),
		processpkg.WriteFile(k.dir, "etcd-ca.crt", etcdPair.Crt),
		processpkg.WriteFile(k.dir, "service-account.key", k.site.Config.K8sServiceAccountConfig().IssuingKey().Key),
		certs.WritePair(k.dir, "front-proxy", aggregator, certs.Leaf{CommonName: "front-proxy-client", Usage: clients}),
		certs.WritePair(k.dir, "etcd-client", etcd, certs.Leaf{CommonName: "kube-apiserver", Usage: clients}),
		certs.WritePair(k.dir, "admin", ca,
			certs.Leaf{CommonName: "talossim", Organization: []string{"system:masters"}, Usage: clients}),
		k.writeServing(),
	)
	if err != nil {
		return err
	}

	file := func(name string) string { return filepath.Join(k.dir, name) }

	k.admin = &rest.Config{QPS: -1, TLSClientConfig: rest.TLSClientConfig{
		CAFile: file("ca.crt"), CertFile: file("admin.crt"), KeyFile: file("admin.key"),
	}}

	return nil
}

// name collects the names of the serving certificate: the configured ones and every
// address of the site it may be reached at.
func (k *realKube) name() {
	names := append(k.site.Config.K8sAPIServerConfig().CertSANs(),
		k.site.Config.K8sClusterConfig().ClusterEndpoint().Hostname())
	k.dns = []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"}
	k.ips = []net.IP{net.IPv4(127, 0, 0, 1)}

	for _, san := range names {
		if ip := net.ParseIP(san); ip != nil {
			k.ips = append(k.ips, ip)
		} else {
			k.dns = append(k.dns, san)
		}
	}

	for _, addr := range k.site.Machines.Addresses() {
		k.ips = append(k.ips, addr.AsSlice())
	}
}

func (k *realKube) writeServing() error {
	return certs.WritePair(k.dir, "apiserver", k.ca, certs.Leaf{
		CommonName: "kube-apiserver", Organization: []string{"kube-master"}, Ips: k.ips, DNS: k.dns,
		Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

// commonArgs are Talos's, as far as they mean something without kubelets. Two differ: nothing here would remove the
// taint that TaintNodesByCondition puts on new nodes, and there is no address that may be published as an endpoint.
func (k *realKube) commonArgs() []string {
	config := k.site.Config
	file := func(name string) string { return filepath.Join(k.dir, name) }

	return []string{
		"--advertise-address=" + k.site.Address.String(),
		"--endpoint-reconciler-type=none",
		"--allow-privileged=true",
		"--anonymous-auth=false",
		"--authorization-mode=Node,RBAC",
		"--enable-bootstrap-token-auth=true",
		"--enable-admission-plugins=NodeRestriction",
		"--disable-admission-plugins=TaintNodesByCondition",
		"--client-ca-file=" + file("ca.crt"),
		"--tls-cert-file=" + file("apiserver.crt"),
		"--tls-private-key-file=" + file("apiserver.key"),
		"--requestheader-client-ca-file=" + file("aggregator-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + file("front-proxy.crt"),
		"--proxy-client-key-file=" + file("front-proxy.key"),
		"--service-account-issuer=" + config.K8sServiceAccountConfig().IssuerURL(),
		"--service-account-key-file=" + file("service-account.key"),
		"--service-account-signing-key-file=" + file("service-account.key"),
		"--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
		"--service-cluster-ip-range=" + strings.Join(texts(config.K8sNetworkConfig().ServiceCIDRs()), ","),
		"--etcd-servers=https://" + k.etcd.Listener.Addr().String(),
		"--etcd-cafile=" + file("etcd-ca.crt"),
		"--etcd-certfile=" + file("etcd-client.crt"),
		"--etcd-keyfile=" + file("etcd-client.key"),
		"--profiling=false",
		"--v=0",
	}
}

// enabled are the arguments of a configuration that enable APIs.
func enabled(config config.Provider) []string {
	var args []string

	for _, name := range []string{"feature-gates", "runtime-config"} {
		for _, value := range config.K8sAPIServerConfig().ExtraArgs()[name] {
			args = append(args, "--"+name+"="+value)
		}
	}

	return args
}

func texts[T fmt.Stringer](values []T) []string {
	var out []string
	for _, v := range values {
		out = append(out, v.String())
	}

	return out
}

// Serve implements Backend.
func (k *realKube) Serve(l net.Listener, version string, cfg config.Provider) (Server, error) {
	process, err := k.use(version, cfg)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}

	s := &realServer{process: process}
	s.close = s.Also(l)

	return s, nil
}

// use returns the process for a version, which it starts if need be, with what a configuration enables.
func (k *realKube) use(version string, cfg config.Provider) (*apiProcess, error) {
	program, err := k.parts.Programs.of(version)
	if err != nil {
		return nil, err
	}

	k.mu.Lock()
	defer k.mu.Unlock()

	for _, p := range k.processes {
		if p.program == program {
			p.users++

			return p, nil
		}
	}

	p, err := k.start(program, enabled(cfg))
	if err != nil {
		return nil, err
	}

	p.users = 1
	k.processes = append(k.processes, p)

	return p, nil
}

// release ends a use. A process that no machine needs is stopped once another one answers. The last one stays,
// because its start takes seconds of a processor.
func (k *realKube) release(p *apiProcess) {
	k.mu.Lock()
	defer k.mu.Unlock()

	p.users--
	k.retire()
}

// retire stops processes without users if one with users answers. mu is held.
func (k *realKube) retire() {
	if !slices.ContainsFunc(k.processes, func(p *apiProcess) bool { return p.up && p.users > 0 }) {
		return
	}

	k.processes = slices.DeleteFunc(k.processes, func(p *apiProcess) bool {
		if p.users == 0 {
			p.cancel()
		}

		return p.users == 0
	})
}

// cover extends the serving certificate by an address; servers notice the new file.
// mu is held.
func (k *realKube) cover(ip net.IP) error {
	if slices.ContainsFunc(k.ips, ip.Equal) {
		return nil
	}

	k.ips = append(k.ips, ip)

	return k.writeServing()
}

func (k *realKube) Close() error {
	k.cancel()
	k.work.Wait()
	k.etcd.Stop()

	if err := os.RemoveAll(k.dir); err != nil {
		return fmt.Errorf("remove kube-apiserver folder: %w", err)
	}

	return nil
}
