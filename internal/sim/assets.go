package sim

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/blang/semver/v4"
	talosx509 "github.com/siderolabs/crypto/x509"
	"github.com/talosop/terraform-provider-talosop/internal/sim/certs"
	etcdpkg "github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/process"
)

// realParts are the programs and the scratch folder of a site with real etcd and
// Kubernetes.
type realParts struct {
	sim        *Simulator
	etcd       string
	kubernetes kubePrograms
	dir        string
	nursery    *process.Nursery

	mu   sync.Mutex
	next netip.Addr // for servers behind the machines' listeners
}

// findAssets looks the programs up in a folder. etcd built from its module is called
// "server".
func findAssets(s *Simulator, folder string) (*realParts, error) {
	etcd, err := process.FindProgram(folder, "etcd", "server")
	if err != nil {
		return nil, err
	}

	kubernetes, err := findKubernetes(s.ctx, folder)
	if err != nil {
		return nil, err
	}

	dir, err := os.MkdirTemp("", "talossim-*")
	if err != nil {
		return nil, fmt.Errorf("make scratch folder: %w", err)
	}

	first := s.addrs.prefix.Addr().As4()
	first[2]++ // the first /24 holds the endpoints and the claim
	first[3] = firstHidden

	return &realParts{
		sim: s, etcd: etcd, kubernetes: kubernetes, dir: dir, nursery: process.NewNursery(), next: netip.AddrFrom4(first),
	}, nil
}

// kubeProgram is a kube-apiserver of one version.
type kubeProgram struct {
	path    string
	version semver.Version
}

// kubePrograms are the versions of Kubernetes that a site can run, at most one of a minor.
type kubePrograms []*kubeProgram

// findKubernetes looks for kube-apiservers in a folder and in the folders in it, and asks
// each for its version.
func findKubernetes(ctx context.Context, folder string) (kubePrograms, error) {
	if _, err := process.FindProgram(folder, "kube-apiserver"); err != nil {
		return nil, err
	}

	var programs kubePrograms

	for _, pattern := range []string{"kube-apiserver", "*/kube-apiserver"} {
		paths, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return nil, fmt.Errorf("look for kube-apiserver: %w", err)
		}

		for _, path := range paths {
			program, err := askVersion(ctx, path)
			if err != nil {
				return nil, err
			}

			if _, err := programs.of(program.version.String()); err != nil {
				programs = append(programs, program)
			}
		}
	}

	return programs, nil
}

// askVersion runs a kube-apiserver, which prints "Kubernetes v1.36.3".
func askVersion(ctx context.Context, path string) (*kubeProgram, error) {
	said, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its version: %w", path, err)
	}

	version, err := semver.ParseTolerant(strings.TrimPrefix(strings.TrimSpace(string(said)), "Kubernetes "))
	if err != nil {
		return nil, fmt.Errorf("read version of %s: %w", path, err)
	}

	return &kubeProgram{path: path, version: version}, nil
}

// of finds the program for a version, which is the one of its minor: patch releases of
// Kubernetes differ in nothing that a cluster of the simulator shows but their number.
func (p kubePrograms) of(version string) (*kubeProgram, error) {
	wanted, err := semver.ParseTolerant(version)
	if err != nil {
		return nil, fmt.Errorf("read Kubernetes version %q: %w", version, err)
	}

	there := make([]string, 0, len(p))

	for _, program := range p {
		if program.version.Major == wanted.Major && program.version.Minor == wanted.Minor {
			return program, nil
		}

		there = append(there, "v"+program.version.String())
	}

	return nil, fmt.Errorf("no kube-apiserver for Kubernetes %s (there are %s)", version, strings.Join(there, ", "))
}

// hiddenAddress is a loopback address no machine has.
func (p *realParts) hiddenAddress() (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	addr := p.next
	if !reserved(p.sim.addrs.prefix, addr) {
		return addr, errAddressesExhausted
	}

	p.next = addr.Next()

	return addr, nil
}

func (p *realParts) end() error {
	p.nursery.Close()

	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("remove scratch folder: %w", err)
	}

	return nil
}

// etcdAuthority is the etcd CA of the boot's configuration.
func (b *boot) etcdAuthority() (*certs.Authority, *talosx509.PEMEncodedCertificateAndKey, error) {
	pair := b.config().Cluster().Etcd().CA()

	ca, err := certs.LoadAuthority(pair)
	if err != nil {
		return nil, nil, fmt.Errorf("load etcd CA: %w", err)
	}

	return ca, pair, nil
}

// newEtcd makes the part that runs etcd.
func (p *realParts) newEtcd() *etcdpkg.Real {
	return &etcdpkg.Real{
		World: p.sim.world, Program: p.etcd, Folder: p.sim.opts.Assets, Dir: p.dir, Nursery: p.nursery, Peers: &p.sim.standIns,
	}
}
