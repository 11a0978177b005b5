package sim

import (
	"fmt"
	"net/netip"
	"os"
	"sync"

	"github.com/talosop/terraform-provider-talosop/internal/sim/addresses"
	etcdpkg "github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/process"
)

// realParts are the programs and the scratch folder of a site with real etcd and
// Kubernetes.
type realParts struct {
	sim        *Simulator
	etcd       string
	kubernetes kube.Programs
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

	var kubernetes kube.Programs

	if !s.opts.OnlyEtcd {
		if kubernetes, err = kube.FindPrograms(s.ctx, folder); err != nil {
			return nil, err
		}
	}

	dir, err := os.MkdirTemp("", "talossim-*")
	if err != nil {
		return nil, fmt.Errorf("make scratch folder: %w", err)
	}

	first := s.addrs.Prefix.Addr().As4()
	first[2]++ // the first /24 holds the endpoints and the claim
	first[3] = addresses.FirstHidden

	return &realParts{
		sim: s, etcd: etcd, kubernetes: kubernetes, dir: dir, nursery: process.NewNursery(), next: netip.AddrFrom4(first),
	}, nil
}

// hiddenAddress is a loopback address no machine has.
func (p *realParts) hiddenAddress() (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	addr := p.next
	if !addresses.Reserved(p.sim.addrs.Prefix, addr) {
		return addr, addresses.ErrExhausted
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

// newEtcd makes the part that runs etcd.
func (p *realParts) newEtcd() *etcdpkg.Real {
	return &etcdpkg.Real{
		World: p.sim.world, Program: p.etcd, Folder: p.sim.opts.Assets, Dir: p.dir, Nursery: p.nursery,
		Peers: &p.sim.standIns,
	}
}

// newKube makes the part that runs kube-apiservers.
func (p *realParts) newKube() *kube.Parts {
	return &kube.Parts{Programs: p.kubernetes, Dir: p.dir, Nursery: p.nursery, Hidden: p.hiddenAddress}
}
