package machined

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// ServiceState is a service's state by its Talos name.
type ServiceState string

// The states of a service.
const (
	ServiceStarting  ServiceState = "Starting"
	ServiceWaiting   ServiceState = "Waiting"
	ServicePreparing ServiceState = "Preparing"
	ServiceRunning   ServiceState = "Running"
	ServiceStopping  ServiceState = "Stopping"
	ServiceFinished  ServiceState = "Finished"
	ServiceFailed    ServiceState = "Failed"
)

// actions maps states to the event enumeration, whose numbers are their own.
var actions = map[ServiceState]machine.ServiceStateEvent_Action{
	ServiceStarting:  machine.ServiceStateEvent_STARTING,
	ServiceWaiting:   machine.ServiceStateEvent_WAITING,
	ServicePreparing: machine.ServiceStateEvent_PREPARING,
	ServiceRunning:   machine.ServiceStateEvent_RUNNING,
	ServiceStopping:  machine.ServiceStateEvent_STOPPING,
	ServiceFinished:  machine.ServiceStateEvent_FINISHED,
	ServiceFailed:    machine.ServiceStateEvent_FAILED,
}

// maxServiceEvents is the number of events in ServiceList per service.
const maxServiceEvents = 64

// service is one system service of a boot.
type service struct {
	ID     string
	State  ServiceState
	Events []*machine.ServiceEvent
	health *machine.ServiceHealth
}

// up is Talos's notion: finished, or running and not unhealthy.
func (s *service) up() bool {
	switch s.State {
	case ServiceFinished:
		return true
	case ServiceRunning:
		return s.health.GetUnknown() && !checked(s.ID) || s.health.GetHealthy()
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
	b *Boot

	mu      sync.Mutex
	byID    map[string]*service
	changed chan struct{}
}

func newServiceSet(b *Boot) *serviceSet {
	return &serviceSet{b: b, byID: map[string]*service{}, changed: make(chan struct{})}
}

// Set moves a service to a state and publishes it.
func (s *serviceSet) Set(id string, st ServiceState, msg string) {
	s.mutate(id, func(svc *service) {
		svc.State = st
		if st != ServiceRunning {
			svc.health = &machine.ServiceHealth{Unknown: true, LastChange: timestamppb.Now()}
		}
		svc.record(msg)
	}, msg)
}

// health records the outcome of a health check; it is published when it changed.
func (s *serviceSet) SetHealth(id string, err error) {
	s.mu.Lock()
	svc := s.byID[id]
	skip := svc == nil || svc.State != ServiceRunning ||
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
	s.Events = append(s.Events, &machine.ServiceEvent{Msg: msg, State: string(s.State), Ts: timestamppb.Now()})
	if len(s.Events) > maxServiceEvents {
		s.Events = slices.Clone(s.Events[len(s.Events)-maxServiceEvents:])
	}
}

// mutate changes a service and lets events, resources and machine status follow.
func (s *serviceSet) mutate(id string, change func(*service), msg string) {
	s.mu.Lock()

	svc := s.byID[id]
	if svc == nil {
		svc = &service{ID: id, health: &machine.ServiceHealth{Unknown: true, LastChange: timestamppb.Now()}}
		s.byID[id] = svc
	}

	change(svc)

	ev := &machine.ServiceStateEvent{Service: id, Action: actions[svc.State], Message: msg, Health: svc.health}
	running, health := svc.State == ServiceRunning, svc.health
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()

	s.b.publish("", ev)
	s.b.publishService(id, running, health)
	s.b.RefreshStatus()
}

// Start starts services until they are running and healthy.
func (s *serviceSet) Start(ids ...string) {
	for _, id := range ids {
		s.Set(id, ServiceRunning, fmt.Sprintf("Started task %s", id))

		if checked(id) {
			s.SetHealth(id, nil)
		}
	}
}

// Stop finishes the existing ones of the services.
func (s *serviceSet) Stop(ids ...string) {
	for _, id := range ids {
		s.mu.Lock()
		svc := s.byID[id]
		skip := svc == nil || svc.State == ServiceFinished
		s.mu.Unlock()

		if !skip {
			s.Set(id, ServiceFinished, "Service finished successfully")
		}
	}
}

// Forget drops a service's history, as unloading and loading it does.
func (s *serviceSet) Forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	delete(s.byID, id)
}

func (s *serviceSet) State(id string) (ServiceState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	svc := s.byID[id]
	if svc == nil {
		return "", false
	}

	return svc.State, svc.up()
}

// AwaitUp returns when every known service has been up at some time since the call:
// Talos waits for events, so one that went up and down again counts.
func (s *serviceSet) AwaitUp(ctx context.Context) error {
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

// Await returns when the service is up.
func (s *serviceSet) Await(ctx context.Context, id string) error {
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

// problems lists why the "services" readiness check fails.
func (s *serviceSet) problems(required []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	var problems []string

	for _, id := range s.ids() {
		svc := s.byID[id]
		if svc.State == ServiceRunning && !svc.health.GetUnknown() && !svc.health.GetHealthy() {
			problems = append(problems, id+" not healthy")
		}
	}

	for _, id := range required {
		if svc := s.byID[id]; svc == nil || svc.State != ServiceRunning {
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

// List is what clients see of the services, with their latest events.
func (s *serviceSet) List() *machine.ServiceList {
	s.mu.Lock()
	defer s.mu.Unlock()

	list := &machine.ServiceList{}
	for _, id := range s.ids() {
		svc := s.byID[id]
		list.Services = append(list.Services, &machine.ServiceInfo{
			Id: id, State: string(svc.State), Health: svc.health,
			Events: &machine.ServiceEvents{Events: slices.Clone(svc.Events)},
		})
	}

	return list
}
