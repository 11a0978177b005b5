package machines_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/talosop/terraform-provider-talosop/internal/provider"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
)

// This file, life_plan_test.go and life_apply_test.go are a small core of Terraform: they handle a configuration and
// a state like the CLIs, in their protocol (Terraform 1.11.4 internal/terraform, OpenTofu 1.12.6 internal/tofu).

// lifeBlock is a resource of a configuration.
type lifeBlock struct {
	Address, Kind string
	// Needs are the addresses of the resources that it refers to.
	Needs []string
	// CreateFirst is create_before_destroy.
	CreateFirst bool
	// Config evaluates the block; ref is an attribute of another resource.
	Config func(ref func(address, attribute string) tftypes.Value) tftest.Config
}

// lifeObject is an object of a state.
type lifeObject struct {
	Kind    string
	Value   tftypes.Value
	Private []byte
	Tainted bool
	Needs   []string
}

// lifeKey is the address of an object of a state, with a number for deposed ones.
type lifeKey struct {
	Address string
	Deposed int
}

func (k lifeKey) String() string {
	if k.Deposed > 0 {
		return fmt.Sprintf("%s (deposed %d)", k.Address, k.Deposed)
	}

	return k.Address
}

// lifeState is a state. Objects are replaced, never modified.
type lifeState map[lifeKey]*lifeObject

// sorted are the keys of a state in a fixed order.
func (s lifeState) sorted() []lifeKey {
	keys := []lifeKey{}
	for key := range s {
		keys = append(keys, key)
	}

	slices.SortFunc(keys, func(a, b lifeKey) int { return strings.Compare(a.String(), b.String()) })

	return keys
}

// lifeWalk is one walk of a CLI over configuration and state, with a separate process of the provider.
type lifeWalk struct {
	t      *testing.T
	server tfprotov6.ProviderServer

	mu          sync.Mutex
	state       lifeState
	planned     map[string]tftypes.Value
	Diagnostics []*tfprotov6.Diagnostic
	// Bugs are answers that no provider may give.
	Bugs []string
}

func newLifeWalk(t *testing.T, state lifeState) *lifeWalk {
	t.Helper()

	m := tftest.QuickProviderData()
	m.Interval = 30 * time.Millisecond
	m.Policy.RegisterTimeout, m.Policy.ResetTimeout, m.Policy.RejoinTimeout = 2*time.Second, 10*time.Second, 5*time.Second

	server := provider.Serve(tftest.NewQuickProvider(m))
	tftest.Must(t, tftest.Configure(server))

	w := &lifeWalk{t: t, server: server, state: lifeState{}, planned: map[string]tftypes.Value{}}
	for key, object := range state {
		w.state[key] = object
	}

	return w
}

// note records diagnostics of an address, and returns true without errors.
func (w *lifeWalk) note(address string, diagnostics []*tfprotov6.Diagnostic, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	if err != nil {
		w.Bugs = append(w.Bugs, fmt.Sprintf("%s: %v", address, err))

		return false
	}

	for _, d := range diagnostics {
		noted := *d
		noted.Summary = address + ": " + d.Summary
		w.Diagnostics = append(w.Diagnostics, &noted)
	}

	return !tftest.Outcome{Diagnostics: diagnostics}.Failed()
}

func (w *lifeWalk) bug(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.Bugs = append(w.Bugs, fmt.Sprintf(format, args...))
}

// failed reports whether something of the walk failed.
func (w *lifeWalk) failed() bool {
	return tftest.Outcome{Diagnostics: w.Diagnostics}.Failed() || len(w.Bugs) > 0
}

func (w *lifeWalk) object(key lifeKey) *lifeObject {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.state[key]
}

// store puts an object into the state; nil removes it.
func (w *lifeWalk) store(key lifeKey, object *lifeObject) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if object == nil || object.Value.IsNull() {
		delete(w.state, key)
	} else {
		w.state[key] = object
	}
}

// ref is an attribute of a resource: as planned, otherwise as in state, otherwise unknown.
func (w *lifeWalk) ref(kinds map[string]string) func(address, attribute string) tftypes.Value {
	return func(address, attribute string) tftypes.Value {
		w.mu.Lock()
		value, planned := w.planned[address]
		object := w.state[lifeKey{Address: address}]
		w.mu.Unlock()

		switch {
		case planned:
			return tftest.AttributeOf(w.t, value, attribute)
		case object != nil:
			return tftest.AttributeOf(w.t, object.Value, attribute)
		default:
			typ := tftest.TypeOf(w.t, kinds[address]).AttributeTypes[attribute]

			return tftypes.NewValue(typ, tftypes.UnknownValue)
		}
	}
}

// evaluate is the configuration of a block.
func (w *lifeWalk) evaluate(b lifeBlock, kinds map[string]string) tftypes.Value {
	return tftest.ValueOf(w.t, tftest.TypeOf(w.t, b.Kind), b.Config(w.ref(kinds)))
}

// refresh reads an object, and removes it from the state when it is gone.
func (w *lifeWalk) refresh(ctx context.Context, key lifeKey) bool {
	object := w.object(key)

	resp, err := w.server.ReadResource(ctx, &tfprotov6.ReadResourceRequest{
		TypeName: object.Kind, CurrentState: tftest.Dynamic(w.t, object.Value), Private: object.Private,
	})
	if err != nil || !w.note(key.String(), resp.Diagnostics, nil) {
		return w.note(key.String(), nil, err) && false
	}

	read := *object
	read.Value, read.Private = tftest.Decoded(w.t, tftest.TypeOf(w.t, object.Kind), resp.NewState), resp.Private
	w.store(key, &read)

	return true
}

// planCall asks for one plan.
func (w *lifeWalk) planCall(
	ctx context.Context, address, kind string, prior, config tftypes.Value, private []byte,
) (*tfprotov6.PlanResourceChangeResponse, bool) {
	proposed := tftypes.NewValue(config.Type(), nil)
	if !config.IsNull() {
		proposed = tftest.Proposed(w.t, kind, &prior, config)
	}

	resp, err := w.server.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName: kind, PriorState: tftest.Dynamic(w.t, prior), ProposedNewState: tftest.Dynamic(w.t, proposed),
		Config: tftest.Dynamic(w.t, config), PriorPrivate: private,
	})
	if err != nil {
		return nil, w.note(address, nil, err)
	}

	return resp, w.note(address, resp.Diagnostics, nil)
}

// lifeAction is what a change does to an object.
type lifeAction string

const (
	actNothing        lifeAction = "nothing"
	actCreate         lifeAction = "create"
	actUpdate         lifeAction = "update"
	actReplace        lifeAction = "destroy, then create"
	actReplaceCreated lifeAction = "create, then destroy"
	actDestroy        lifeAction = "destroy"
	actForget         lifeAction = "forget"
)

// lifeChange is a planned change of an object.
type lifeChange struct {
	Key     lifeKey
	Action  lifeAction
	Kind    string
	Prior   *lifeObject
	Planned tftypes.Value
	Private []byte
	Block   *lifeBlock
}

func (c lifeChange) String() string { return fmt.Sprintf("%s: %s", c.Key, c.Action) }

// replaces reports whether a change replaces an object.
func (c lifeChange) replaces() bool { return c.Action == actReplace || c.Action == actReplaceCreated }

// lifePlan is the content of a CLI plan.
type lifePlan struct {
	State       lifeState // after the refresh
	Changes     []lifeChange
	Diagnostics []*tfprotov6.Diagnostic
	Bugs        []string
	Refused     bool
	// Parallelism is -parallelism of the apply; 0 is no limit.
	Parallelism int
}

// empty reports whether a plan changes nothing.
func (p lifePlan) empty() bool { return len(p.Changes) == 0 }

// lifeOptions are those of a plan.
type lifeOptions struct {
	// Replace are the addresses of -replace.
	Replace []string
	// Destroy is terraform destroy.
	Destroy bool
	// Forget are the addresses of removed blocks with destroy = false.
	Forget []string
	// ReadsOrphansFirst is true for OpenTofu 1.12 and Terraform 1.13; Terraform 1.11 plans their removal first.
	ReadsOrphansFirst bool
	Random            *rand.Rand
}
