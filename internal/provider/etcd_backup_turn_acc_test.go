package provider

import (
	"bytes"
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/talosop/terraform-provider-talosop/internal/kubernetes"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/talossim"
)

// When the API goes away while another run holds the lease, the snapshot is taken all the
// same: perhaps the other run went away with it.
func TestAccEtcdBackupWithoutTheAPIAtLast(t *testing.T) {
	t.Parallel()

	b := newBackups(t, talossim.Options{})

	bundle, err := pki.Parse([]byte(b.bundle))
	must(t, err)

	var p pool
	for _, m := range b.controlPlane {
		p.endpoints = append(p.endpoints, m.Address().String())
	}

	p.settings.Name, p.settings.Endpoint = "test", b.endpoint

	api, err := kubernetesOf(p, bundle, kubernetes.Options{Connect: time.Second, Attempt: time.Second, Call: time.Second})
	must(t, err)
	t.Cleanup(api.Close)

	_, release, err := api.Lock(kubernetes.LockOptions{Cluster: "on another computer", Lease: backupLease, Name: "the other"}).Acquire(t.Context(), nil)
	must(t, err)
	t.Cleanup(release)

	off := sync.OnceFunc(func() {
		for _, m := range b.controlPlane {
			m.PowerOff()
		}
	})

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	m := impatientMachinery()
	m.patience = 2 * time.Second

	alone, leave, err := m.turn(tflogtest.RootLogger(ctx, once{"another run stores a backup", off}), &taking{
		archive: b.archive(t, ""), bundle: bundle, api: api,
	})
	if err != nil || alone {
		t.Fatalf("the turn is one alone: %v (%v)", alone, err)
	}

	leave()
}

// once is a log that calls a function when it is told something.
type once struct {
	of   string
	call func()
}

var _ io.Writer = once{}

func (o once) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte(o.of)) {
		o.call()
	}

	return len(line), nil
}
