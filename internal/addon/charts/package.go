package charts

import (
	"bytes"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
)

// Package is a chart that was fetched. It is safe for concurrent use.
type Package struct {
	Pin
	AppVersion string
	// KubeVersion is the range of Kubernetes versions that the chart is for, empty for any.
	KubeVersion string
	// Deprecated is what the chart says of itself.
	Deprecated bool

	// archive is the package, nil for a folder.
	archive []byte
	// files are those of a folder, with the dependencies that were fetched for it.
	files []*loader.BufferedFile
}

// Chart reads the chart anew: Helm's actions change the one that they get.
func (p *Package) Chart() (*chart.Chart, error) {
	if p.archive == nil {
		return loader.LoadFiles(p.files)
	}
	return loader.LoadArchive(bytes.NewReader(p.archive))
}
