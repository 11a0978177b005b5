// Command talossim runs simulated Talos machines until it is interrupted: real clients (talosctl, the
// provider, kubectl) can be pointed at their loopback addresses. It prints the addresses first, then one line
// per call that a machine served, unless -quiet is set.
//
//	go run ./tools/talossim -control-planes 3 -workers 2
//	go run ./tools/talossim -install 3s -boot 2s -fault 'cp-2:Bootstrap:1:unavailable' -fault 'worker-1:*:5:crash'
//	go run ./tools/talossim -image ghcr.io/siderolabs/installer:v1.13.4=boot-fails
//	go run ./tools/talossim -assets ~/.cache/talosop/bin -json machines.auto.tfvars.json
//
// A line on the standard input is a command for a machine, such as `off worker-2`: off cuts its power, on starts it,
// and wipe gives it an empty disk and starts it in maintenance mode.
//
// SIGINT and SIGTERM stop everything it started.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/talosop/terraform-provider-talosop/internal/machineconfig"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/machined"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "talossim:", err)
		os.Exit(1)
	}
}

// settings are the command line.
type settings struct {
	controlPlanes, workers int
	container              bool
	quiet, verbose         bool
	jsonFile               string
	faults                 []namedFault
	images                 []namedImage
	volumes                []namedVolume
	delays                 timing.Delays
	options                sim.Options
}

func parse(args []string) (*settings, error) {
	s := &settings{delays: demoDelays()}

	f := flag.NewFlagSet("talossim", flag.ContinueOnError)
	f.IntVar(&s.controlPlanes, "control-planes", 3, "machines named cp-1, cp-2, …")
	f.IntVar(&s.workers, "workers", 2, "machines named worker-1, worker-2, …")
	f.BoolVar(&s.container, "container", false,
		"containers instead of metal machines: no disks, no installation, no reboot")
	f.BoolVar(&s.quiet, "quiet", false, "print no line per call")
	f.BoolVar(&s.verbose, "v", false, "print what the machines do by themselves as well")
	f.StringVar(&s.options.TalosVersion, "talos", machineconfig.CurrentTalos,
		"Talos version of the machines; before v1.13 maintenance mode serves little")
	f.StringVar(&s.options.Assets, "assets", "", "folder with kube-apiserver and etcd (or server): run real ones")
	f.StringVar(&s.jsonFile, "json", "",
		"write the addresses to this file once the machines answer, as Terraform variables")
	f.Func("fault", "MACHINE:METHOD:NTH:WHAT, may be repeated; WHAT is a gRPC code such as unavailable, or cut, drop, "+
		"crash, a duration (latency), or hang (METHOD and NTH then mean nothing)", s.addFault)

	f.Func("image", "REFERENCE=WHAT, may be repeated: what is wrong with an image that machines pull; WHAT is missing, "+
		"unavailable, install-fails or boot-fails (then machines go back to what ran before)", s.addImage)

	f.Func("volume", "MACHINE:NAME:LINGER, may be repeated: a volume that a pod on the machine uses, and how long it "+
		"stays attached after the pod left; LINGER is a duration or forever", s.addVolume)

	d := &s.delays
	f.DurationVar(&d.Install, "install", d.Install, "time to install Talos")
	f.DurationVar(&d.Pull, "pull", d.Pull, "time to pull an image")
	f.DurationVar(&d.Upgrade, "upgrade", d.Upgrade, "time the installer of an upgrade runs")
	f.DurationVar(&d.Reboot, "reboot", d.Reboot, "time off the network during a reboot")
	f.DurationVar(&d.Boot, "boot", d.Boot, "time from the configured API to kubelet and containerd")
	f.DurationVar(&d.EtcdStart, "etcd-start", d.EtcdStart, "time from Bootstrap to a healthy etcd")
	f.DurationVar(&d.EtcdJoin, "etcd-join", d.EtcdJoin, "time until a control plane becomes a learner")
	f.DurationVar(&d.EtcdPromote, "etcd-promote", d.EtcdPromote, "time until a learner becomes a voter")
	f.DurationVar(&d.EtcdLeave, "etcd-leave", d.EtcdLeave, "time a member keeps trying to leave an unhealthy etcd")
	f.DurationVar(&d.APIServer, "api-server", d.APIServer, "time from a healthy etcd to the Kubernetes API")
	f.DurationVar(&d.NodeRegister, "node-register", d.NodeRegister, "time from the Kubernetes API to the node")
	f.DurationVar(&d.NodeReady, "node-ready", d.NodeReady, "time from the node to Ready")
	f.DurationVar(&d.NodeLost, "node-lost", d.NodeLost, "time until the node of a machine that is gone is Unknown")
	f.DurationVar(&d.Reset, "reset", d.Reset, "time to wipe the disk")
	f.DurationVar(&d.Shutdown, "shutdown", d.Shutdown, "time to stop the services before a reboot")

	if err := f.Parse(args); err != nil {
		return nil, err
	}

	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}

	if s.controlPlanes < 0 || s.workers < 0 || s.controlPlanes+s.workers == 0 {
		return nil, fmt.Errorf("%d control planes and %d workers: want at least one machine", s.controlPlanes, s.workers)
	}

	return s, nil
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) (err error) {
	s, err := parse(args)
	if err != nil {
		return err
	}

	p := &printer{out: out}
	s.options.Delays = &s.delays

	if !s.quiet {
		s.options.Observe = func(c fault.Call) { p.printf("%s %s\n", c.Time.Format("15:04:05.000"), c) }
	}

	if s.verbose {
		s.options.Log = func(format string, args ...any) { p.printf("- "+format+"\n", args...) }
	}

	simulator, err := sim.New(ctx, s.options)
	if err != nil {
		return err
	}

	defer func() {
		if closeErr := simulator.Close(); err == nil {
			err = closeErr
		}
	}()

	site, err := s.start(ctx, simulator)
	if err != nil {
		return err
	}

	for _, v := range s.volumes {
		if err := v.attach(ctx, simulator, p); err != nil {
			return err
		}
	}

	site.print(p)

	if s.jsonFile != "" {
		if err := site.write(s.jsonFile); err != nil {
			return err
		}
	}

	// Nothing can end a read of the standard input. This one ends with the process.
	go console(in, simulator, p)

	<-ctx.Done()

	return nil
}

// site is what a client needs to know, in the names of the variables of examples/quickstart.
type site struct {
	Endpoint      string            `json:"endpoint"`
	ControlPlanes map[string]string `json:"control_planes"`
	Workers       map[string]string `json:"workers"`

	machines []*sim.Machine
}

func (s *settings) start(ctx context.Context, simulator *sim.Simulator) (*site, error) {
	endpoint, err := simulator.Endpoint()
	if err != nil {
		return nil, err
	}

	for _, img := range s.images {
		if err := simulator.SetImage(img.reference, img.image); err != nil {
			return nil, err
		}
	}

	result := &site{Endpoint: endpoint, ControlPlanes: map[string]string{}, Workers: map[string]string{}}

	opts := sim.MachineOptions{}
	if s.container {
		opts.Platform = machined.Container
	}

	for _, group := range []struct {
		prefix string
		n      int
		to     map[string]string
	}{{"cp", s.controlPlanes, result.ControlPlanes}, {"worker", s.workers, result.Workers}} {
		machines, err := simulator.AddMachines(ctx, group.prefix, group.n, opts)
		if err != nil {
			return nil, err
		}

		for _, m := range machines {
			group.to[m.Name()] = m.Address().String()
		}
	}

	result.machines = simulator.Machines()

	for _, f := range s.faults {
		if err := f.set(simulator); err != nil {
			return nil, err
		}
	}

	return result, nil
}

func (s *site) print(p *printer) {
	p.printf("endpoint %s\n", s.Endpoint)

	for _, m := range s.machines {
		p.printf("%s %s\n", m.Name(), m.Endpoint())
	}
}

// write makes the file appear at once and whole, so that a script may wait for it.
func (s *site) write(file string) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encode addresses: %w", err)
	}

	partial, err := os.CreateTemp(filepath.Dir(file), ".talossim-*")
	if err != nil {
		return fmt.Errorf("write addresses: %w", err)
	}

	_, err = partial.Write(append(content, '\n'))
	if closeErr := partial.Close(); err == nil {
		err = closeErr
	}

	if err == nil {
		err = os.Rename(partial.Name(), file)
	}

	if err != nil {
		return fmt.Errorf("write addresses: %w", err)
	}

	return nil
}

// printer writes whole lines from many goroutines.
type printer struct {
	mu  sync.Mutex
	out io.Writer
}

func (p *printer) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()

	// Unread output is no reason to stop the machines.
	_, _ = fmt.Fprintf(p.out, format, args...)
}
