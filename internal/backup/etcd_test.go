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

	"github.com/talosop/terraform-provider-talosop/internal/clitest"
	"github.com/talosop/terraform-provider-talosop/internal/wait"
)

// member is a real etcd, which speaks JSON besides gRPC.
type member struct{ url string }

func startEtcd(t *testing.T) member {
	t.Helper()

	return startEtcdOn(t, t.TempDir())
}

// startEtcdOn starts one on a data directory.
func startEtcdOn(t *testing.T, data string) member {
	t.Helper()

	m := member{url: "http://" + freeAddress(t)}
	peer := "http://" + freeAddress(t)

	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), clitest.Asset(t, "etcd"), "--data-dir", data,
		"--log-level", "error", "--unsafe-no-fsync",
		"--listen-client-urls", m.url, "--advertise-client-urls", m.url, "--listen-peer-urls", peer,
		"--initial-advertise-peer-urls", peer,
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

// filled is a member with keys of several sizes, some of them overwritten and some deleted.
func filled(t *testing.T) (m member, revision int64) {
	t.Helper()

	m = startEtcd(t)

	for i := range 400 {
		revision = m.put(t, fmt.Sprintf("/registry/%d", i%300), fmt.Sprintf("%0*d", i*10, i))
	}

	for i := range 50 {
		revision = m.change(t, "/v3/kv/deleterange",
			map[string]string{"key": base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "/registry/%d", i*3))})
	}

	return m, revision
}

// put writes a key and returns etcd's revision.
func (m member) put(t *testing.T, key, value string) int64 {
	t.Helper()

	encode := base64.StdEncoding.EncodeToString

	return m.change(t, "/v3/kv/put", map[string]string{"key": encode([]byte(key)), "value": encode([]byte(value))})
}

// change returns etcd's revision after it.
func (m member) change(t *testing.T, path string, in any) int64 {
	t.Helper()

	answer, err := m.call(t.Context(), path, in)
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
