package health

import "github.com/talosop/terraform-provider-talosop/internal/finding"

// Messages are about the data sources that observe a cluster.
var Messages = finding.NewCatalog("Cluster health and etcd members")

var (
	invalidWindow = Messages.Invalid("invalid_expires_within",
		"Found {{quote .value}}.",
		"Allowed: a duration from 0s to 43800h, such as 2160h.",
		"Set how long before its expiry a certificate counts as due.")

	clusterNotRead = Messages.Error("cluster_not_observed",
		"Unable to read cluster {{.cluster}}",
		"talosop could not prepare connections to the cluster: {{.cause}}.",
		"Correct `cluster` of the data source, or its host cluster.")

	partsSilent = Messages.Warning("parts_silent",
		"Parts of cluster {{.cluster}} do not answer",
		"talosop got no answer from:{{bullets .silent}}",
		"`{{.attribute}}` has what is known. Nothing was changed.")
)
