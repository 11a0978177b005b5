package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/talosop/terraform-provider-talosop/internal/sim"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
	"github.com/talosop/terraform-provider-talosop/internal/sim/images"
	"github.com/talosop/terraform-provider-talosop/internal/sim/kube"
	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// demoDelays let a person follow what happens and a cluster be there within seconds.
func demoDelays() timing.Delays {
	return timing.Delays{
		Install:      2 * time.Second,
		Pull:         time.Second,
		Upgrade:      2 * time.Second,
		Reboot:       time.Second,
		Boot:         time.Second,
		EtcdStart:    500 * time.Millisecond,
		EtcdJoin:     500 * time.Millisecond,
		EtcdPromote:  time.Second,
		EtcdLeave:    10 * time.Second,
		APIServer:    time.Second,
		NodeRegister: 500 * time.Millisecond,
		NodeReady:    time.Second,
		NodeLost:     2 * time.Second,
		Reset:        time.Second,
		Shutdown:     200 * time.Millisecond,
	}
}

// namedFault is a -fault flag.
type namedFault struct {
	machine string
	hang    bool
	fault   fault.Fault
}

func (s *settings) addFault(text string) error {
	f, err := parseFault(text)
	if err != nil {
		return err
	}

	s.faults = append(s.faults, f)

	return nil
}

func parseFault(text string) (namedFault, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 4 {
		return namedFault{}, fmt.Errorf("fault %q: want MACHINE:METHOD:NTH:WHAT", text)
	}

	nth, err := strconv.Atoi(parts[2])
	if err != nil || nth < 1 {
		return namedFault{}, fmt.Errorf("fault %q: NTH must be a number from 1 on", text)
	}

	f := namedFault{machine: parts[0], fault: fault.Fault{Method: parts[1], From: nth}}

	switch what := strings.ToLower(parts[3]); what {
	case "cut":
		f.fault.Cut = true
	case "drop":
		f.fault.DropResponse = true
	case "crash":
		f.fault.Crash = true
	case "hang":
		f.hang = true
	default:
		if d, err := time.ParseDuration(what); err == nil {
			f.fault.Latency = d

			return f, nil
		}

		code, ok := parseCode(what)
		if !ok {
			return namedFault{}, fmt.Errorf("fault %q: %q is no gRPC code, duration, cut, drop, crash or hang", text, what)
		}

		f.fault.Code = code
	}

	return f, nil
}

// namedVolume is a -volume flag.
type namedVolume struct {
	machine string
	volume  kube.Volume
}

func (s *settings) addVolume(text string) error {
	v, err := parseVolume(text)
	if err != nil {
		return err
	}

	s.volumes = append(s.volumes, v)

	return nil
}

func parseVolume(text string) (namedVolume, error) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 || parts[1] == "" {
		return namedVolume{}, fmt.Errorf("volume %q: want MACHINE:NAME:LINGER", text)
	}

	v := namedVolume{machine: parts[0], volume: kube.Volume{Name: parts[1], Linger: -1}}
	if parts[2] == "forever" {
		return v, nil
	}

	var err error
	if v.volume.Linger, err = time.ParseDuration(parts[2]); err != nil || v.volume.Linger < 0 {
		return namedVolume{}, fmt.Errorf("volume %q: LINGER must be a duration or forever", text)
	}

	return v, nil
}

// attach attaches the volume once the machine is ready.
func (v namedVolume) attach(ctx context.Context, simulator *sim.Simulator, p *printer) error {
	m := simulator.Machine(v.machine)
	if m == nil {
		return fmt.Errorf("volume names machine %q, which does not exist", v.machine)
	}

	// It ends with the process, as the console does.
	go func() {
		if err := m.AttachVolume(ctx, v.volume); err != nil && ctx.Err() == nil {
			p.printf("%v\n", err)
		}
	}()

	return nil
}

// namedImage is an -image flag.
type namedImage struct {
	reference string
	image     images.Image
}

func (s *settings) addImage(text string) error {
	img, err := parseImage(text)
	if err != nil {
		return err
	}

	s.images = append(s.images, img)

	return nil
}

func parseImage(text string) (namedImage, error) {
	reference, what, _ := strings.Cut(text, "=")
	img := namedImage{reference: reference}

	switch what {
	case "missing":
		img.image.Missing = true
	case "unavailable":
		img.image.Unavailable = true
	case "install-fails":
		img.image.InstallFails = true
	case "boot-fails":
		img.image.BootFails = true
	default:
		return namedImage{}, fmt.Errorf("image %q: want REFERENCE=missing, unavailable, install-fails or boot-fails", text)
	}

	return img, nil
}

// parseCode knows codes as "deadline-exceeded", "DeadlineExceeded" and "DEADLINE_EXCEEDED".
func parseCode(text string) (codes.Code, bool) {
	plain := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(text))

	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		if strings.ToLower(code.String()) == plain {
			return code, true
		}
	}

	return codes.OK, false
}

func (f namedFault) set(simulator *sim.Simulator) error {
	m := simulator.Machine(f.machine)
	if m == nil {
		return fmt.Errorf("fault names machine %q, which does not exist", f.machine)
	}

	if f.hang {
		m.HangNextReboot()

		return nil
	}

	m.SetFault(f.fault)

	return nil
}
