package backup

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
)

// Names of what was done to a stored snapshot, as records and keys give them.
const (
	Zstd = "zstd"
	Age  = "age"
)

// How streams begin. They are opened by these and not by their names, so that a file that
// was renamed, or made by hand with the command lines of zstd and age, opens too.
var (
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}       // RFC 8878, 3.1.1
	ageMagic  = []byte("age-encryption.org/v1\n")    // C2SP age, "Header"
	ageArmor  = []byte("-----BEGIN AGE ENCRYPTED F") // age -a, which this package never writes
)

// ErrLocked is a snapshot that the given keys do not open.
var ErrLocked = errors.New("the snapshot is encrypted for other keys")

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

// Keys opens what was sealed. Snapshots that are not encrypted need none.
type Keys struct {
	// Identities of age, such as AGE-SECRET-KEY-1...
	Identities []string
	Passphrase string
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
		// Two blocks at once keep up with a network; more would cost memory.
		compressed, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(4<<20))
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
			return nil, errors.New("the recipients are not those of age (age1...)")
		}

		return recipients, nil
	}

	if len(s.Recipients) > 0 {
		return nil, errors.New("age encrypts for recipients or with a passphrase, not both (age, ScryptRecipient)")
	}

	recipient, err := age.NewScryptRecipient(s.Passphrase)
	if err != nil {
		return nil, fmt.Errorf("make a key of the passphrase: %w", err)
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

// unseal reads the snapshot of what was stored. Its errors are ErrLocked, or come while
// reading.
func (k Keys) unseal(stored io.Reader) (io.ReadCloser, error) {
	r := bufio.NewReader(stored)

	// A stream shorter than the magic is a short snapshot, which its sum will tell.
	head, err := r.Peek(len(ageArmor))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}

	if bytes.HasPrefix(head, ageArmor) {
		return nil, errors.New("the snapshot is encrypted in armor: run `age -d` on it first")
	}

	if bytes.HasPrefix(head, ageMagic) {
		opened, err := k.decrypt(r)
		if err != nil {
			return nil, err
		}

		r = bufio.NewReader(opened)
	}

	head, err = r.Peek(len(zstdMagic))
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

func (k Keys) decrypt(r io.Reader) (io.Reader, error) {
	var identities []age.Identity

	if len(k.Identities) > 0 {
		parsed, err := age.ParseIdentities(strings.NewReader(strings.Join(k.Identities, "\n")))
		if err != nil {
			// As above: it may quote a secret.
			return nil, errors.New("the identities are not those of age (AGE-SECRET-KEY-1...)")
		}

		identities = parsed
	}

	if k.Passphrase != "" {
		identity, err := age.NewScryptIdentity(k.Passphrase)
		if err != nil {
			return nil, fmt.Errorf("make a key of the passphrase: %w", err)
		}

		identities = append(identities, identity)
	}

	if len(identities) == 0 {
		return nil, fmt.Errorf("%w: it needs an identity or a passphrase", ErrLocked)
	}

	opened, err := age.Decrypt(r, identities...)

	var none *age.NoIdentityMatchError
	if errors.As(err, &none) {
		return nil, fmt.Errorf("%w: %w", ErrLocked, err)
	} else if err != nil {
		return nil, fmt.Errorf("decrypt the snapshot: %w", err)
	}

	return opened, nil
}
