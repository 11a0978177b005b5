package dialer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// JumpHost is an SSH server that forwards TCP connections (direct-tcpip, as `ssh -J` asks for).
type JumpHost struct {
	// Address is a host with or without a port, 22 by default.
	Address string
	// User to log in as.
	User string
	// PrivateKey is a key of the user, PEM encoded and not encrypted. Without one the agent at SSH_AUTH_SOCK is asked.
	PrivateKey string
	// HostKey is the public key of the server as in authorized_keys, such as "ssh-ed25519 AAAA…". Without one the server
	// has to be in KnownHosts.
	HostKey string
	// KnownHosts is a file, ~/.ssh/known_hosts by default.
	KnownHosts string
}

// String names the server.
func (j JumpHost) String() string { return j.User + "@" + j.address() }

// GoString hides the key.
func (j JumpHost) GoString() string { return j.String() }

// Format hides the key from every verb.
func (j JumpHost) Format(f fmt.State, _ rune) { _, _ = fmt.Fprint(f, j.String()) }

func (j JumpHost) address() string {
	if _, _, err := net.SplitHostPort(j.Address); err == nil {
		return j.Address
	}

	return net.JoinHostPort(strings.Trim(j.Address, "[]"), "22")
}

func (j JumpHost) check() error {
	if j.PrivateKey != "" {
		if err := CheckPrivateKey(j.PrivateKey); err != nil {
			return fmt.Errorf("private key of %s: %w", j, err)
		}
	}

	if j.HostKey != "" {
		if err := CheckHostKey(j.HostKey); err != nil {
			return fmt.Errorf("host key of %s: %w", j, err)
		}
	}

	return nil
}

// CheckPrivateKey says what is wrong with a private key; nil is nothing.
func CheckPrivateKey(pem string) error {
	_, err := ssh.ParsePrivateKey([]byte(pem))

	var encrypted *ssh.PassphraseMissingError
	if errors.As(err, &encrypted) {
		return errors.New("the key is encrypted with a passphrase; add it to an SSH agent instead")
	}

	if err != nil {
		return errors.New("not a private key in PEM format")
	}

	return nil
}

// CheckHostKey says what is wrong with the public key of a server; nil is nothing.
func CheckHostKey(line string) error {
	if _, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line)); err != nil {
		return errors.New("not a public key with its type, such as \"ssh-ed25519 AAAA…\"")
	}

	return nil
}

// jump connects to an address from the jump host.
func (d *Dialer) jump(ctx context.Context, address string) (net.Conn, error) {
	client, err := d.connected(ctx)
	if err != nil {
		return nil, fmt.Errorf("log in: %w", err)
	}

	channel, err := client.DialContext(ctx, "tcp", address)

	switch {
	case ctx.Err() != nil && err != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}

	return withDeadlines(channel), nil
}

// connected returns the existing connection to the jump host, or else a new one.
func (d *Dialer) connected(ctx context.Context) (*ssh.Client, error) {
	d.mu.Lock()
	defer d.mu.Unlock()

	if d.client != nil {
		return d.client, nil
	}

	client, err := d.login(ctx)
	if err != nil {
		return nil, err
	}

	d.client = client
	ended := make(chan struct{})

	go func() {
		defer close(ended)

		_ = client.Wait() // the connections through it return the reason
		d.forget(client)
	}()
	go keepAlive(client, ended)

	return client, nil
}

func (d *Dialer) forget(client *ssh.Client) {
	d.mu.Lock()
	defer d.mu.Unlock()

	if d.client == client {
		d.client = nil
	}
}

func (d *Dialer) login(ctx context.Context) (*ssh.Client, error) {
	host := *d.options.Jump

	config, done, err := host.clientConfig()
	if err != nil {
		return nil, err
	}
	defer done()

	raw, err := d.first(ctx, host.address())
	if err != nil {
		return nil, err
	}

	// The handshake knows no context.
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })

	conn, channels, requests, err := ssh.NewClientConn(raw, host.address(), config)
	if !stop() || err != nil {
		_ = raw.Close() // given up either way

		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}

		return nil, err
	}

	return ssh.NewClient(conn, channels, requests), nil
}

// clientConfig is how to log in. done has to be called after that.
func (j JumpHost) clientConfig() (config *ssh.ClientConfig, done func(), err error) {
	config = &ssh.ClientConfig{User: j.User}

	if config.HostKeyCallback, config.HostKeyAlgorithms, err = j.trusted(); err != nil {
		return nil, nil, err
	}

	if j.PrivateKey != "" {
		signer, err := ssh.ParsePrivateKey([]byte(j.PrivateKey))
		if err != nil {
			return nil, nil, fmt.Errorf("read the private key: %w", err)
		}

		config.Auth = []ssh.AuthMethod{ssh.PublicKeys(signer)}

		return config, func() {}, nil
	}

	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil, nil, errors.New("no private key is given, and SSH_AUTH_SOCK of an SSH agent is not set")
	}

	conn, err := (&net.Dialer{}).DialContext(context.Background(), "unix", socket)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the SSH agent: %w", err)
	}

	config.Auth = []ssh.AuthMethod{ssh.PublicKeysCallback(agent.NewClient(conn).Signers)}

	return config, func() { _ = conn.Close() }, nil
}

// trusted is which key the server has to show, and the algorithms to ask it for.
func (j JumpHost) trusted() (ssh.HostKeyCallback, []string, error) {
	if j.HostKey != "" {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(j.HostKey))
		if err != nil {
			return nil, nil, fmt.Errorf("read the host key: %w", err)
		}

		return ssh.FixedHostKey(key), algorithmsOf(key), nil
	}

	file := j.KnownHosts
	if file == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, nil, fmt.Errorf("find known_hosts: %w", err)
		}

		file = filepath.Join(home, ".ssh", "known_hosts")
	}

	known, err := knownhosts.NewDB(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read known_hosts: %w", err)
	}

	return j.explained(known.HostKeyCallback(), file), known.HostKeyAlgorithms(j.address()), nil
}

// explained says which file a server is not in, or differs from.
func (j JumpHost) explained(check ssh.HostKeyCallback, file string) ssh.HostKeyCallback {
	return func(hostname string, remote net.Addr, key ssh.PublicKey) error {
		err := check(hostname, remote, key)

		switch {
		case err == nil:
			return nil
		case knownhosts.IsHostKeyChanged(err):
			return fmt.Errorf("the server presents host key %s, but %s has another one: the connection may be intercepted",
				ssh.FingerprintSHA256(key), file)
		case knownhosts.IsHostUnknown(err):
			return fmt.Errorf("%s has no host key of the server, whose key is %s: verify the key, then add it to that "+
				"file or set host_key", file, ssh.FingerprintSHA256(key))
		default:
			return err
		}
	}
}

// algorithmsOf are those by which a server can prove that it has a key. An RSA key has three (RFC 8332).
func algorithmsOf(key ssh.PublicKey) []string {
	if key.Type() == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	}

	return []string{key.Type()}
}

// alive is how often the jump host has to show that it is there, and how long it may take.
const alive = 15 * time.Second

// keepAlive ends a connection to a jump host that says nothing any more: what goes through it would wait for ever.
func keepAlive(client *ssh.Client, ended <-chan struct{}) {
	for {
		select {
		case <-ended:
			return
		case <-time.After(alive):
		}

		late := time.AfterFunc(alive, func() { _ = client.Close() })
		_, _, err := client.SendRequest("keepalive@openssh.com", true, nil)
		late.Stop()

		if err != nil {
			_ = client.Close() // it is broken

			return
		}
	}
}

// withDeadlines adds deadlines to a channel of SSH, which has none.
func withDeadlines(channel net.Conn) net.Conn {
	near, far := net.Pipe()

	pass := func(to io.WriteCloser, from io.Reader) {
		_, _ = io.Copy(to, from) // either end may close the connection
		_ = channel.Close()
		_ = far.Close()
	}

	go pass(channel, far)
	go pass(far, channel)

	return &piped{near, channel}
}

// piped is the near end of a channel.
type piped struct {
	net.Conn

	channel net.Conn
}

func (p *piped) LocalAddr() net.Addr  { return p.channel.LocalAddr() }
func (p *piped) RemoteAddr() net.Addr { return p.channel.RemoteAddr() }
