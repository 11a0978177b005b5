package backup_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/backup"
	"github.com/talosop/terraform-provider-talosop/internal/backup/file"
	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// member is a real etcd, which speaks JSON besides gRPC.
type member struct{ url string }

func startEtcd(t *testing.T) member {
	t.Helper()

	m := member{url: "http://" + freeAddress(t)}
	peer := "http://" + freeAddress(t)

	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), clitest.Asset(t, "etcd"), "--data-dir", t.TempDir(), "--log-level", "error", "--unsafe-no-fsync",
		"--listen-client-urls", m.url, "--advertise-client-urls", m.url, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", "default="+peer)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	if err := wait.Until(ctx, 50*time.Millisecond, func(ctx context.Context) error {
		answer, err := m.call(ctx, "/v3/maintenance/status", nil)
		if err != nil {
			return err
		}

		var status struct{ Leader string }

		if err := errors.Join(json.NewDecoder(answer).Decode(&status), answer.Close()); err != nil || status.Leader == "" {
			return fmt.Errorf("leader %q: %w", status.Leader, err)
		}

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	return m
}

func (m member) call(ctx context.Context, path string, in any) (io.ReadCloser, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}

	if in == nil {
		body = []byte("{}")
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}

	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(errors.New(response.Status), response.Body.Close())
	}

	return response.Body, nil
}

// put writes a key and returns etcd's revision.
func (m member) put(t *testing.T, key, value string) int64 {
	t.Helper()

	encode := base64.StdEncoding.EncodeToString

	answer, err := m.call(t.Context(), "/v3/kv/put", map[string]string{"key": encode([]byte(key)), "value": encode([]byte(value))})
	if err != nil {
		t.Fatal(err)
	}

	var put struct{ Header struct{ Revision string } }
	if err := errors.Join(json.NewDecoder(answer).Decode(&put), answer.Close()); err != nil {
		t.Fatal(err)
	}

	revision, err := strconv.ParseInt(put.Header.Revision, 10, 64)
	if err != nil {
		t.Fatal(err)
	}

	return revision
}

// snapshot streams one, as etcdctl does.
func (m member) snapshot(ctx context.Context, to io.Writer) error {
	answer, err := m.call(ctx, "/v3/maintenance/snapshot", nil)
	if err != nil {
		return err
	}

	defer answer.Close()

	for decoder := json.NewDecoder(answer); ; {
		var piece struct{ Result struct{ Blob []byte } }
		if err := decoder.Decode(&piece); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}

		if _, err := to.Write(piece.Result.Blob); err != nil {
			return err
		}
	}
}

func TestSnapshotOfARealMember(t *testing.T) {
	t.Parallel()

	m := startEtcd(t)

	var revision int64
	for i := range 500 {
		revision = m.put(t, fmt.Sprintf("/registry/%d", i%300), fmt.Sprintf("%0*d", i*10, i))
	}

	a := backup.Archive{Store: file.Store{Path: t.TempDir()}, Cluster: "prod", Mark: ours, Scratch: t.TempDir()}

	record, err := a.Take(t.Context(), backup.Request{At: taken, Sealing: backup.Sealing{Compress: true}, Source: m.snapshot})
	if err != nil {
		t.Fatal(err)
	}

	if record.Database.Revision != revision || record.Database.Hash == 0 {
		t.Errorf("recorded %+v, want revision %d", record.Database, revision)
	}

	snapshot, err := a.Fetch(t.Context(), record.Key, backup.Keys{})
	if err != nil || snapshot.Database != record.Database {
		t.Fatalf("fetched %+v (%v), want %+v", snapshot, err, record.Database)
	}

	if err := snapshot.Close(); err != nil {
		t.Error(err)
	}
}
