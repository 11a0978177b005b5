package backup

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/talosop/terraform-provider-talosop/internal/backup/store"
)

// Names of the compression and encryption of a stored snapshot, as in records and keys.
const (
	Zstd = "zstd"
	Age  = "age"
)

// The first bytes of streams. They decide how to open a stream, not its name. So a renamed file, or one made by
// hand with the command lines of zstd and age, opens too.
var (
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}       // RFC 8878, 3.1.1
	ageMagic  = []byte("age-encryption.org/v1\n")    // C2SP age, "Header"
	ageArmor  = []byte("-----BEGIN AGE ENCRYPTED F") // age -a, which this package never writes
)

var (
	// ErrLocked is a snapshot that the given keys do not open.
	ErrLocked = errors.New("wrong or missing decryption key")
	// ErrPlain is a snapshot that should be encrypted and is not: any client can have written it.
	ErrPlain = errors.New("the snapshot is not encrypted")
)

const (
	// headLimit in bytes is some hundred recipients. age reads all of them before it knows whether one is meant.
	headLimit = 256 << 10
	// mostWork is the scrypt work factor of a passphrase: age writes 2^18, which takes 256 MiB and a second; 2^20
	// takes four times that. By default, age reads up to 2^22, and the author of the archive chooses.
	mostWork = 20
)

// Sealing says what is done to a snapshot before it is stored: compressed first, because
// what is encrypted cannot be made smaller. The zero value stores it as it is. The command
// lines `age -d` and `zstd -d` undo it.
type Sealing struct {
	Compress bool
	// Recipients of age: public keys, each in the form that age-keygen prints. All of them
	// can open the snapshot.
	Recipients []string
	// Passphrase encrypts for those who know it; not together with recipients. Making a key
	// of it takes a second and 256 MiB of memory, as on age's command line.
	Passphrase string
}

// Keys opens what was sealed. Snapshots that are not encrypted need none, and with any of these they are ErrPlain.
type Keys struct {
	// Identities of age, such as AGE-SECRET-KEY-1... They prove nothing: any client can encrypt for a public key.
	Identities []string
	// Passphrase proves snapshots that cannot have a record of the cluster, since no other client can encrypt with
	// it.
	Passphrase string
	// SHA256 of the stored bytes in hexadecimal, from the user who restores; it proves them. Empty for none.
	SHA256 string
}

// given says which keys there are; empty for none.
func (k Keys) given() string {
	switch {
	case len(k.Identities) > 0 && k.Passphrase != "":
		return "identities and a passphrase"
	case len(k.Identities) > 0:
		return "identities"
	case k.Passphrase != "":
		return "a passphrase"
	default:
		return ""
	}
}

// Compression names what a snapshot is compressed with, or is empty.
func (s Sealing) Compression() string {
	if s.Compress {
		return Zstd
	}

	return ""
}

// Encryption names what a snapshot is encrypted with, or is empty.
func (s Sealing) Encryption() string {
	if len(s.Recipients) > 0 || s.Passphrase != "" {
		return Age
	}

	return ""
}

// Check says what is wrong with the recipients or the passphrase, and quotes neither.
func (s Sealing) Check() error {
	if s.Encryption() == "" {
		return nil
	}

	_, err := s.recipients()

	return err
}

// seal writes to w what is written to the result. Closing finishes the sealing and leaves w
// open; without it nothing that was written opens.
func (s Sealing) seal(w io.Writer) (io.WriteCloser, error) {
	var closers closing

	if s.Encryption() != "" {
		recipients, err := s.recipients()
		if err != nil {
			return nil, err
		}

		encrypted, err := age.Encrypt(w, recipients...)
		if err != nil {
			return nil, fmt.Errorf("encrypt the snapshot: %w", err)
		}

		w, closers = encrypted, append(closers, encrypted)
	}

	if s.Compress {
		// Two blocks at once keep up with a network; more would cost memory. Of pods the fastest level makes no more
		// bytes than the default one, in half of its time.
		compressed, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(4<<20),
			zstd.WithEncoderLevel(zstd.SpeedFastest))
		if err != nil {
			return nil, fmt.Errorf("compress the snapshot: %w", err)
		}

		w, closers = compressed, append(closers, compressed)
	}

	return struct {
		io.Writer
		io.Closer
	}{w, closers}, nil
}

// recipients are public keys as age knows them. Their errors quote no passphrase.
func (s Sealing) recipients() ([]age.Recipient, error) {
	if s.Passphrase == "" {
		recipients, err := age.ParseRecipients(strings.NewReader(strings.Join(s.Recipients, "\n")))
		if err != nil {
			// The error of age quotes the line, which is a secret when keys were mixed up.
			return nil, errors.New("invalid age recipients: expected public keys (age1...)")
		}

		return recipients, nil
	}

	if len(s.Recipients) > 0 {
		return nil, errors.New("age encrypts either for recipients or with a passphrase, not both")
	}

	recipient, err := age.NewScryptRecipient(s.Passphrase)
	if err != nil {
		return nil, fmt.Errorf("derive a key from the passphrase: %w", err)
	}

	return []age.Recipient{recipient}, nil
}

// closing closes from the last to the first: what was written to outermost first.
type closing []io.Closer

func (c closing) Close() error {
	var err error
	for i := len(c) - 1; i >= 0 && err == nil; i-- {
		err = c[i].Close()
	}

	return err
}

// unsealed reads a snapshot from stored bytes.
type unsealed struct {
	io.ReadCloser

	// secret is whether a passphrase opened it, which no other client knows.
	secret bool
}

// unseal reads the snapshot of what was stored. Its errors are ErrLocked, and ErrPlain where it should be encrypted, or
// come while reading.
func (k Keys) unseal(stored io.Reader, encrypted string) (unsealed, error) {
	r := bufio.NewReader(stored)

	// A stream shorter than the magic is a short snapshot, which its sum will tell.
	head, err := r.Peek(len(ageArmor))
	if err != nil && !errors.Is(err, io.EOF) {
		return unsealed{}, err
	}

	var secret bool

	switch {
	case bytes.HasPrefix(head, ageArmor):
		return unsealed{}, errors.New("the snapshot uses the ASCII armor of age: decrypt it with `age -d` first")
	case bytes.HasPrefix(head, ageMagic):
		opened, bySecret, err := k.decrypt(r)
		if err != nil {
			return unsealed{}, err
		}

		r, secret = bufio.NewReader(opened), bySecret
	case encrypted != "":
		return unsealed{}, fmt.Errorf("%w: it has no age header, although %s", ErrPlain, encrypted)
	}

	opened, err := decompressed(r)

	return unsealed{opened, secret}, err
}

func decompressed(r *bufio.Reader) (io.ReadCloser, error) {
	head, err := r.Peek(len(zstdMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}

	if !bytes.Equal(head, zstdMagic) {
		return io.NopCloser(r), nil
	}

	// 128 MiB is what the command line of zstd opens without being asked to.
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
	if err != nil {
		return nil, fmt.Errorf("decompress the snapshot: %w", err)
	}

	return d.IOReadCloser(), nil
}

// decrypt opens an archive of age, and returns whether the passphrase did.
func (k Keys) decrypt(r io.Reader) (_ io.Reader, secret bool, err error) {
	identities, err := k.identities(&secret)
	if err != nil {
		return nil, false, err
	}

	if len(identities) == 0 {
		return nil, false, fmt.Errorf("%w: give an identity or a passphrase", ErrLocked)
	}

	from := &head{Reader: r, left: headLimit}
	opened, err := age.Decrypt(from, identities...)
	from.passed = true

	var none *age.NoIdentityMatchError
	if errors.As(err, &none) {
		return nil, false, fmt.Errorf("%w: %w", ErrLocked, err)
	} else if err != nil {
		return nil, false, fmt.Errorf("decrypt the snapshot: %w", err)
	}

	return opened, secret, nil
}

// identities are the keys as age knows them. Their errors quote no key.
func (k Keys) identities(secret *bool) ([]age.Identity, error) {
	var identities []age.Identity

	if len(k.Identities) > 0 {
		parsed, err := age.ParseIdentities(strings.NewReader(strings.Join(k.Identities, "\n")))
		if err != nil {
			// As above: it may quote a secret.
			return nil, errors.New("invalid age identities: expected private keys (AGE-SECRET-KEY-1...)")
		}

		identities = parsed
	}

	if k.Passphrase != "" {
		identity, err := age.NewScryptIdentity(k.Passphrase)
		if err != nil {
			return nil, fmt.Errorf("derive a key from the passphrase: %w", err)
		}

		identity.SetMaxWorkFactor(mostWork)
		identities = append(identities, passphrase{identity, secret})
	}

	return identities, nil
}

// passphrase is an identity of age that records when it opened an archive.
type passphrase struct {
	*age.ScryptIdentity

	opened *bool
}

// Unwrap implements age.Identity.
func (p passphrase) Unwrap(stanzas []*age.Stanza) ([]byte, error) {
	for _, s := range stanzas {
		if s.Type != "scrypt" || len(s.Args) != 2 {
			continue
		}

		if work, err := strconv.Atoi(s.Args[1]); err == nil && work > mostWork {
			return nil, fmt.Errorf("%w: the passphrase has work factor 2^%d, the maximum is 2^%d; decrypt it with "+
				"`age -d`, and encrypt it again", store.ErrTooLarge, work, mostWork)
		}
	}

	key, err := p.ScryptIdentity.Unwrap(stanzas)
	*p.opened = err == nil

	return key, err
}

// head reads what is before the encrypted bytes, and ends where that has no end.
type head struct {
	io.Reader

	left   int
	passed bool
}

func (h *head) Read(p []byte) (int, error) {
	if h.passed {
		return h.Reader.Read(p)
	}

	if h.left <= 0 {
		return 0, fmt.Errorf("%w: the age header is larger than %d bytes", store.ErrTooLarge, headLimit)
	}

	n, err := h.Reader.Read(p[:min(len(p), h.left)])
	h.left -= n

	return n, err
}
