package gateway

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"net"
	"strconv"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

// JumpHost is an SSH server with one user.
type JumpHost struct {
	// Address is host:port.
	Address string
	// HostKey is the public key of the server as in authorized_keys.
	HostKey string
	// PrivateKey is that of the user, in PEM, and Key the same parsed.
	PrivateKey string
	Key        ed25519.PrivateKey

	mu      sync.Mutex
	clients []*ssh.ServerConn
	logins  int
}

// User that may log in.
const User = "jumper"

// Jump starts an SSH server.
func (n *Network) Jump(tb testing.TB) *JumpHost {
	tb.Helper()

	host, user := key(tb), key(tb)
	hostSigner, userSigner := signer(tb, host), signer(tb, user)
	allowed := string(userSigner.PublicKey().Marshal())

	config := &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if c.User() != User || string(key.Marshal()) != allowed {
			return nil, errors.New("not this user with this key")
		}

		return &ssh.Permissions{}, nil
	}}
	config.AddHostKey(hostSigner)

	block, err := ssh.MarshalPrivateKey(user, "")
	if err != nil {
		tb.Fatal(err)
	}

	j := &JumpHost{HostKey: string(ssh.MarshalAuthorizedKey(hostSigner.PublicKey())),
		PrivateKey: string(pem.EncodeToMemory(block)), Key: user}
	j.Address = n.listen(tb, func(conn net.Conn) { j.serve(tb, conn, config, n) }).String()

	return j
}

// Logins is the number of logins.
func (j *JumpHost) Logins() int {
	j.mu.Lock()
	defer j.mu.Unlock()

	return j.logins
}

// Cut ends the connections of all that are logged in.
func (j *JumpHost) Cut() {
	j.mu.Lock()
	defer j.mu.Unlock()

	for _, c := range j.clients {
		_ = c.Close() // or ended before
	}

	j.clients = nil
}

func (j *JumpHost) serve(tb testing.TB, conn net.Conn, config *ssh.ServerConfig, n *Network) {
	client, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return // the client sees why
	}

	j.mu.Lock()
	j.logins++
	j.clients = append(j.clients, client)
	j.mu.Unlock()

	var all sync.WaitGroup
	defer all.Wait()

	all.Go(func() { ssh.DiscardRequests(requests) })

	for channel := range channels {
		all.Go(func() { forward(tb, channel, n) })
	}
}

// forward serves one request for a connection (RFC 4254, 7.2).
func forward(tb testing.TB, channel ssh.NewChannel, n *Network) {
	var to struct {
		Host   string
		Port   uint32
		Origin string
		From   uint32
	}

	if err := ssh.Unmarshal(channel.ExtraData(), &to); err != nil || channel.ChannelType() != "direct-tcpip" {
		_ = channel.Reject(ssh.UnknownChannelType, "only direct-tcpip")

		return
	}

	target, err := n.dial(tb.Context(), "tcp", net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))))
	if err != nil {
		_ = channel.Reject(ssh.ConnectionFailed, err.Error())

		return
	}

	accepted, requests, err := channel.Accept()
	if err != nil {
		_ = target.Close() // the client is gone

		return
	}

	go ssh.DiscardRequests(requests)

	join(accepted, target)
}

func key(tb testing.TB) ed25519.PrivateKey {
	tb.Helper()

	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}

	return private
}

func signer(tb testing.TB, private ed25519.PrivateKey) ssh.Signer {
	tb.Helper()

	s, err := ssh.NewSignerFromKey(private)
	if err != nil {
		tb.Fatal(err)
	}

	return s
}
