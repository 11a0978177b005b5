package backup_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
)

// A record has the number of objects by resource, as a real etcd holds them: each key once, however often it was
// written, and no deleted one. What API servers keep for themselves and keys of others do not count.
func TestTake_countsObjects(t *testing.T) {
	t.Parallel()

	m := startEtcd(t)

	for _, key := range []string{
		"/registry/secrets/default/a", "/registry/secrets/default/b", "/registry/secrets/kube-system/a",
		"/registry/secrets/default/gone", "/registry/secrets/default/again", "/registry/namespaces/default",
		"/registry/services/specs/default/kubernetes", "/registry/services/endpoints/default/web",
		"/registry/minions/cp-1", "/registry/controllers/default/old", "/registry/ingress/default/web",
		"/registry/cert-manager.io/certificates/default/web", "/registry/cert-manager.io/certificates/default/api",
		"/registry/apiextensions.k8s.io/customresourcedefinitions/certificates.cert-manager.io",
		// What an isolated restore deletes.
		"/registry/services/endpoints/default/kubernetes", "/registry/leases/kube-system/talosop",
		"/registry/masterleases/10.0.0.11", "/registry/ranges/serviceips", "/registry/cert-manager.io/alone",
		"/registry/alone", "compact_rev_key", "/other/secrets/default/a",
	} {
		m.put(t, key, "first")
	}

	for i := range 20 {
		m.put(t, "/registry/secrets/default/a", fmt.Sprint(i))
	}

	remove := func(key string) {
		m.change(t, "/v3/kv/deleterange", map[string]string{"key": base64.StdEncoding.EncodeToString([]byte(key))})
	}

	remove("/registry/secrets/default/gone")
	remove("/registry/secrets/default/again")
	m.put(t, "/registry/secrets/default/again", "second")

	want := map[string]int64{
		"secrets": 4, "namespaces": 1, "services": 1, "endpoints": 1, "replicationcontrollers": 1, "ingresses": 1,
		"certificates.cert-manager.io": 2, "customresourcedefinitions.apiextensions.k8s.io": 1,
	}
	a := backup.Archive{Store: file.Store{Path: t.TempDir()}, Cluster: "prod", Mark: ours, RecordKeys: recordKeys,
		Scratch: t.TempDir()}

	taken := func() backup.Record {
		t.Helper()

		record, err := a.Take(t.Context(), backup.Request{At: taken, Source: m.snapshot})
		if err != nil {
			t.Fatal(err)
		}

		return record
	}

	first := taken()
	if !maps.Equal(first.Objects, want) {
		t.Errorf("counted %v, want %v", first.Objects, want)
	}

	if read, err := a.Recorded(t.Context(), first.Key); err != nil || !maps.Equal(read.Objects, want) {
		t.Errorf("the record has %v (%v), want %v", read, err, want)
	}

	// A compaction removes revisions, and the other objects stay.
	revision := m.put(t, "/registry/secrets/default/late", "late")
	m.change(t, "/v3/kv/compaction", map[string]any{"revision": fmt.Sprint(revision), "physical": true})
	remove("/registry/secrets/kube-system/a")

	if counted := taken().Objects; !maps.Equal(counted, want) {
		t.Errorf("after a compaction counted %v, want %v", counted, want)
	}
}
