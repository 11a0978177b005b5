package release

import "helm.sh/helm/v3/pkg/chartutil"

// LibraryKubernetes is the version of Kubernetes that Helm renders for by itself, for [RenderOffline] where
// nobody knows that of the cluster (Helm 3.21, chartutil/capabilities.go).
func LibraryKubernetes() string { return chartutil.DefaultCapabilities.KubeVersion.Version }
