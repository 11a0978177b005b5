package charts

// Package is a chart that was fetched. It is safe for concurrent use.
type Package struct {
	Pin
	AppVersion string
	// KubeVersion is the range of Kubernetes versions that the chart is for, empty for any.
	KubeVersion string

	// archive is the package, nil for a folder.
	archive []byte
	// folder is the path of a chart that is no package.
	folder string
}
