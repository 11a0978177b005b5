package sim

import (
	clusterapi "github.com/siderolabs/talos/pkg/machinery/api/cluster"

	"github.com/talosop/terraform-provider-talosop/internal/sim/diagnostics"
)

// api implements the services; it belongs to one boot.
type api struct {
	*diagnostics.Server
	clusterapi.UnimplementedClusterServiceServer

	b *boot
}
