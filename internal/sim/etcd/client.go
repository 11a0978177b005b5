package etcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/status"
)

// timeout bounds a request to a real member.
const timeout = 5 * time.Second

// client talks to one member through etcd's own JSON gateway (/v3), which spares
// the module etcd's client and all it brings along.
type client struct {
	host, port string
	http       *http.Client
}

func newClient(dir, host, port string) (*client, error) {
	cert, err := tls.LoadX509KeyPair(filepath.Join(dir, "admin.crt"), filepath.Join(dir, "admin.key"))
	if err != nil {
		return nil, fmt.Errorf("load etcd client certificate: %w", err)
	}

	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("load etcd CA: %w", err)
	}

	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)

	return &client{host: host, port: port, http: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{cert}},
	}}}, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// post sends a request and returns the body of a successful answer.
func (c *client) post(ctx context.Context, path string, req any) (io.ReadCloser, error) {
	body, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("encode etcd request: %w", err)
	}

	address := "https://" + net.JoinHostPort(c.host, c.port) + "/v3/" + path

	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make etcd request: %w", err)
	}

	resp, err := c.http.Do(r)

	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, Refused(c.host)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return nil, status.FromContextError(err).Err()
	case err != nil:
		return nil, fmt.Errorf("ask etcd on %s: %w", c.host, err)
	case resp.StatusCode == http.StatusOK:
		return resp.Body, nil
	}

	defer resp.Body.Close() //nolint:errcheck // only read

	var failure struct {
		Message string `json:"message"`
	}

	if err := json.NewDecoder(resp.Body).Decode(&failure); err != nil || failure.Message == "" {
		return nil, fmt.Errorf("ask etcd on %s: %s", c.host, resp.Status)
	}

	return nil, errorOf(failure.Message)
}

// errorOf finds the error callers compare with.
func errorOf(message string) error {
	for _, known := range []error{
		ErrMemberNotFound, ErrUnhealthy, errNotEnough, errTooManyLearners, errNotReady, errNoLeader, ErrTimedOut, errLearner,
		ErrStopped, ErrNoSpace, errCorrupt, errBadTransferee, errPeerExists,
	} {
		if known.Error() == message {
			return known
		}
	}

	return errors.New(message)
}

// call is post with a deadline and a decoded answer.
func (c *client) call(ctx context.Context, path string, req, resp any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	body, err := c.post(ctx, path, req)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // only read

	if err := json.NewDecoder(body).Decode(resp); err != nil {
		return fmt.Errorf("decode answer of etcd on %s: %w", c.host, err)
	}

	return nil
}

// readKey is a linearizable read of a key that need not exist: the health check.
func (c *client) readKey(ctx context.Context) error {
	return c.call(ctx, "kv/range", map[string]any{"key": []byte("health")}, &struct{}{})
}

// memberJSON is a member as the gateway writes it; its names follow the protobuf.
type memberJSON struct {
	ID         uint64   `json:"ID,string"`
	Name       string   `json:"name"`
	PeerURLs   []string `json:"peerURLs"`
	ClientURLs []string `json:"clientURLs"`
	IsLearner  bool     `json:"isLearner"`
}

func (c *client) members(ctx context.Context) ([]*machine.EtcdMember, error) {
	var resp struct {
		Members []memberJSON `json:"members"`
	}

	if err := c.call(ctx, "cluster/member/list", map[string]any{"linearizable": true}, &resp); err != nil {
		return nil, err
	}

	members := make([]*machine.EtcdMember, 0, len(resp.Members))
	for _, m := range resp.Members {
		members = append(members, &machine.EtcdMember{
			Id: m.ID, Hostname: m.Name, PeerUrls: m.PeerURLs, ClientUrls: m.ClientURLs, IsLearner: m.IsLearner,
		})
	}

	return members, nil
}

func (c *client) addLearner(ctx context.Context, peerURL string) (uint64, error) {
	var resp struct {
		Member memberJSON `json:"member"`
	}

	err := c.call(ctx, "cluster/member/add", map[string]any{"peerURLs": []string{peerURL}, "isLearner": true}, &resp)

	return resp.Member.ID, err
}

func (c *client) updatePeer(ctx context.Context, id uint64, peerURL string) error {
	return c.call(ctx, "cluster/member/update", map[string]any{"ID": id, "peerURLs": []string{peerURL}}, &struct{}{})
}

func (c *client) remove(ctx context.Context, id uint64) error {
	return c.call(ctx, "cluster/member/remove", map[string]any{"ID": id}, &struct{}{})
}

func (c *client) promote(ctx context.Context, id uint64) error {
	return c.call(ctx, "cluster/member/promote", map[string]any{"ID": id}, &struct{}{})
}

func (c *client) transferLeadership(ctx context.Context, id uint64) error {
	return c.call(ctx, "maintenance/transfer-leadership", map[string]any{"targetID": id}, &struct{}{})
}

func (c *client) status(ctx context.Context) (*machine.EtcdMemberStatus, error) {
	var resp struct {
		Header struct {
			MemberID uint64 `json:"member_id,string"`
		} `json:"header"`
		Version          string   `json:"version"`
		StorageVersion   string   `json:"storageVersion"`
		DBSize           int64    `json:"dbSize,string"`
		DBSizeInUse      int64    `json:"dbSizeInUse,string"`
		Leader           uint64   `json:"leader,string"`
		RaftIndex        uint64   `json:"raftIndex,string"`
		RaftTerm         uint64   `json:"raftTerm,string"`
		RaftAppliedIndex uint64   `json:"raftAppliedIndex,string"`
		Errors           []string `json:"errors"`
		IsLearner        bool     `json:"isLearner"`
	}

	if err := c.call(ctx, "maintenance/status", struct{}{}, &resp); err != nil {
		return nil, err
	}

	return &machine.EtcdMemberStatus{
		MemberId: resp.Header.MemberID, ProtocolVersion: resp.Version, StorageVersion: resp.StorageVersion,
		DbSize: resp.DBSize, DbSizeInUse: resp.DBSizeInUse, Leader: resp.Leader, RaftIndex: resp.RaftIndex,
		RaftTerm: resp.RaftTerm, RaftAppliedIndex: resp.RaftAppliedIndex, Errors: resp.Errors, IsLearner: resp.IsLearner,
	}, nil
}

// alarm lists alarms ("GET"), raises one ("ACTIVATE") or ends one ("DEACTIVATE").
func (c *client) alarm(
	ctx context.Context, action string, alarm *machine.EtcdMemberAlarm,
) ([]*machine.EtcdMemberAlarm, error) {
	var resp struct {
		Alarms []struct {
			MemberID uint64 `json:"memberID,string"`
			Alarm    string `json:"alarm"`
		} `json:"alarms"`
	}

	req := map[string]any{"action": action, "memberID": alarm.GetMemberId(), "alarm": alarm.GetAlarm().String()}
	if err := c.call(ctx, "maintenance/alarm", req, &resp); err != nil {
		return nil, err
	}

	alarms := make([]*machine.EtcdMemberAlarm, 0, len(resp.Alarms))
	for _, a := range resp.Alarms {
		kind := machine.EtcdMemberAlarm_AlarmType(machine.EtcdMemberAlarm_AlarmType_value[a.Alarm])
		alarms = append(alarms, &machine.EtcdMemberAlarm{MemberId: a.MemberID, Alarm: kind})
	}

	return alarms, nil
}

func (c *client) downgrade(ctx context.Context, action, version string) (string, error) {
	var resp struct {
		Version string `json:"version"`
	}

	err := c.call(ctx, "maintenance/downgrade", map[string]any{"action": action, "version": version}, &resp)

	return resp.Version, err
}

func (c *client) defragment(ctx context.Context) error {
	return c.call(ctx, "maintenance/defragment", struct{}{}, &struct{}{})
}

// Snapshot copies the member's database with its checksum.
func (c *client) snapshot(ctx context.Context, w io.Writer) error {
	body, err := c.post(ctx, "maintenance/snapshot", struct{}{})
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // only read

	decoder := json.NewDecoder(body)

	for {
		var part struct {
			Result struct {
				Blob []byte `json:"blob"`
			} `json:"result"`
			Error *struct {
				Message string `json:"message"`
			} `json:"error"`
		}

		err := decoder.Decode(&part)

		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read snapshot of etcd on %s: %w", c.host, err)
		case part.Error != nil:
			return errorOf(part.Error.Message)
		}

		if _, err := w.Write(part.Result.Blob); err != nil {
			return fmt.Errorf("write snapshot: %w", err)
		}
	}
}
