package credentials

import (
	"io/fs"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// order is what a file of credentials is made from. Private state keeps it when cluster is write-only. It contains
// no secret.
type order struct {
	// Cluster is its name, Authority the fingerprint of the authority that signs, and Beside those that are also
	// trusted during a rotation.
	Cluster   string   `json:"cluster"`
	Authority string   `json:"authority"`
	Beside    []string `json:"beside,omitempty"`
	// Endpoints are the URL of the Kubernetes API, or the addresses of the Talos API.
	Endpoints []string `json:"endpoints"`
	User      string   `json:"user,omitempty"`
	Groups    []string `json:"groups,omitempty"`
	Roles     []string `json:"roles,omitempty"`
	Nodes     []string `json:"nodes,omitempty"`
	// TTL and RenewBefore say when the certificate expires, and when the next one is due.
	TTL         time.Duration `json:"ttl"`
	RenewBefore time.Duration `json:"renew_before"`
	// Ends is when the authority expires: no credentials last longer.
	Ends time.Time `json:"ends"`
	// Mode is that of the file when it was written for its owner alone: a file system may have no such permissions.
	Mode fs.FileMode `json:"mode,omitempty"`
}

// The default and maximum lifetime of credentials in a file, and the remaining part of it at which they are due.
const (
	defaultFileTTL = 24 * time.Hour
	longestFileTTL = 30 * 24 * time.Hour
	renewedAt      = 3
)

// clusterOf reads the cluster of an order. Without a bundle its secrets are unknown.
func (o *order) clusterOf(r *tf.Reader, handle clusterhandle.AccessModel, bundle *pki.Bundle, authority string) {
	o.Cluster = r.Text(handle.Name)
	r.Unknown = r.Unknown || handle.Secrets.IsUnknown()

	if bundle != nil {
		signer := bundle.Authority(authority)
		o.Authority, o.Ends, o.Beside = signer.Fingerprint, signer.NotAfter, bundle.Beside(authority)
	}
}

// timesOf reads the lifetime of credentials.
func (o *order) timesOf(r *tf.Reader, ttl, renewBefore tf.Duration) {
	o.TTL, o.RenewBefore = r.Duration(ttl), r.Duration(renewBefore)
	if ttl.IsNull() {
		o.TTL = defaultFileTTL
	}

	if renewBefore.IsNull() {
		o.RenewBefore = o.TTL / renewedAt
	}
}

// clusterChanges names the changes of the cluster that no attribute of a plan shows. was is the order of the
// existing file.
func (o order) clusterChanges(was order) []string {
	var changed []string

	for _, part := range []struct {
		name    string
		differs bool
	}{
		{"the secrets", o.Authority != was.Authority || !slices.Equal(o.Beside, was.Beside)},
		{"the name", o.Cluster != was.Cluster},
		{"the addresses", !slices.Equal(o.Endpoints, was.Endpoints)},
	} {
		if part.differs {
			changed = append(changed, part.name)
		}
	}

	return changed
}

// due reports whether it is time for new credentials in place of those that expire at end.
func (o order) due(now, end time.Time) bool {
	return now.After(end.Add(-o.RenewBefore)) && end.Before(o.Ends)
}

// same reports whether a file for one order also fits the other.
func (o order) same(was order) bool {
	return len(o.clusterChanges(was)) == 0 && o.User == was.User && slices.Equal(o.Groups, was.Groups) &&
		slices.Equal(o.Roles, was.Roles) && slices.Equal(o.Nodes, was.Nodes) && o.TTL == was.TTL &&
		o.RenewBefore == was.RenewBefore
}
