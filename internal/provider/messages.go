package provider

import (
	"github.com/talosop/terraform-provider-talosop/internal/finding"
	"github.com/talosop/terraform-provider-talosop/internal/machineset"
	"github.com/talosop/terraform-provider-talosop/internal/provider/addon"
	"github.com/talosop/terraform-provider-talosop/internal/provider/backupschedule"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterhandle"
	"github.com/talosop/terraform-provider-talosop/internal/provider/clusterimport"
	"github.com/talosop/terraform-provider-talosop/internal/provider/credentials"
	"github.com/talosop/terraform-provider-talosop/internal/provider/etcdbackup"
	"github.com/talosop/terraform-provider-talosop/internal/provider/health"
	"github.com/talosop/terraform-provider-talosop/internal/provider/healthchecks"
	"github.com/talosop/terraform-provider-talosop/internal/provider/hooks"
	"github.com/talosop/terraform-provider-talosop/internal/provider/images"
	"github.com/talosop/terraform-provider-talosop/internal/provider/ledger"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machineinfo"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines/configdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines/discovery"
	"github.com/talosop/terraform-provider-talosop/internal/provider/machines/unmanagedworkers"
	"github.com/talosop/terraform-provider-talosop/internal/provider/officialstate"
	"github.com/talosop/terraform-provider-talosop/internal/provider/operations"
	"github.com/talosop/terraform-provider-talosop/internal/provider/providerdata"
	"github.com/talosop/terraform-provider-talosop/internal/provider/restore"
	"github.com/talosop/terraform-provider-talosop/internal/provider/rollout"
	"github.com/talosop/terraform-provider-talosop/internal/provider/secrets"
	"github.com/talosop/terraform-provider-talosop/internal/provider/settings"
	"github.com/talosop/terraform-provider-talosop/internal/provider/store"
	"github.com/talosop/terraform-provider-talosop/internal/provider/tf"
	"github.com/talosop/terraform-provider-talosop/internal/provider/timetable"
	"github.com/talosop/terraform-provider-talosop/internal/provider/unmanaged"
)

// Messages are the catalogs of errors and warnings of the provider, in the order of the reference page.
func Messages() []*finding.Catalog {
	return []*finding.Catalog{
		finding.Messages,
		machineset.Messages,
		tf.Messages,
		messages,
		providerdata.Messages,
		machines.Messages,
		ledger.Messages,
		secrets.Messages,
		settings.Messages,
		rollout.Messages,
		timetable.Messages,
		healthchecks.Messages,
		hooks.Messages,
		clusterhandle.Messages,
		unmanaged.Messages,
		clusterimport.Messages,
		officialstate.Messages,
		images.Messages,
		configdata.Messages,
		unmanagedworkers.Messages,
		discovery.Messages,
		machineinfo.Messages,
		health.Messages,
		operations.Messages,
		store.Messages,
		etcdbackup.Messages,
		backupschedule.Messages,
		restore.Messages,
		credentials.Messages,
		addon.Messages,
	}
}
