package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/repo"

	"github.com/talosop/terraform-provider-talosop/internal/expansion"
)

// catalog is what is kept of an index: Bitnami's has 20 MB, most of it descriptions.
type catalog struct {
	// versions of each chart, in helm's order: newest first.
	versions map[string][]indexed
}

// indexed is a version in an index.
type indexed struct{ number, url, digest string }

// readIndex reads an index as helm does, and keeps what a choice needs. Helm's reading takes twenty times
// the size of an index in YAML, so it gets the charts one after the other.
func readIndex(ctx context.Context, body []byte) (read *catalog, err error) {
	if err := expansion.CheckYAML(body); err != nil {
		return nil, damaged("the index", err)
	}
	folder, err := os.MkdirTemp("", "talosop-index-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	// Helm reads indexes from files alone (repo.LoadIndexFile).
	name := filepath.Join(folder, "index.yaml")
	if beside, charts, ok := splitIndex(body); ok {
		read, err := readParts(ctx, name, beside, charts)
		if err == nil || ctx.Err() != nil {
			return read, err
		}
		// Something spans several parts, or is wrong: only the whole of it tells.
	}
	return readPart(name, body)
}

func readParts(ctx context.Context, name string, beside []byte, charts [][]byte) (*catalog, error) {
	read, err := readPart(name, beside)
	if err != nil {
		return nil, err
	}
	for _, part := range charts {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		one, err := readPart(name, append([]byte(entriesHead), part...))
		if err != nil {
			return nil, err
		}
		for chart := range one.versions {
			if _, ok := read.versions[chart]; ok {
				return nil, fmt.Errorf("duplicate entries for %s", chart)
			}
		}
		maps.Copy(read.versions, one.versions)
	}
	return read, nil
}

func readPart(name string, body []byte) (*catalog, error) {
	if err := os.WriteFile(name, body, 0o600); err != nil {
		return nil, err
	}
	part, err := repo.LoadIndexFile(name)
	if err != nil {
		return nil, rootCause(err)
	}
	read := &catalog{versions: make(map[string][]indexed, len(part.Entries))}
	for chart, versions := range part.Entries {
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

// entriesHead turns the part of a chart from splitIndex into an index.
const entriesHead = "apiVersion: v1\nentries:\n"

// splitIndex cuts an index in YAML, as all tools write it, into the charts and what is beside them.
// ok is false when it is unusual.
func splitIndex(body []byte) (beside []byte, charts [][]byte, ok bool) {
	inside, indent, begin, end := false, 0, 0, 0
	for line := range bytes.Lines(body) {
		text := bytes.TrimLeft(line, " ")
		depth := len(line) - len(text)
		text = bytes.TrimRight(text, " \r\n")
		at := end
		end += len(line)
		switch {
		case !inside:
			beside = append(beside, line...)
			if depth == 0 && string(text) == "entries:" && indent == 0 {
				beside = append(bytes.TrimRight(beside, " \r\n"), " {}\n"...)
				inside = true
			}
		case len(text) == 0:
		case depth == 0 && text[0] != '-' && text[0] != '#':
			charts = append(charts, body[begin:at])
			beside = append(beside, line...)
			inside = false
		case indent == 0 && (depth == 0 || text[0] == '-' || text[0] == '#' || text[0] == '\t'):
			return nil, nil, false
		case indent == 0:
			begin, indent = at, depth
		case depth < indent:
			return nil, nil, false
		case depth == indent && text[0] != '-' && text[0] != '#':
			charts = append(charts, body[begin:at])
			begin = at
		}
	}
	if inside {
		charts = append(charts, body[begin:])
	}
	return beside, charts, indent > 0
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

// choose picks the version that helm would.
func (c *catalog) choose(from Source, host string) (indexed, error) {
	versions, ok := c.versions[from.Chart]
	if !ok {
		text := fmt.Sprintf("%s has no chart %s; available charts: %s", host, from.Chart, some(c.like(from.Chart)))
		return indexed{}, newError(text, nil, ErrNoChart)
	}
	entries := make(repo.ChartVersions, 0, len(versions))
	for _, v := range versions {
		entries = append(entries, &repo.ChartVersion{Metadata: &helmchart.Metadata{Version: v.number}})
	}
	index := repo.IndexFile{Entries: map[string]repo.ChartVersions{from.Chart: entries}}
	chosen, err := index.Get(from.Chart, from.constraint())
	if err != nil {
		return indexed{}, noVersion(from, from.Chart, host, numbers(versions))
	}
	return versions[slices.Index(entries, chosen)], nil
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
