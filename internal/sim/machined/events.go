package machined

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// eventCapacity is how many events a boot remembers; older ones are lost, and all are
// lost at a reboot. Talos keeps about a thousand.
const eventCapacity = 1000

// event is one published event with the id clients resume from.
type event struct {
	ID    string
	At    time.Time
	Actor string
	data  proto.Message
}

// eventLog is the event stream of one boot.
type eventLog struct {
	mu      sync.Mutex
	Events  []event
	first   int // absolute position of events[0]
	changed chan struct{}
}

func newEventLog() *eventLog { return &eventLog{changed: make(chan struct{})} }

func (l *eventLog) publish(actor string, data proto.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.Events = append(l.Events, event{ID: NewEventID(), At: time.Now(), Actor: actor, data: data})
	if over := len(l.Events) - eventCapacity; over > 0 {
		l.Events = append([]event(nil), l.Events[over:]...)
		l.first += over
	}

	close(l.changed)
	l.changed = make(chan struct{})
}

// NewEventID is ordered by time, as Talos's xid is.
func NewEventID() string {
	id, err := uuid.NewV7()
	if err != nil {
		id = uuid.New()
	}

	return id.String()
}

// Start is the absolute position at which a subscriber begins.
func (l *eventLog) Start(req *machine.EventsRequest) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	end := l.first + len(l.Events)

	selectors := 0
	for _, set := range []bool{req.GetTailEvents() != 0, req.GetTailId() != "", req.GetTailSeconds() != 0} {
		if set {
			selectors++
		}
	}

	switch {
	case selectors > 1:
		return 0, errors.New("WithTailEvents can't be specified at the same time with WithTailID or WithTailDuration")
	case req.GetTailEvents() < 0:
		return l.first, nil
	case req.GetTailEvents() > 0:
		return max(l.first, end-int(req.GetTailEvents())), nil
	case req.GetTailId() != "":
		return l.first + sort.Search(len(l.Events), func(i int) bool { return l.Events[i].ID > req.GetTailId() }), nil
	case req.GetTailSeconds() != 0:
		since := time.Now().Add(-time.Duration(req.GetTailSeconds()) * time.Second)

		return l.first + sort.Search(len(l.Events), func(i int) bool { return l.Events[i].At.After(since) }), nil
	default:
		return end, nil
	}
}

// Next returns the event at pos, waiting for it if need be. ok is false when the
// subscriber fell so far behind that the event is gone; the stream then just ends.
func (l *eventLog) Next(ctx context.Context, pos int) (ev event, ok bool, err error) {
	for {
		l.mu.Lock()
		changed := l.changed
		i := pos - l.first

		if i < 0 {
			l.mu.Unlock()

			return event{}, false, nil
		}

		if i < len(l.Events) {
			ev = l.Events[i]
			l.mu.Unlock()

			return ev, true, nil
		}
		l.mu.Unlock()

		select {
		case <-ctx.Done():
			return event{}, false, ctx.Err()
		case <-changed:
		}
	}
}

func (e event) Wire() (*machine.Event, error) {
	value, err := proto.Marshal(e.data)
	if err != nil {
		return nil, fmt.Errorf("marshal event: %w", err)
	}

	return &machine.Event{
		Id:      e.ID,
		ActorId: e.Actor,
		Data: &anypb.Any{
			TypeUrl: "talos/runtime/" + string(e.data.ProtoReflect().Descriptor().FullName()),
			Value:   value,
		},
	}, nil
}
