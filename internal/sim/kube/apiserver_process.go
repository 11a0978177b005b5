package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/talosop/terraform-provider-talosop/internal/sim/process"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// apiProcess is one kube-apiserver, behind the listeners of all machines that have its
// version. It listens on a hidden address of its own.
type apiProcess struct {
	kube    *realKube
	program *kubeProgram
	addr    netip.AddrPort
	args    []string // in addition to those of all
	client  *kubernetes.Clientset
	cancel  context.CancelFunc

	// Guarded by kube.mu.
	users int  // machines that serve it
	up    bool // it answers
}

// start begins to run a process. mu is held.
func (k *realKube) start(program *kubeProgram, args []string) (*apiProcess, error) {
	addr, err := k.parts.Hidden()
	if err != nil {
		return nil, err
	}

	p := &apiProcess{kube: k, program: program, args: args, addr: netip.AddrPortFrom(addr, EndpointPort)}

	if err := k.cover(addr.AsSlice()); err != nil {
		return nil, err
	}

	if p.client, err = kubernetes.NewForConfig(p.config()); err != nil {
		return nil, fmt.Errorf("make Kubernetes client: %w", err)
	}

	ctx, cancel := context.WithCancel(k.ctx)
	p.cancel = cancel

	k.work.Go(func() { p.run(ctx) })

	return p, nil
}

// run keeps the process alive until ctx ends: like any static pod, it is started again
// when it ends by itself.
func (p *apiProcess) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := p.serve(ctx); err != nil && ctx.Err() == nil {
			p.kube.site.Logf("kube-apiserver v%s: %v", p.program.version, err)
		}

		_ = timing.Pause(ctx, HealthPeriod) // ends with ctx, as the loop does
	}
}

// serve runs the process once, and beside it what kubelets do through it.
func (p *apiProcess) serve(ctx context.Context) error {
	k, version := p.kube, "v"+p.program.version.String()
	args := append(slices.Concat(k.args, p.args), "--bind-address="+p.addr.Addr().String(),
		fmt.Sprintf("--secure-port=%d", p.addr.Port()))

	proc, err := k.parts.Nursery.Start("kube-apiserver "+version, p.program.path, filepath.Join(k.dir, version+".log"),
		args...)
	if err != nil {
		return err
	}

	k.site.Logf("kube-apiserver %s starts on %s", version, p.addr)

	defer k.site.Logf("kube-apiserver %s stopped", version)
	defer proc.Stop()

	if err := proc.AwaitServing(ctx, p.ready); err != nil {
		return err
	}

	kubelets := startKubelets(k.site, p.client)
	defer kubelets.stop()

	p.setUp(true)
	defer p.setUp(false)

	select {
	case <-ctx.Done():
		return nil
	case <-proc.Gone:
		return fmt.Errorf("it ended, see %s", proc.Log)
	}
}

func (p *apiProcess) setUp(up bool) {
	p.kube.mu.Lock()
	defer p.kube.mu.Unlock()

	p.up = up
	p.kube.retire()
}

func (p *apiProcess) ready(ctx context.Context) error {
	_, err := p.client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)

	return err
}

func (p *apiProcess) config() *rest.Config {
	config := rest.CopyConfig(p.kube.admin)
	config.Host = "https://" + p.addr.String()

	return config
}

// realServer is a machine's part of a process: its listeners.
type realServer struct {
	process *apiProcess
	close   func()
}

// Also implements Server.
func (s *realServer) Also(l net.Listener) func() {
	k := s.process.kube

	if at, err := netip.ParseAddrPort(l.Addr().String()); err == nil {
		k.mu.Lock()
		err = errors.Join(k.cover(at.Addr().AsSlice()), k.cover(k.site.Machines.Advertised(at.Addr()).AsSlice()))
		k.mu.Unlock()

		if err != nil {
			k.site.Logf("kube-apiserver: renew certificate: %v", err)
		}
	}

	dialer := &net.Dialer{Timeout: process.DialTimeout}
	f := process.Forward(l, func() (net.Conn, error) { return dialer.DialContext(k.ctx, "tcp4", s.process.addr.String()) })

	// A kube-apiserver that gets a signal lets running requests finish.
	return func() {
		ctx, cancel := context.WithTimeout(k.ctx, drainTime)
		defer cancel()

		f.Drain(ctx)
	}
}

// Ready implements Server.
func (s *realServer) Ready(ctx context.Context) error { return s.process.ready(ctx) }

// Config implements Server.
func (s *realServer) Config() *rest.Config { return s.process.config() }

// Stop implements Server.
func (s *realServer) Stop() {
	s.close()
	s.process.kube.release(s.process)
}
