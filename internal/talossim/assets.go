package talossim

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	talosx509 "github.com/siderolabs/crypto/x509"
)

// realParts are the programs and the scratch folder of a site with real etcd and
// Kubernetes.
type realParts struct {
	sim       *Simulator
	etcd      string
	apiserver string
	dir       string
	nursery   *nursery

	mu   sync.Mutex
	next netip.Addr // for servers behind the machines' listeners
}

// findAssets looks the programs up in a folder. etcd built from its module is called
// "server".
func findAssets(s *Simulator, folder string) (*realParts, error) {
	etcd, err := findProgram(folder, "etcd", "server")
	if err != nil {
		return nil, err
	}

	apiserver, err := findProgram(folder, "kube-apiserver")
	if err != nil {
		return nil, err
	}

	dir, err := os.MkdirTemp("", "talossim-*")
	if err != nil {
		return nil, fmt.Errorf("make scratch folder: %w", err)
	}

	first := s.addrs.prefix.Addr().As4()
	first[2]++ // the first /24 holds the endpoints and the claim
	first[3] = firstHidden

	return &realParts{
		sim: s, etcd: etcd, apiserver: apiserver, dir: dir, nursery: newNursery(), next: netip.AddrFrom4(first),
	}, nil
}

func findProgram(folder string, names ...string) (string, error) {
	for _, name := range names {
		path := filepath.Join(folder, name)

		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() {
			return path, nil
		}

		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("find %s: %w", name, err)
		}
	}

	return "", fmt.Errorf("folder %s has no %s", folder, names[0])
}

// hiddenAddress is a loopback address no machine has.
func (p *realParts) hiddenAddress() (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	addr := p.next
	if !reserved(p.sim.addrs.prefix, addr) {
		return addr, errAddressesExhausted
	}

	p.next = addr.Next()

	return addr, nil
}

func (p *realParts) end() error {
	p.nursery.close()

	if err := os.RemoveAll(p.dir); err != nil {
		return fmt.Errorf("remove scratch folder: %w", err)
	}

	return nil
}

// writePair writes a certificate and its key as name.crt and name.key.
func writePair(dir, name string, issuer *authority, l leaf) error {
	l.ecdsa = true
	l.validity = 365 * certValidity

	cert, err := issuer.issue(l)
	if err != nil {
		return err
	}

	certPEM, keyPEM, err := pemPair(cert)
	if err != nil {
		return err
	}

	return errors.Join(writeFile(dir, name+".crt", certPEM), writeFile(dir, name+".key", keyPEM))
}

// writeFile replaces a file at once, as a program may be watching it.
func writeFile(dir, name string, content []byte) error {
	path := filepath.Join(dir, name)

	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}

	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}

	return nil
}

// etcdAuthority is the etcd CA of the boot's configuration.
func (b *boot) etcdAuthority() (*authority, *talosx509.PEMEncodedCertificateAndKey, error) {
	pair := b.config().Cluster().Etcd().CA()

	ca, err := loadAuthority(pair)
	if err != nil {
		return nil, nil, fmt.Errorf("load etcd CA: %w", err)
	}

	return ca, pair, nil
}
