package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/talosop/terraform-provider-talosop/internal/sim/timing"
)

// serviceState is a service's state by its Talos name.
type serviceState string

const (
	serviceStarting  serviceState = "Starting"
	serviceWaiting   serviceState = "Waiting"
	servicePreparing serviceState = "Preparing"
	serviceRunning   serviceState = "Running"
	serviceStopping  serviceState = "Stopping"
	serviceFinished  serviceState = "Finished"
	serviceFailed    serviceState = "Failed"
)

// actions maps states to the event enumeration, whose numbers are their own.
var actions = map[serviceState]machine.ServiceStateEvent_Action{
	serviceStarting:  machine.ServiceStateEvent_STARTING,
	serviceWaiting:   machine.ServiceStateEvent_WAITING,
	servicePreparing: machine.ServiceStateEvent_PREPARING,
	serviceRunning:   machine.ServiceStateEvent_RUNNING,
	serviceStopping:  machine.ServiceStateEvent_STOPPING,
	serviceFinished:  machine.ServiceStateEvent_FINISHED,
	serviceFailed:    machine.ServiceStateEvent_FAILED,
}

// maxServiceEvents is how many events ServiceList keeps per service.
const maxServiceEvents = 64

// service is one system service of a boot.
type service struct {
	id     string
	state  serviceState
	events []*machine.ServiceEvent
	health *machine.ServiceHealth
}

// up is Talos's notion: finished, or running and not unhealthy.
func (s *service) up() bool {
	switch s.state {
	case serviceFinished:
		return true
	case serviceRunning:
		return s.health.GetUnknown() && !checked(s.id) || s.health.GetHealthy()
	default:
		return false
	}
}

// checked lists the services with a health check.
func checked(id string) bool {
	return slices.Contains([]string{"apid", "containerd", "cri", "etcd", "kubelet", "trustd", "udevd"}, id)
}

// serviceSet are the services of one boot.
type serviceSet struct {
	b *boot

	mu      sync.Mutex
	byID    map[string]*service
	changed chan struct{}
}

func newServiceSet(b *boot) *serviceSet {
	return &serviceSet{b: b, byID: map[string]*service{}, changed: make(chan struct{})}
}

// set moves a service to a state and publishes it.
func (s *serviceSet) set(id string, st serviceState, msg string) {
	s.mutate(id, func(svc *service) {
		svc.state = st
		if st != serviceRunning {
			svc.health = &machine.ServiceHealth{Unknown: true, LastChange: timestamppb.Now()}
		}
		svc.record(msg)
	}, msg)
}

// health records the outcome of a health check; it is published when it changed.
func (s *serviceSet) setHealth(id string, err error) {
	s.mu.Lock()
	svc := s.byID[id]
	skip := svc == nil || svc.state != serviceRunning ||
		!svc.health.GetUnknown() && svc.health.GetHealthy() == (err == nil)
	s.mu.Unlock()

	if skip {
		return
	}

	msg := "Health check successful"
	if err != nil {
		msg = "Health check failed: " + err.Error()
	}

	s.mutate(id, func(svc *service) {
		svc.health = &machine.ServiceHealth{Healthy: err == nil, LastChange: timestamppb.Now()}
		if err != nil {
			svc.health.LastMessage = err.Error()
		}
		svc.record(msg)
	}, msg)
}

func (s *service) record(msg string) {
	s.events = append(s.events, &machine.ServiceEvent{Msg: msg, State: string(s.state), Ts: timestamppb.Now()})
	if len(s.events) > maxServiceEvents {
		s.events = slices.Clone(s.events[len(s.events)-maxServiceEvents:])
	}
}

// mutate changes a service and lets events, resources and machine status follow.
func (s *serviceSet) mutate(id string, change func(*service), msg string) {
	s.mu.Lock()

	svc := s.byID[id]
	if svc == nil {
		svc = &service{id: id, health: &machine.ServiceHealth{Unknown: true, LastChange: timestamppb.Now()}}
		s.byID[id] = svc
	}

	change(svc)

	ev := &machine.ServiceStateEvent{Service: id, Action: actions[svc.state], Message: msg, Health: svc.health}
	running, health := svc.state == serviceRunning, svc.health
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()

	s.b.publish("", ev)
	s.b.publishService(id, running, health)
	s.b.refreshStatus()
}

// start brings services from nothing to running and healthy.
func (s *serviceSet) start(ids ...string) {
	for _, id := range ids {
		s.set(id, serviceRunning, fmt.Sprintf("Started task %s", id))

		if checked(id) {
			s.setHealth(id, nil)
		}
	}
}

// stop finishes those of the services that exist.
func (s *serviceSet) stop(ids ...string) {
	for _, id := range ids {
		s.mu.Lock()
		svc := s.byID[id]
		skip := svc == nil || svc.state == serviceFinished
		s.mu.Unlock()

		if !skip {
			s.set(id, serviceFinished, "Service finished successfully")
		}
	}
}

// forget drops a service's history, as unloading and loading it does.
func (s *serviceSet) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	delete(s.byID, id)
}

func (s *serviceSet) state(id string) (serviceState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	svc := s.byID[id]
	if svc == nil {
		return "", false
	}

	return svc.state, svc.up()
}

// awaitUp returns when every known service has been up at some time since the call:
// Talos waits for events, so one that went up and down again counts.
func (s *serviceSet) awaitUp(ctx context.Context) error {
	was := map[string]bool{}

	for {
		s.mu.Lock()
		changed, pending := s.changed, false

		for id, svc := range s.byID {
			was[id] = was[id] || svc.up()
			pending = pending || !was[id]
		}
		s.mu.Unlock()

		if !pending {
			return nil
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// await returns when the service is up.
func (s *serviceSet) await(ctx context.Context, id string) error {
	for {
		s.mu.Lock()
		changed, svc := s.changed, s.byID[id]
		up := svc != nil && svc.up()
		s.mu.Unlock()

		if up {
			return nil
		}

		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// problems lists what keeps the "services" readiness check from passing.
func (s *serviceSet) problems(required []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	var problems []string

	for _, id := range s.ids() {
		svc := s.byID[id]
		if svc.state == serviceRunning && !svc.health.GetUnknown() && !svc.health.GetHealthy() {
			problems = append(problems, id+" not healthy")
		}
	}

	for _, id := range required {
		if svc := s.byID[id]; svc == nil || svc.state != serviceRunning {
			problems = append(problems, id+" not running")
		}
	}

	return problems
}

// ids is sorted; mu is held.
func (s *serviceSet) ids() []string {
	ids := make([]string, 0, len(s.byID))
	for id := range s.byID {
		ids = append(ids, id)
	}

	slices.Sort(ids)

	return ids
}

// ServiceList lists the services with their latest events.
func (a *api) ServiceList(context.Context, *emptypb.Empty) (*machine.ServiceListResponse, error) {
	s := a.b.services

	s.mu.Lock()
	defer s.mu.Unlock()

	list := &machine.ServiceList{}
	for _, id := range s.ids() {
		svc := s.byID[id]
		list.Services = append(list.Services, &machine.ServiceInfo{
			Id: id, State: string(svc.state), Health: svc.health,
			Events: &machine.ServiceEvents{Events: slices.Clone(svc.events)},
		})
	}

	return &machine.ServiceListResponse{Messages: []*machine.ServiceList{list}}, nil
}

// ServiceStart starts kubelet or an extension service; no other may be started.
func (a *api) ServiceStart(_ context.Context, req *machine.ServiceStartRequest) (*machine.ServiceStartResponse, error) {
	if err := a.serviceOperation(req.GetId(), "start", req.GetId() == "kubelet"); err != nil {
		return nil, err
	}

	a.b.services.start(req.GetId())
	msg := fmt.Sprintf("Service %q started", req.GetId())

	return &machine.ServiceStartResponse{Messages: []*machine.ServiceStart{{Resp: msg}}}, nil
}

// ServiceStop stops an extension service; no other may be stopped.
func (a *api) ServiceStop(_ context.Context, req *machine.ServiceStopRequest) (*machine.ServiceStopResponse, error) {
	if err := a.serviceOperation(req.GetId(), "stop", false); err != nil {
		return nil, err
	}

	a.b.services.stop(req.GetId())
	msg := fmt.Sprintf("Service %q stopped", req.GetId())

	return &machine.ServiceStopResponse{Messages: []*machine.ServiceStop{{Resp: msg}}}, nil
}

// ServiceRestart restarts kubelet or an extension service; no other may be restarted.
func (a *api) ServiceRestart(ctx context.Context, req *machine.ServiceRestartRequest) (*machine.ServiceRestartResponse, error) {
	if err := a.serviceOperation(req.GetId(), "restart", req.GetId() == "kubelet"); err != nil {
		return nil, err
	}

	a.b.services.stop(req.GetId())

	if err := timing.Pause(ctx, time.Millisecond); err != nil {
		return nil, err
	}

	a.b.services.start(req.GetId())
	msg := fmt.Sprintf("Service %q restarted", req.GetId())

	return &machine.ServiceRestartResponse{Messages: []*machine.ServiceRestart{{Resp: msg}}}, nil
}

// serviceOperation answers as Talos does: plain errors, so the code is Unknown.
func (a *api) serviceOperation(id, operation string, allowed bool) error {
	if st, _ := a.b.services.state(id); st == "" {
		return fmt.Errorf("service %q not defined", id)
	}

	if !allowed && !strings.HasPrefix(id, "ext-") {
		return fmt.Errorf("service %q doesn't support %s operation via API", id, operation)
	}

	return nil
}
