package chart

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"

	"helm.sh/helm/v3/pkg/repo"
)

// indexKey is an index, as one access sees it.
type indexKey struct {
	access
	repository string
}

// entry is a version that was chosen.
type entry struct {
	pin Pin
	// at is where the package is; origin is the repository, to which the credentials belong.
	at, origin *url.URL
	// index that it is in, and under which key that is kept.
	index *catalog
	key   indexKey
}

// entry chooses a version in the index. known says that the index was read before.
func (s *Store) entry(ctx context.Context, from Source) (chosen entry, known bool, err error) {
	origin, err := url.Parse(from.Repository)
	if err != nil {
		return entry{}, false, newError("invalid repository URL", nil, ErrNoChart)
	}
	key := indexKey{access: from.access(), repository: origin.String()}
	index, known, err := s.index(ctx, key, origin)
	if err != nil {
		return entry{}, known, err
	}
	found, err := index.choose(from, displayURL(origin))
	if err != nil {
		return entry{}, known, err
	}
	if found.url == "" {
		text := fmt.Sprintf("the index of %s has no URL for %s %s", displayURL(origin), from.Chart, found.number)
		return entry{}, known, newError(text, nil, ErrDamaged)
	}
	resolved, err := repo.ResolveReferenceURL(origin.String(), found.url)
	if err != nil {
		text := fmt.Sprintf("the index of %s has an invalid URL for %s %s", displayURL(origin), from.Chart, found.number)
		return entry{}, known, newError(text, nil, ErrDamaged)
	}
	at, err := url.Parse(resolved)
	if err != nil {
		return entry{}, known, newError("the index of "+displayURL(origin)+" has an invalid URL for "+from.Chart, nil,
			ErrDamaged)
	}
	pin := Pin{Name: from.Chart, Version: found.number, Digest: normalDigest(found.digest)}
	return entry{pin: pin, at: at, origin: origin, index: index, key: key}, known, nil
}

func (s *Store) fromRepository(ctx context.Context, from Source) (download, error) {
	chosen, known, err := s.entry(ctx, from)
	if err != nil {
		return download{}, err
	}
	got, err := s.fromEntry(ctx, from, chosen)
	if known && (errors.Is(err, errMismatch) || errors.Is(err, errGone)) {
		// The package may be newer than the index that was kept.
		s.indexes.forget(chosen.key, func(kept *catalog) bool { return kept == chosen.index })
		if chosen, _, err = s.entry(ctx, from); err != nil {
			return download{}, err
		}
		got, err = s.fromEntry(ctx, from, chosen)
	}
	if errors.Is(err, errGone) {
		text := fmt.Sprintf("the index of %s lists %s %s, but its package was not found", displayURL(chosen.origin),
			chosen.pin.Name, chosen.pin.Version)
		return download{}, newError(text, err, ErrNoVersion)
	}
	return got, err
}

func (s *Store) fromEntry(ctx context.Context, from Source, chosen entry) (download, error) {
	if strings.HasPrefix(chosen.at.String(), ociScheme) {
		return s.fromRegistryOf(ctx, from, chosen)
	}
	archive, err := s.file(ctx, from.access(), chosen.at, chosen.origin, chosen.pin.Digest)
	if err != nil {
		return download{}, err
	}
	return s.downloadAt(from.access(), chosen.at, chosen.origin, archive, chosen.pin), nil
}

// fromURL downloads a package that is in no index.
func (s *Store) fromURL(ctx context.Context, from Source) (download, error) {
	at, err := url.Parse(from.Chart)
	if err != nil {
		return download{}, newError("invalid chart URL", nil, ErrNoChart)
	}
	archive, err := s.file(ctx, from.access(), at, at, "")
	if errors.Is(err, errGone) {
		return download{}, newError("package not found", err, ErrNoChart)
	}
	if err != nil {
		return download{}, err
	}
	return s.downloadAt(from.access(), at, at, archive, Pin{}), nil
}

func (s *Store) downloadAt(a access, at, origin *url.URL, archive []byte, pin Pin) download {
	return download{
		from: displayURL(at), name: path.Base(at.Path), archive: archive, pin: pin,
		provenance: func(ctx context.Context) ([]byte, error) {
			beside := *at
			beside.Path += ".prov"
			beside.RawPath = ""
			return s.file(ctx, a, &beside, origin, "")
		},
	}
}

// index reads the index of a repository, once a minute for all who ask.
func (s *Store) index(ctx context.Context, key indexKey, origin *url.URL) (*catalog, bool, error) {
	return s.indexes.get(ctx, key, fresh, func(ctx context.Context) (*catalog, int64, error) {
		resolved, err := repo.ResolveReferenceURL(origin.String(), "index.yaml")
		if err != nil {
			return nil, 0, newError("invalid repository URL", nil, ErrNoChart)
		}
		at, err := url.Parse(resolved)
		if err != nil {
			return nil, 0, newError("invalid repository URL", nil, ErrNoChart)
		}
		body, err := s.get(ctx, key.access, at, origin, s.indexLimit)
		if errors.Is(err, errGone) {
			return nil, 0, newError(displayURL(origin)+" is not a chart repository: it has no index.yaml", err, ErrNoChart)
		}
		if err != nil {
			return nil, 0, err
		}
		read, err := s.parse(ctx, body)
		if ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		if err != nil {
			return nil, 0, newError(fmt.Sprintf("%s is not a repository index (%s)", displayURL(at), contentKind(body)), err,
				ErrDamaged)
		}
		return read, read.size(), nil
	})
}

// parse reads an index while no other is read: that takes much memory for a moment.
func (s *Store) parse(ctx context.Context, body []byte) (*catalog, error) {
	select {
	case s.parsing <- struct{}{}:
		defer func() { <-s.parsing }()
		return readIndex(ctx, body)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
