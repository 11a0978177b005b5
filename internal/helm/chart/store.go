package chart

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"time"
)

// Options of a store. The zero value is what the provider uses.
type Options struct {
	// RegistryConfig is the file with helm's credentials of OCI registries; empty is the one that helm
	// itself would take. Docker's is read beside it.
	RegistryConfig string
	// Now is the clock, time.Now when nil.
	Now func() time.Time
	// Stall is how long a server may send nothing, 30 seconds when 0.
	Stall time.Duration
}

// Store resolves and fetches charts, each once for all callers. It caches what it fetched in memory, within
// bounds, and nothing on disk. It is safe for concurrent use.
type Store struct {
	options Options
	// pause before a request is repeated; it doubles.
	pause                    time.Duration
	indexLimit, packageLimit int64

	// parsing holds a token while an index is parsed.
	parsing chan struct{}

	indexes   *cache[indexKey, *catalog]
	artifacts *cache[artifactKey, *artifact]
	files     *cache[fileKey, []byte]
}

// NewStore makes a store that knows nothing yet.
func NewStore(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Stall = cmp.Or(o.Stall, 30*time.Second)
	return &Store{
		options: o, pause: 500 * time.Millisecond,
		indexLimit: largestIndex, packageLimit: largestPackage,
		parsing:   make(chan struct{}, 1),
		indexes:   newCache[indexKey, *catalog](keptIndexes, o.Now),
		artifacts: newCache[artifactKey, *artifact](keptArtifacts, o.Now),
		files:     newCache[fileKey, []byte](keptFiles, o.Now),
	}
}

// Resolve says what a source stands for now, as of the last minute. Of a repository it reads the
// index, of a registry the manifest; a path and the URL of a package tell nothing without their
// content, which is read, and kept for [Store.Fetch]. It changes nothing and may be repeated.
// The errors are those of this package, or the context's.
func (s *Store) Resolve(ctx context.Context, from Source) (Pin, error) {
	pin, err := s.resolve(ctx, from)
	return pin, redact(err, from)
}

// Fetch brings the chart of a source here, as a package that can be installed: it is the content that
// was expected, its version is the one that was asked for, its dependencies are there.
// It changes nothing and may be repeated. The errors are those of [Store.Resolve].
func (s *Store) Fetch(ctx context.Context, from Source) (*Package, error) {
	p, err := s.fetch(ctx, from)
	return p, redact(err, from)
}

func (s *Store) resolve(ctx context.Context, from Source) (Pin, error) {
	at, err := from.kind()
	if err != nil {
		return Pin{}, err
	}
	switch at {
	case inRepository:
		entry, _, err := s.entry(ctx, from)
		return entry.pin, err
	case inRegistry:
		found, err := s.artifact(ctx, from)
		if err != nil {
			return Pin{}, err
		}
		return found.pin, nil
	default:
		// Whether the signature is right matters when there is something to install.
		from.Verify = false
		p, err := s.fetch(ctx, from)
		if err != nil {
			return Pin{}, err
		}
		return p.Pin, nil
	}
}

func (s *Store) fetch(ctx context.Context, from Source) (*Package, error) {
	at, err := from.kind()
	if err != nil {
		return nil, err
	}
	if at == onDisk {
		if folder, err := isFolder(from); err != nil {
			return nil, err
		} else if folder {
			return s.folder(ctx, from)
		}
	}
	got, err := s.download(ctx, from)
	if err != nil {
		return nil, err
	}
	if from.Verify {
		if err := got.verify(ctx, from.Keyring); err != nil {
			return nil, err
		}
	}
	return got.open(from)
}

// download fetches the package of any chart.
func (s *Store) download(ctx context.Context, from Source) (download, error) {
	at, err := from.kind()
	if err != nil {
		return download{}, err
	}
	switch at {
	case inRepository:
		return s.fromRepository(ctx, from)
	case inRegistry:
		return s.fromRegistry(ctx, from)
	case atURL:
		return s.fromURL(ctx, from)
	default:
		return s.fromFile(ctx, from)
	}
}

// fileKey is a file of a server. With a digest its content is certain.
type fileKey struct {
	access
	at, digest string
}

// file reads a package, or what belongs to one, once for all who ask.
func (s *Store) file(ctx context.Context, a access, at, origin *url.URL, digest string) ([]byte, error) {
	age := fresh
	if digest != "" {
		age = 0
	}
	key := fileKey{access: a, at: at.String(), digest: digest}
	body, _, err := s.files.get(ctx, key, age, func(ctx context.Context) ([]byte, int64, error) {
		body, err := s.get(ctx, a, at, origin, s.packageLimit)
		if err != nil {
			return nil, 0, err
		}
		if have := digestOf(body); digest != "" && have != digest {
			text := fmt.Sprintf("%s has digest %s, expected %s", displayURL(at), have, digest)
			return nil, 0, newError(text, nil, ErrDamaged, errMismatch)
		}
		return body, int64(len(body)), nil
	})
	return body, err
}
