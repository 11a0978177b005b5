package provider

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup/storetest"
	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// Nothing is recorded that was not stored.
func testBackupWrongCredentials(t *testing.T, b *backups) {
	const wrong = "not-the-secret-of-the-bucket"

	for name, bucket := range map[string]configuration{
		"a wrong key":    {"access_key_id_wo": storetest.AccessKey, "secret_access_key_wo": wrong},
		"an unknown key": {"access_key_id_wo": "nobody", "secret_access_key_wo": wrong},
		"no such bucket": {"bucket": "missing", "access_key_id_wo": storetest.AccessKey,
			"secret_access_key_wo": storetest.SecretKey},
	} {
		d := drive(t, "talosop_etcd_backup", nil)
		bucket["prefix"] = "wrong"

		done := d.apply(t, b.config(b.Bucket(bucket), nil))
		said := show(done.diagnostics)

		if !done.failed() || !d.state.IsNull() {
			t.Errorf("%s: the state is %v", name, d.state)
		}

		if strings.Contains(said, wrong) || strings.Contains(said, storetest.SecretKey) ||
			!strings.Contains(said, "Applying again is safe") {
			t.Errorf("%s: %s", name, said)
		}

		if strings.Contains(said, "Half stored") || strings.Contains(said, "RequestID") ||
			!strings.Contains(said, "check access_key_id") && !strings.Contains(said, "create it") {
			t.Errorf("%s does not say what to do, or too much: %s", name, said)
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

	d := drive(t, "talosop_etcd_backup", credentialed)
	b.ForgetCalls()

	done := d.apply(t, b.config(b.Bucket(configuration{"prefix": "refused"}), nil))
	if !done.failed() || !d.state.IsNull() {
		t.Errorf("the state is %v", d.state)
	}

	if calls := b.CallsTo("EtcdSnapshot"); len(calls) != 1 {
		t.Errorf("%d members were asked because the bucket refused", len(calls))
	}

	b.Server.Fail(nil)
	b.expectNothing(t, "refused/")
}

// The next member is asked when one breaks off; when all do, nothing is stored.
func testBackupMemberFails(t *testing.T, b *backups) {
	defer func() {
		for _, m := range b.controlPlane {
			m.ClearFaults()
		}
	}()

	leader := b.Leader(t)

	for _, m := range b.controlPlane {
		if m.Hostname() != leader {
			m.SetFault(fault.Fault{Method: "EtcdSnapshot", Count: -1, After: 8000, EndEarly: true})
		}
	}

	d := drive(t, "talosop_etcd_backup", credentialed)
	config := b.config(b.Bucket(configuration{"prefix": "fails"}), configuration{"triggers": configuration{"run": "1"}})

	done := d.apply(t, config).must(t)
	if member := text(t, done.Value, "member"); member != leader {
		t.Errorf("%s gave the snapshot", member)
	}

	for _, m := range b.controlPlane {
		if warned := strings.Contains(show(done.diagnostics), m.Hostname()+": "); warned != (m.Hostname() != leader) {
			t.Errorf("%s is named: %v, by %s", m.Hostname(), warned, show(done.diagnostics))
		}
	}

	for _, m := range b.controlPlane {
		if m.Hostname() == leader {
			m.SetFault(fault.Fault{Method: "EtcdSnapshot", Count: -1, After: 8000, Cut: true})
		}
	}

	config["triggers"] = configuration{"run": "2"}
	before, keys := d.state, len(b.keys(t, "fails/"))
	done = d.apply(t, config)

	if !done.failed() || !d.state.Equal(before) {
		t.Error("a snapshot that broke off is in state")
	}

	for _, m := range b.controlPlane {
		if !strings.Contains(show(done.diagnostics), m.Hostname()+": ") {
			t.Errorf("%s is not named: %s", m.Hostname(), show(done.diagnostics))
		}
	}

	if after := len(b.keys(t, "fails/")); after != keys {
		t.Errorf("%d objects are left, want %d", after, keys)
	}
}

// An interrupted apply leaves nothing half done.
func testBackupCancelled(t *testing.T, b *backups) {
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

	d := drive(t, "talosop_etcd_backup", credentialed)

	done := d.applyIn(ctx, t, b.config(b.Bucket(configuration{"prefix": "cancelled"}), nil))
	if !done.failed() || !d.state.IsNull() || !strings.Contains(show(done.diagnostics), "cancelled") {
		t.Errorf("the state is %v: %s", d.state, show(done.diagnostics))
	}

	b.Server.Fail(nil)
	b.expectNothing(t, "cancelled/")
}

// A bucket that cannot be reached changes nothing, and fails no plan.
func testBackupUnreachable(t *testing.T, b *backups) {
	for name, test := range map[string]struct{ provider, key configuration }{"refresh": {provider: credentialed},
		"plan": {key: ownKey}} {
		bucket := b.Bucket(test.key)
		bucket["prefix"] = "unreachable"
		config := b.config(bucket, configuration{"timeouts": configuration{"read": "200ms"}})

		d := drive(t, "talosop_etcd_backup", test.provider)
		d.apply(t, config).must(t)

		b.Server.Fail(func(*http.Request) storetest.Fault { return storetest.Refused })

		read := d.refresh(t).must(t)
		planned := d.plan(t, config).must(t)

		b.Server.Fail(nil)

		if !planned.Value.Equal(d.state) {
			t.Errorf("%s: the plan is not empty", name)
		}

		if said := show(append(read.diagnostics, planned.diagnostics...)); !strings.Contains(said,
			"Unable to observe etcd backup") {
			t.Errorf("%s: it says %s", name, said)
		}
	}
}

// What killed runs left half stored goes before the next snapshot; without the Lease, which
// says that nobody else stores one right now, it stays for a day.
func testBackupSweeps(t *testing.T, b *backups) {
	for _, test := range []struct {
		timeout time.Duration
		left    int
	}{{0, 1}, {time.Minute, 0}} {
		m := quickProviderData()
		m.KubernetesTimeout = test.timeout

		d := drive(t, "talosop_etcd_backup", nil)
		d.Server = serve(t, m, credentialed)

		b.Server.Orphan(t, "sweeps/test/etcd-snapshot-2026-01-01T00-00-00Z-"+markOf(t, b.Bundle)+"-aaaaaa.db")
		d.apply(t, b.config(b.Bucket(configuration{"prefix": "sweeps"}), nil)).must(t)

		if left, err := b.store(t).Sweep(t.Context(), "sweeps/", everything); err != nil || left != test.left {
			t.Errorf("with a timeout of %s %d uploads are left, want %d (%v)", test.timeout, left, test.left, err)
		}
	}
}

// A plan does not wait long for a bucket; an apply that asks once more does.
func testBackupSlowBucket(t *testing.T, b *backups) {
	m := quickProviderData()
	m.PlanTimeout = 2 * time.Second

	d := drive(t, "talosop_etcd_backup", nil)
	d.Server = serve(t, m, nil)

	bucket := b.Bucket(ownKey)
	bucket["prefix"] = "slow"
	key := text(t, d.apply(t, b.config(bucket, nil)).must(t).Value, "key")
	must(t, b.store(t).Delete(t.Context(), key))

	asked := 0

	b.Server.Fail(func(r *http.Request) storetest.Fault {
		// Both plans of an apply ask before it does.
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

	if after := text(t, d.apply(t, b.config(bucket, nil)).must(t).Value, "key"); after == key || asked < 3 {
		t.Errorf("after %d questions the snapshot is %s", asked, after)
	}
}
