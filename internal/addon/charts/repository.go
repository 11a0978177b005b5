package charts

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/repo"
)

// indexKey is an index, as one access sees it.
type indexKey struct {
	access
	repository string
}

// catalog is what is kept of an index: Bitnami's has 20 MB, most of it descriptions.
type catalog struct {
	// versions of each chart, in helm's order: newest first.
	versions map[string][]indexed
}

// indexed is a version in an index.
type indexed struct{ number, url, digest string }

// entry is a version that was chosen.
type entry struct {
	pin Pin
	// at is where the package is; origin is the repository, to which the credentials belong.
	at, origin *url.URL
}

// entry chooses a version in the index. known says that the index was read before.
func (s *Store) entry(ctx context.Context, from Source) (chosen entry, known bool, err error) {
	origin, err := url.Parse(from.Repository)
	if err != nil {
		return entry{}, false, trouble("the URL of the repository cannot be read", nil, ErrNoChart)
	}
	index, known, err := s.index(ctx, from.access(), origin)
	if err != nil {
		return entry{}, known, err
	}
	found, err := index.choose(from, shown(origin))
	if err != nil {
		return entry{}, known, err
	}
	if found.url == "" {
		text := fmt.Sprintf("the index of %s has no URL for %s %s", shown(origin), from.Chart, found.number)
		return entry{}, known, trouble(text, nil, ErrDamaged)
	}
	resolved, err := repo.ResolveReferenceURL(origin.String(), found.url)
	if err != nil {
		text := fmt.Sprintf("the index of %s has an invalid URL for %s %s", shown(origin), from.Chart, found.number)
		return entry{}, known, trouble(text, nil, ErrDamaged)
	}
	at, err := url.Parse(resolved)
	if err != nil {
		return entry{}, known, trouble("the index of "+shown(origin)+" has an invalid URL for "+from.Chart, nil, ErrDamaged)
	}
	pin := Pin{Name: from.Chart, Version: found.number, Digest: normalDigest(found.digest)}
	return entry{pin: pin, at: at, origin: origin}, known, nil
}

func (s *Store) fromRepository(ctx context.Context, from Source) (parcel, error) {
	for {
		chosen, known, err := s.entry(ctx, from)
		if err != nil {
			return parcel{}, err
		}
		if strings.HasPrefix(chosen.at.String(), ociScheme) {
			return s.fromRegistryOf(ctx, from, chosen)
		}
		archive, err := s.file(ctx, from.access(), chosen.at, chosen.origin, chosen.pin.Digest)
		outdated := errors.Is(err, errMismatch) || errors.Is(err, errGone)
		if outdated && known {
			// The package may be newer than the index that was kept.
			s.indexes.forget(indexKey{access: from.access(), repository: chosen.origin.String()})
			continue
		}
		if errors.Is(err, errGone) {
			text := fmt.Sprintf("the index of %s has %s %s, but its package is not there", shown(chosen.origin), chosen.pin.Name, chosen.pin.Version)
			return parcel{}, trouble(text, err, ErrNoVersion)
		}
		if err != nil {
			return parcel{}, err
		}
		return s.parcelAt(from.access(), chosen.at, chosen.origin, archive, chosen.pin), nil
	}
}

// fromURL brings a package that no index speaks of.
func (s *Store) fromURL(ctx context.Context, from Source) (parcel, error) {
	at, err := url.Parse(from.Chart)
	if err != nil {
		return parcel{}, trouble("the URL of the chart cannot be read", nil, ErrNoChart)
	}
	archive, err := s.file(ctx, from.access(), at, at, "")
	if errors.Is(err, errGone) {
		return parcel{}, trouble("there is no package", err, ErrNoChart)
	}
	if err != nil {
		return parcel{}, err
	}
	return s.parcelAt(from.access(), at, at, archive, Pin{}), nil
}

func (s *Store) parcelAt(a access, at, origin *url.URL, archive []byte, pin Pin) parcel {
	return parcel{
		from: shown(at), name: path.Base(at.Path), archive: archive, pin: pin,
		provenance: func(ctx context.Context) ([]byte, error) {
			beside := *at
			beside.Path += ".prov"
			beside.RawPath = ""
			return s.file(ctx, a, &beside, origin, "")
		},
	}
}

// index reads the index of a repository, once a minute for all who ask.
func (s *Store) index(ctx context.Context, a access, origin *url.URL) (*catalog, bool, error) {
	key := indexKey{access: a, repository: origin.String()}
	return s.indexes.get(ctx, key, fresh, func(ctx context.Context) (*catalog, int64, error) {
		resolved, err := repo.ResolveReferenceURL(origin.String(), "index.yaml")
		if err != nil {
			return nil, 0, trouble("the URL of the repository cannot be read", nil, ErrNoChart)
		}
		at, err := url.Parse(resolved)
		if err != nil {
			return nil, 0, trouble("the URL of the repository cannot be read", nil, ErrNoChart)
		}
		body, err := s.get(ctx, a, at, origin, s.indexLimit)
		if errors.Is(err, errGone) {
			return nil, 0, trouble(shown(origin)+" is no chart repository: it has no index.yaml", err, ErrNoChart)
		}
		if err != nil {
			return nil, 0, err
		}
		read, err := readIndex(body)
		if err != nil {
			return nil, 0, trouble(fmt.Sprintf("%s is no index of a repository (%s)", shown(at), contentKind(body)), err, ErrDamaged)
		}
		return read, read.size(), nil
	})
}

// readIndex reads an index as helm does, and keeps what a choice needs.
func readIndex(body []byte) (read *catalog, err error) {
	folder, err := os.MkdirTemp("", "talosop-index-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	// Helm reads indexes from files alone (repo.LoadIndexFile).
	name := filepath.Join(folder, "index.yaml")
	if err := os.WriteFile(name, body, 0o600); err != nil {
		return nil, err
	}
	whole, err := repo.LoadIndexFile(name)
	if err != nil {
		return nil, rootCause(err)
	}
	read = &catalog{versions: make(map[string][]indexed, len(whole.Entries))}
	for chart, versions := range whole.Entries {
		few := make([]indexed, 0, len(versions))
		for _, v := range versions {
			one := indexed{number: v.Version, digest: v.Digest}
			if len(v.URLs) > 0 {
				one.url = v.URLs[0] // Helm takes the first too (downloader/chart_downloader.go).
			}
			few = append(few, one)
		}
		read.versions[chart] = few
	}
	return read, nil
}

// rootCause leaves out what Helm says about the temporary file.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// size is about the memory that a catalog takes.
func (c *catalog) size() int64 {
	var sum int64
	for chart, versions := range c.versions {
		sum += int64(len(chart)) + 64
		for _, v := range versions {
			sum += int64(len(v.number)+len(v.url)+len(v.digest)) + 64
		}
	}
	return sum
}

// choose takes the version that helm would.
func (c *catalog) choose(from Source, host string) (indexed, error) {
	versions, ok := c.versions[from.Chart]
	if !ok {
		text := fmt.Sprintf("%s has no chart %s; it has: %s", host, from.Chart, some(c.like(from.Chart)))
		return indexed{}, trouble(text, nil, ErrNoChart)
	}
	entries := make(repo.ChartVersions, 0, len(versions))
	for _, v := range versions {
		entries = append(entries, &repo.ChartVersion{Metadata: &chart.Metadata{Version: v.number}})
	}
	index := repo.IndexFile{Entries: map[string]repo.ChartVersions{from.Chart: entries}}
	chosen, err := index.Get(from.Chart, from.wish())
	if err != nil {
		return indexed{}, noVersion(from, from.Chart, host, numbers(versions))
	}
	return versions[slices.Index(entries, chosen)], nil
}

// noVersion names the versions that there are, newest first.
func noVersion(from Source, chart, host string, have []string) error {
	text := fmt.Sprintf("the chart %s of %s has no %s; newest are: %s", chart, host, from.wanted(), some(have))
	return trouble(text, nil, ErrNoVersion)
}

func numbers(versions []indexed) []string {
	all := make([]string, 0, len(versions))
	for _, v := range versions {
		all = append(all, v.number)
	}
	return all
}

// like lists the charts, those with a similar name first.
func (c *catalog) like(name string) []string {
	similar, others := []string{}, []string{}
	for chart := range c.versions {
		if strings.Contains(chart, name) || strings.Contains(name, chart) {
			similar = append(similar, chart)
		} else {
			others = append(others, chart)
		}
	}
	slices.Sort(similar)
	slices.Sort(others)
	return append(similar, others...)
}
