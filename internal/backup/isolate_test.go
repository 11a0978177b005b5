package backup_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/clitest"
)

// What connects a restored cluster to the one that it was taken of: each of them goes.
var connecting = []string{
	"/registry/configmaps/kube-system/kubeconfig-in-cluster",
	"/registry/endpointslices/default/kubernetes",
	"/registry/endpointslices/default/talos-ipv4",
	"/registry/leases/kube-system/talosop",
	"/registry/leases/kube-system/talosop-backup",
	"/registry/masterleases/10.0.0.11",
	"/registry/minions/prod-cp-1",
	"/registry/minions/prod-cp-2",
	"/registry/services/endpoints/default/kubernetes",
	"/registry/services/endpoints/default/talos",
}

// What looks like it and stays.
var staying = []string{
	"/registry/configmaps/kube-system/kubeconfig-in-cluster-of-mine",
	"/registry/endpointslices/default/kubernetes-dashboard",
	"/registry/endpointslices/default/talos-x7z",
	"/registry/leases/kube-node-lease/prod-cp-1",
	"/registry/leases/kube-system/talosop-of-mine",
	"/registry/minions",
	"/registry/services/endpoints/default/talosop",
	"/registry/services/specs/default/kubernetes",
}

// A real etcd accepts the isolated snapshot, with all keys except the connecting ones.
func TestIsolate_isRestoredByEtcd(t *testing.T) {
	t.Parallel()

	etcdutl := clitest.Asset(t, "etcdutl")
	m, _ := filled(t)

	for i, key := range slices.Concat(connecting, staying) {
		m.put(t, key, fmt.Sprint("value of ", i))
	}

	m.put(t, connecting[5], "changed since")
	m.put(t, "/registry/minions/gone", "deleted already")
	m.change(t, "/v3/kv/deleterange",
		map[string]string{"key": base64.StdEncoding.EncodeToString([]byte("/registry/minions/gone"))})

	want := slices.DeleteFunc(m.keys(t), func(key string) bool { return slices.Contains(connecting, key) })

	folder := t.TempDir()
	path := filepath.Join(folder, "isolated.db")
	deleted := isolate(t, m, path)
	slices.Sort(deleted)

	if !slices.Equal(deleted, connecting) {
		t.Errorf("deleted %q, want %q", deleted, connecting)
	}

	data := filepath.Join(folder, "data")
	if output, err := exec.CommandContext(t.Context(), etcdutl, "snapshot", "restore", path, "--data-dir",
		data).CombinedOutput(); err != nil {
		t.Fatalf("etcdutl: %v\n%s", err, output)
	}

	restored := startEtcdOn(t, data)
	if got := restored.keys(t); !slices.Equal(got, want) {
		t.Errorf("restored %d keys, want %d; missing %q, surplus %q", len(got), len(want), less(want, got), less(got, want))
	}

	// It continues from there.
	if revision := restored.put(t, connecting[0], "again"); !slices.Contains(restored.keys(t), connecting[0]) {
		t.Errorf("a deleted key cannot be put again, in revision %d", revision)
	}
}

// A snapshot that has none of these keys holds the same as before. What is no entry of etcd is damage.
func TestIsolate_withoutSuchKeys(t *testing.T) {
	t.Parallel()

	m, revision := filled(t)

	var taken bytes.Buffer
	if err := m.snapshot(t.Context(), &taken); err != nil {
		t.Fatal(err)
	}

	for name, test := range map[string]struct {
		data []byte
		err  error
	}{
		"of etcd":    {data: taken.Bytes()},
		"of another": {data: whole(t), err: backup.ErrDamaged},
	} {
		a, s := archive(t)
		if _, err := s.Put(t.Context(), "db.snapshot", bytes.NewReader(test.data)); err != nil {
			t.Fatal(err)
		}

		snapshot, err := a.Fetch(t.Context(), "db.snapshot", backup.Keys{SHA256: sumOf(test.data)})
		if err != nil {
			t.Fatal(err)
		}

		deleted, err := snapshot.Isolate(t.Context())
		if !errors.Is(err, test.err) || len(deleted) > 0 {
			t.Errorf("%s: deleted %q (%v), want nothing (%v)", name, deleted, err, test.err)
		}

		if err == nil && snapshot.Database.Revision != revision {
			t.Errorf("%s: the revision is %d, want %d", name, snapshot.Database.Revision, revision)
		}

		if err := snapshot.Close(); err != nil {
			t.Error(err)
		}

		left(t, a.Scratch, 0)
	}
}

// isolate takes a snapshot of a member and writes it to a file once it is isolated.
func isolate(t *testing.T, m member, path string) []string {
	t.Helper()

	var taken bytes.Buffer
	if err := m.snapshot(t.Context(), &taken); err != nil {
		t.Fatal(err)
	}

	a, s := archive(t)
	if _, err := s.Put(t.Context(), "db.snapshot", bytes.NewReader(taken.Bytes())); err != nil {
		t.Fatal(err)
	}

	snapshot, err := a.Fetch(t.Context(), "db.snapshot", backup.Keys{SHA256: sumOf(taken.Bytes())})
	if err != nil {
		t.Fatal(err)
	}

	if members, err := snapshot.Members(); err != nil || !slices.Equal(members, []string{"127.0.0.1"}) {
		t.Errorf("its members are at %q (%v), want 127.0.0.1", members, err)
	}

	deleted, err := snapshot.Isolate(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}

	_, err = io.Copy(file, snapshot.Reader())
	if err := errors.Join(err, file.Close(), snapshot.Close()); err != nil {
		t.Fatal(err)
	}

	left(t, a.Scratch, 0)

	return deleted
}

// keys are all keys of a member, in order.
func (m member) keys(t *testing.T) []string {
	t.Helper()

	answer, err := m.call(t.Context(), "/v3/kv/range",
		map[string]any{"key": "AA==", "range_end": "AA==", "keys_only": true})
	if err != nil {
		t.Fatal(err)
	}

	var found struct{ Kvs []struct{ Key []byte } }
	if err := errors.Join(json.NewDecoder(answer).Decode(&found), answer.Close()); err != nil {
		t.Fatal(err)
	}

	keys := make([]string, 0, len(found.Kvs))
	for _, kv := range found.Kvs {
		keys = append(keys, strings.Clone(string(kv.Key)))
	}

	slices.Sort(keys)

	return keys
}

// less is what the first list has and the second one does not.
func less(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}
