package chart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

const (
	chartsFolder = "charts/"
	fileScheme   = "file://"
)

// complete adds the dependencies that a chart in a folder declares and does not have, and takes those of
// other folders as they are now. It is what helm dependency update does, with two differences: what is
// there already in a version that will do is not fetched again, and nothing is written anywhere.
func (s *Store) complete(
	ctx context.Context, from Source, read *helmchart.Chart, files []*loader.BufferedFile, left *room,
) (*helmchart.Chart, []*loader.BufferedFile, error) {
	declared := read.Metadata.Dependencies
	if len(declared) == 0 {
		return read, files, nil
	}
	have, err := subcharts(files)
	if err != nil {
		return nil, nil, newError(from.Chart+" has a broken dependency", err, ErrDamaged)
	}
	for group, sub := range have {
		if replaced(sub.Metadata, declared) {
			delete(have, group)
			files = slices.DeleteFunc(files, func(f *loader.BufferedFile) bool { return groupOf(f.Name) == group })
		}
	}
	for _, one := range declared {
		if slices.ContainsFunc(values(have), func(c *helmchart.Chart) bool { return meets(c.Metadata, one) }) {
			continue
		}
		added, sub, err := s.dependency(ctx, from, one, left)
		if err != nil {
			return nil, nil, fmt.Errorf("dependency %s of %s: %w", one.Name, from.Chart, err)
		}
		have[groupOf(added[0].Name)] = sub
		files = append(files, added...)
	}
	whole, err := loader.LoadFiles(files)
	if err != nil {
		return nil, nil, newError(from.Chart+" is not a chart that Helm can load with its dependencies", err, ErrDamaged)
	}
	return whole, files, nil
}

func values(of map[string]*helmchart.Chart) []*helmchart.Chart {
	all := make([]*helmchart.Chart, 0, len(of))
	for _, c := range of {
		all = append(all, c)
	}
	return all
}

// groupOf is the part of a file name that identifies its dependency: an archive or a folder below charts; empty
// for other files.
func groupOf(name string) string {
	rest, ok := strings.CutPrefix(name, chartsFolder)
	if !ok || strings.HasSuffix(name, ".prov") || strings.HasPrefix(rest, "_") || strings.HasPrefix(rest, ".") {
		return ""
	}
	group, _, _ := strings.Cut(rest, "/")
	return group
}

// subcharts reads the dependencies one by one, as helm's loader does (chart/loader/load.go, LoadFiles).
func subcharts(files []*loader.BufferedFile) (map[string]*helmchart.Chart, error) {
	grouped := map[string][]*loader.BufferedFile{}
	for _, file := range files {
		if group := groupOf(file.Name); group != "" {
			inside := strings.TrimPrefix(file.Name, chartsFolder+group)
			grouped[group] = append(grouped[group], &loader.BufferedFile{Name: strings.TrimPrefix(inside, "/"), Data: file.Data})
		}
	}
	read := make(map[string]*helmchart.Chart, len(grouped))
	for group, files := range grouped {
		var sub *helmchart.Chart
		var err error
		if path.Ext(group) == ".tgz" {
			sub, err = loader.LoadArchive(bytes.NewReader(files[0].Data))
		} else {
			sub, err = loader.LoadFiles(files)
		}
		if err != nil {
			return nil, fmt.Errorf("%s%s: %w", chartsFolder, group, err)
		}
		read[group] = sub
	}
	return read, nil
}

// meets reports whether a chart is the declared one, in a version that will do.
func meets(have *helmchart.Metadata, declared *helmchart.Dependency) bool {
	return have.Name == declared.Name && satisfies(have.Version, declared.Version)
}

// replaced reports whether a chart is replaced by a fetched one: it is declared, but in other versions, or it
// comes from another folder.
func replaced(have *helmchart.Metadata, declared []*helmchart.Dependency) bool {
	named := false
	for _, one := range declared {
		if one.Name != have.Name {
			continue
		}
		if meets(have, one) && !strings.HasPrefix(one.Repository, fileScheme) {
			return false
		}
		named = named || one.Repository != ""
	}
	return named
}

// dependency returns one dependency, as files below charts.
func (s *Store) dependency(
	ctx context.Context, from Source, one *helmchart.Dependency, left *room,
) ([]*loader.BufferedFile, *helmchart.Chart, error) {
	if one.Repository == "" {
		return nil, nil, newError("it has no repository, and charts/ does not contain version "+one.Version, nil, ErrDamaged)
	}
	if folder, ok := strings.CutPrefix(one.Repository, fileScheme); ok {
		return fromSibling(from, one, folder, left)
	}
	source := from.elsewhere()
	source.Chart, source.Repository, source.Version = one.Name, one.Repository, one.Version
	source.Devel, source.Verify, source.UpdateDependencies = false, false, false
	got, err := s.download(ctx, source)
	if err != nil {
		return nil, nil, from.notPassedOn(err)
	}
	sub, err := loadArchive(got.from, got.archive, left)
	if errors.Is(err, ErrTooLarge) {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, newError(got.from+" is not a chart package", err, ErrDamaged)
	}
	if err := checkExpected(got, sub.Metadata); err != nil {
		return nil, nil, err
	}
	name := fmt.Sprintf("%s%s-%s.tgz", chartsFolder, sub.Name(), sub.Metadata.Version)
	return []*loader.BufferedFile{{Name: name, Data: got.archive}}, sub, nil
}

// fromSibling takes a dependency from another folder; a relative one is as seen from the chart.
func fromSibling(
	from Source, one *helmchart.Dependency, folder string, left *room,
) ([]*loader.BufferedFile, *helmchart.Chart, error) {
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(from.Chart, filepath.FromSlash(folder))
	}
	sub, files, err := readFolder(folder, left)
	if err != nil {
		return nil, nil, err
	}
	if !meets(sub.Metadata, one) {
		text := fmt.Sprintf("%s is chart %s %s, not %s %s", folder, sub.Name(), sub.Metadata.Version, one.Name,
			one.Version)
		return nil, nil, newError(text, nil, ErrNoVersion)
	}
	group := chartsFolder + sub.Name() + "-" + sub.Metadata.Version + "/"
	for _, file := range files {
		file.Name = group + file.Name
	}
	return files, sub, nil
}
