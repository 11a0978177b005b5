package etcdbackup_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup/storetest"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tftest"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// Nothing is recorded that was not stored.
func testBackupWrongCredentials(t *testing.T, b *backups) {
	const wrong = "not-the-secret-of-the-bucket"

	for name, bucket := range map[string]tftest.Config{
		"a wrong key":    {"access_key_id_wo": storetest.AccessKey, "secret_access_key_wo": wrong},
		"an unknown key": {"access_key_id_wo": "nobody", "secret_access_key_wo": wrong},
		"no such bucket": {"bucket": "missing", "access_key_id_wo": storetest.AccessKey,
			"secret_access_key_wo": storetest.SecretKey},
	} {
		d := tftest.Drive(t, "talosop_etcd_backup", nil)
		bucket["prefix"] = "wrong"

		done := d.Apply(t, b.config(b.Bucket(bucket), nil))
		diagnostics := tftest.Show(done.Diagnostics)

		if !done.Failed() || !d.State.IsNull() {
			t.Errorf("%s: the state is %v", name, d.State)
		}

		if strings.Contains(diagnostics, wrong) || strings.Contains(diagnostics, storetest.SecretKey) ||
			!strings.Contains(diagnostics, "[backup_not_taken]") {
			t.Errorf("%s: %s", name, diagnostics)
		}

		if strings.Contains(diagnostics, "Half stored") || strings.Contains(diagnostics, "RequestID") ||
			!strings.Contains(diagnostics, "Check the access key") && !strings.Contains(diagnostics, "Create the bucket") {
			t.Errorf("%s does not say what to do, or too much: %s", name, diagnostics)
		}
	}

	b.expectNothing(t, "wrong/")
}

func testBackupRefused(t *testing.T, b *backups) {
	b.Server.Fail(func(r *http.Request) storetest.Fault {
		if storetest.IsPut(r) || storetest.IsPart(r) || storetest.IsComplete(r) {
			return storetest.Refused
		}

		return storetest.Passed
	})
	defer b.Server.Fail(nil)

	d := tftest.Drive(t, "talosop_etcd_backup", credentialed)
	b.ForgetCalls()

	done := d.Apply(t, b.config(b.Bucket(tftest.Config{"prefix": "refused"}), nil))
	if !done.Failed() || !d.State.IsNull() {
		t.Errorf("the state is %v", d.State)
	}

	if calls := b.CallsTo("EtcdSnapshot"); len(calls) != 1 {
		t.Errorf("%d members were asked because the bucket refused", len(calls))
	}

	b.Server.Fail(nil)
	b.expectNothing(t, "refused/")
}

// When the stream of a member breaks off, the next one is asked; when all do, nothing is stored.
func testBackupMemberFails(t *testing.T, b *backups) {
	defer func() {
		for _, m := range b.ControlPlane {
			m.ClearFaults()
		}
	}()

	leader := b.Leader(t)

	for _, m := range b.ControlPlane {
		if m.Hostname() != leader {
			m.SetFault(fault.Fault{Method: "EtcdSnapshot", Count: -1, After: 8000, EndEarly: true})
		}
	}

	d := tftest.Drive(t, "talosop_etcd_backup", credentialed)
	config := b.config(b.Bucket(tftest.Config{"prefix": "fails"}), tftest.Config{"triggers": tftest.Config{"run": "1"}})

	done := d.Apply(t, config).Must(t)
	if member := tftest.Text(t, done.Value, "member"); member != leader {
		t.Errorf("%s gave the snapshot", member)
	}

	for _, m := range b.ControlPlane {
		if warned := strings.Contains(tftest.Show(done.Diagnostics), m.Hostname()+": "); warned != (m.Hostname() != leader) {
			t.Errorf("%s is named: %v, by %s", m.Hostname(), warned, tftest.Show(done.Diagnostics))
		}
	}

	for _, m := range b.ControlPlane {
		if m.Hostname() == leader {
			m.SetFault(fault.Fault{Method: "EtcdSnapshot", Count: -1, After: 8000, Cut: true})
		}
	}

	config["triggers"] = tftest.Config{"run": "2"}
	before, keys := d.State, len(b.keys(t, "fails/"))
	done = d.Apply(t, config)

	if !done.Failed() || !d.State.Equal(before) {
		t.Error("a snapshot that broke off is in state")
	}

	for _, m := range b.ControlPlane {
		if !strings.Contains(tftest.Show(done.Diagnostics), m.Hostname()+": ") {
			t.Errorf("%s is not named: %s", m.Hostname(), tftest.Show(done.Diagnostics))
		}
	}

	if after := len(b.keys(t, "fails/")); after != keys {
		t.Errorf("%d objects are left, want %d", after, keys)
	}
}

// An interrupted apply leaves nothing incomplete.
func testBackupCanceled(t *testing.T, b *backups) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	b.Server.Fail(func(r *http.Request) storetest.Fault {
		if storetest.IsPut(r) || storetest.IsPart(r) {
			cancel()

			return storetest.Stalled
		}

		return storetest.Passed
	})
	defer b.Server.Fail(nil)

	d := tftest.Drive(t, "talosop_etcd_backup", credentialed)

	done := d.ApplyIn(ctx, t, b.config(b.Bucket(tftest.Config{"prefix": "canceled"}), nil))
	if !done.Failed() || !d.State.IsNull() || !strings.Contains(tftest.Show(done.Diagnostics), "canceled") {
		t.Errorf("the state is %v: %s", d.State, tftest.Show(done.Diagnostics))
	}

	b.Server.Fail(nil)
	b.expectNothing(t, "canceled/")
}

// An unreachable bucket changes nothing, and fails no plan.
func testBackupUnreachable(t *testing.T, b *backups) {
	for name, test := range map[string]struct{ provider, key tftest.Config }{"refresh": {provider: credentialed},
		"plan": {key: ownKey}} {
		bucket := b.Bucket(test.key)
		bucket["prefix"] = "unreachable"
		config := b.config(bucket, tftest.Config{"timeouts": tftest.Config{"read": "200ms"}})

		d := tftest.Drive(t, "talosop_etcd_backup", test.provider)
		d.Apply(t, config).Must(t)

		b.Server.Fail(func(*http.Request) storetest.Fault { return storetest.Refused })

		read := d.Refresh(t).Must(t)
		planned := d.Plan(t, config).Must(t)

		b.Server.Fail(nil)

		if !planned.Value.Equal(d.State) {
			t.Errorf("%s: the plan is not empty", name)
		}

		if diagnostics := tftest.Show(append(read.Diagnostics, planned.Diagnostics...)); !strings.Contains(diagnostics,
			"[backup_not_observed]") {
			t.Errorf("%s: it says %s", name, diagnostics)
		}
	}
}

// The next snapshot removes the incomplete uploads of killed runs. Without the Lease, which proves that no other run
// is storing one, they stay for a day.
func testBackupSweeps(t *testing.T, b *backups) {
	for _, test := range []struct {
		timeout time.Duration
		left    int
	}{{0, 1}, {time.Minute, 0}} {
		m := tftest.QuickProviderData()
		m.KubernetesTimeout = test.timeout

		d := tftest.Drive(t, "talosop_etcd_backup", nil)
		d.Server = tftest.ServeWith(t, m, credentialed)

		b.Server.Orphan(t, "sweeps/test/etcd-snapshot-2026-01-01T00-00-00Z-"+tftest.MarkOf(t, b.Bundle)+"-aaaaaa.db")
		d.Apply(t, b.config(b.Bucket(tftest.Config{"prefix": "sweeps"}), nil)).Must(t)

		if left, err := b.store(t).Sweep(t.Context(), "sweeps/", everything); err != nil || left != test.left {
			t.Errorf("with a timeout of %s %d uploads are left, want %d (%v)", test.timeout, left, test.left, err)
		}
	}
}

// A plan does not wait long for a bucket; an apply that asks again does.
func testBackupSlowBucket(t *testing.T, b *backups) {
	m := tftest.QuickProviderData()
	m.PlanTimeout = 2 * time.Second

	d := tftest.Drive(t, "talosop_etcd_backup", nil)
	d.Server = tftest.ServeWith(t, m, nil)

	bucket := b.Bucket(ownKey)
	bucket["prefix"] = "slow"
	key := tftest.Text(t, d.Apply(t, b.config(bucket, nil)).Must(t).Value, "key")
	tftest.Must(t, b.store(t).Delete(t.Context(), key))

	asked := 0

	b.Server.Fail(func(r *http.Request) storetest.Fault {
		// Both plans of an apply ask first.
		if storetest.IsHead(r) {
			asked++
		}

		if asked == 3 {
			select {
			case <-r.Context().Done():
			case <-time.After(m.PlanTimeout + time.Second):
			}
		}

		return storetest.Passed
	})
	defer b.Server.Fail(nil)

	if after := tftest.Text(t, d.Apply(t, b.config(bucket, nil)).Must(t).Value, "key"); after == key || asked < 3 {
		t.Errorf("after %d questions the snapshot is %s", asked, after)
	}
}
