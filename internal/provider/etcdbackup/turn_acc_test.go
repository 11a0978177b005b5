package etcdbackup_test

import (
	"bytes"
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflogtest"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/api"
	"github.com/talosop/terraform-provider-talosop/internal/kubernetes/lock"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/etcdbackup"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	storepkg "github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim"
)

// When the API becomes unreachable while another run holds the lease, the snapshot is still taken: the other run may
// be gone with it.
func TestAccEtcdBackup_apiGoesAwayWhileItWaits(t *testing.T) {
	t.Parallel()

	b := newBackups(t, sim.Options{})

	bundle, err := pki.Parse([]byte(b.Bundle))
	tftest.Must(t, err)

	p := b.Pool()

	a, err := providerdata.KubernetesOf(t.Context(), pki.Changing, p, bundle,
		api.Options{Connect: time.Second, Attempt: time.Second, Call: time.Second})
	tftest.Must(t, err)
	t.Cleanup(a.Close)

	// The other run is as slow as a busy computer.
	others, err := providerdata.KubernetesOf(t.Context(), pki.Changing, p, bundle, api.Options{})
	tftest.Must(t, err)
	t.Cleanup(others.Close)

	_, release, err := others.Lock(
		lock.Options{Cluster: "on another computer", Lease: etcdbackup.BackupLease, Name: "the other"}).Acquire(
		t.Context(), nil)
	tftest.Must(t, err)
	t.Cleanup(release)

	off := sync.OnceFunc(func() {
		for _, m := range b.ControlPlane {
			m.PowerOff()
		}
	})

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()

	m := tftest.QuickProviderData()
	m.KubernetesTimeout = 2 * time.Second

	alone, leave, err := etcdbackup.TakeTurn(tflogtest.RootLogger(ctx, once{"another run stores a backup", off}), m,
		&etcdbackup.Taking{
			Archive: b.Archive(t, ""), Bundle: bundle, API: a,
		})
	if err != nil || alone {
		t.Fatalf("the turn is one alone: %v (%v)", alone, err)
	}

	leave()
}

// Pool is the control planes as a backup asks them.
func (b *backups) Pool() machineset.Set {
	var p machineset.Set
	for _, m := range b.ControlPlane {
		p.Endpoints = append(p.Endpoints, m.Address().String())
	}

	p.Settings.Name, p.Settings.Endpoint = "test", b.URL

	return p
}

// What another run removes during the upload is stored again, and only once.
func testBackupSwept(t *testing.T, b *backups) {
	bundle, err := pki.Parse([]byte(b.Bundle))
	tftest.Must(t, err)

	for _, test := range []struct{ sweeps, left int }{{1, 1}, {2, 0}} {
		folder := t.TempDir()

		ctx, taking, err := (&etcdbackup.Resource{
			ConfiguredResource: providerdata.ConfiguredResource{ProviderData: tftest.QuickProviderData()}}).Prepare(t.Context(),
			b.Pool(), storepkg.Place{Folder: folder}, clusterhandle.AccessModel{Name: types.StringValue("test")}, bundle)
		tftest.Must(t, err)

		swept := &sweeping{Store: taking.Archive.Store, Archive: taking.Archive, times: test.sweeps}
		taking.Archive.Store = swept

		b.ForgetCalls()

		_, _, err = taking.From(ctx, etcdbackup.Source{Name: "cp-1", Address: b.ControlPlane[0].Address().String()},
			backup.Facts{})
		taking.Close()

		entries, more := taking.Archive.List(t.Context())
		if more != nil || len(entries) != test.left || (err == nil) != (test.left == 1) {
			t.Errorf("after %d sweeps %d snapshots are left (%v, %v)", test.sweeps, len(entries), err, more)
		}

		if calls := b.CallsTo("EtcdSnapshot"); len(calls) != 2 {
			t.Errorf("after %d sweeps the snapshot was taken %d times", test.sweeps, len(calls))
		}
	}
}

// sweeping is a store from which another run removes uploads while they are stored.
type sweeping struct {
	store.Store

	Archive backup.Archive
	times   int
}

func (s *sweeping) Put(ctx context.Context, key string, body io.Reader) (store.Object, error) {
	return s.Store.Put(ctx, key, io.MultiReader(body, s.end(ctx)))
}

// end is the end of the upload: by then there is something to remove.
func (s *sweeping) end(ctx context.Context) io.Reader {
	return readerFunc(func([]byte) (int, error) {
		if s.times == 0 {
			return 0, io.EOF
		}

		s.times--

		if _, err := s.Archive.Sweep(ctx, time.Now().Add(time.Minute)); err != nil {
			return 0, err
		}

		return 0, io.EOF
	})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// once is a log that calls a function at the first message.
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
