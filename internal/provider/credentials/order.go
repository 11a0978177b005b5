package credentials

import (
	"io/fs"
	"slices"
	"time"

	"github.com/talosop/terraform-provider-talosop/internal/pki"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
)

// order is what a file of credentials is made of: private state keeps it, where cluster is write-only. Nothing in it is
// secret.
type order struct {
	// Cluster is its name, Authority the fingerprint of the authority that signs, and Beside those that are trusted beside
	// it while keys are turned over.
	Cluster   string   `json:"cluster"`
	Authority string   `json:"authority"`
	Beside    []string `json:"beside,omitempty"`
	// Endpoints are the URL of the Kubernetes API, or the addresses of the Talos API.
	Endpoints []string `json:"endpoints"`
	User      string   `json:"user,omitempty"`
	Groups    []string `json:"groups,omitempty"`
	Roles     []string `json:"roles,omitempty"`
	Nodes     []string `json:"nodes,omitempty"`
	// TTL and RenewBefore say when the certificate ends, and when the next one is due.
	TTL         time.Duration `json:"ttl"`
	RenewBefore time.Duration `json:"renew_before"`
	// Ends is when the authority does: no credentials last longer.
	Ends time.Time `json:"ends"`
	// Mode is what the file had when it was written for its owner alone: a file system may have no such bits.
	Mode fs.FileMode `json:"mode,omitempty"`
}

// The lifetime of credentials in a file when the user says nothing, the longest one, and the part of it that is left
// when they are due.
const (
	defaultFileTTL = 24 * time.Hour
	longestFileTTL = 30 * 24 * time.Hour
	renewedAt      = 3
)

// clusterOf reads what an order has of a cluster. Without a bundle its secrets are not known yet.
func (o *order) clusterOf(r *tf.Reader, handle clusterhandle.AccessModel, bundle *pki.Bundle, authority string) {
	o.Cluster = r.Text(handle.Name)
	r.Unknown = r.Unknown || handle.Secrets.IsUnknown()

	if bundle != nil {
		signer := bundle.Authority(authority)
		o.Authority, o.Ends, o.Beside = signer.Fingerprint, signer.NotAfter, bundle.Beside(authority)
	}
}

// timesOf reads how long credentials last.
func (o *order) timesOf(r *tf.Reader, ttl, renewBefore tf.Duration) {
	o.TTL, o.RenewBefore = r.Duration(ttl), r.Duration(renewBefore)
	if ttl.IsNull() {
		o.TTL = defaultFileTTL
	}

	if renewBefore.IsNull() {
		o.RenewBefore = o.TTL / renewedAt
	}
}

// clusterChanges names what is another one of the cluster, which no attribute of a plan shows. was is the order of the
// file that there is.
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

// due is whether it is time for new credentials in the place of those that end then.
func (o order) due(now, end time.Time) bool {
	return now.After(end.Add(-o.RenewBefore)) && end.Before(o.Ends)
}

// same is whether a file for one order is also one for the other.
func (o order) same(was order) bool {
	return len(o.clusterChanges(was)) == 0 && o.User == was.User && slices.Equal(o.Groups, was.Groups) &&
		slices.Equal(o.Roles, was.Roles) && slices.Equal(o.Nodes, was.Nodes) && o.TTL == was.TTL &&
		o.RenewBefore == was.RenewBefore
}
