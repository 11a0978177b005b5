package sim

import (
	"errors"
	"path/filepath"

	etcdpkg "github.com/talosop/terraform-provider-talosop/internal/sim/etcd"
	"github.com/talosop/terraform-provider-talosop/internal/sim/process"
)

// HandOverWorkloads leaves the status of DaemonSets and Deployments alone from now on, in
// all clusters of the site: a test runs the real kube-controller-manager, and something that
// plays scheduler and kubelets for the pods that it makes.
func (s *Simulator) HandOverWorkloads() {
	s.world.Update(func() { s.controlled = true })
}

// Guest is a program that runs beside the machines of a site.
type Guest struct{ child *process.Child }

// StartGuest runs a program that does not outlive the site's process, with its output in a
// file of the site's scratch folder. It needs Options.Assets. Stop it before the site is
// closed.
func (s *Simulator) StartGuest(name, path string, args ...string) (*Guest, error) {
	etcd, ok := s.backends.etcd.(*etcdpkg.Real)
	if !ok {
		return nil, errors.New("start " + name + ": the site has no real parts")
	}

	child, err := etcd.Nursery.Start(name, path, filepath.Join(etcd.Dir, name+".log"), args...)
	if err != nil {
		return nil, err
	}

	return &Guest{child}, nil
}

// Stop ends the program and returns when it is gone.
func (g *Guest) Stop() { g.child.Stop() }

// Gone is closed when the program has ended.
func (g *Guest) Gone() <-chan struct{} { return g.child.Gone }

// Log is the file that the program writes to.
func (g *Guest) Log() string { return g.child.Log }
