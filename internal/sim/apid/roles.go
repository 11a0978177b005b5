package apid

import (
	"context"
	"crypto/x509"

	"github.com/siderolabs/talos/pkg/machinery/role"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/talosop/terraform-provider-talosop/internal/sim/fault"
)

// ErrNotAuthorized is the answer to a peer whose roles do not allow a call.
var ErrNotAuthorized = status.Error(codes.PermissionDenied, "not authorized")

var (
	adminOnly      = role.MakeSet(role.Admin)
	operators      = role.MakeSet(role.Admin, role.Operator)
	readers        = role.MakeSet(role.Admin, role.Operator, role.Reader)
	adminOrReader  = role.MakeSet(role.Admin, role.Reader)
	etcdReaders    = role.MakeSet(role.Admin, role.Operator, role.Reader, role.EtcdBackup)
	etcdBackups    = role.MakeSet(role.Admin, role.Operator, role.EtcdBackup)
	metaWriters    = role.MakeSet(role.Admin, role.MetaWriter)
	imageVerifiers = role.MakeSet(role.Admin, role.Operator, role.Reader, role.ImageVerifier)
)

// rules are machined's (Talos 1.13.6); a method that is not listed is for os:admin.
// ApplyConfiguration and BlockDeviceWipe admit readers because their handlers check
// for maintenance mode themselves.
var rules = func() map[string]role.Set {
	table := map[string]role.Set{
		"/cluster.ClusterService/HealthCheck":                   readers,
		"/inspect.InspectService/ControllerRuntimeDependencies": readers,
		"/machine.ImageService/List":                            readers,
		"/machine.ImageService/Pull":                            operators,
		"/machine.ImageService/Verify":                          imageVerifiers,
		"/storage.StorageService/Disks":                         readers,
		"/storage.StorageService/BlockDeviceWipe":               adminOrReader,
		"/time.TimeService/Time":                                readers,
		"/time.TimeService/TimeCheck":                           readers,
		"/cosi.resource.State/Get":                              readers,
		"/cosi.resource.State/List":                             readers,
		"/cosi.resource.State/Watch":                            readers,
	}

	for set, methods := range map[*role.Set][]string{
		&adminOrReader: {"ApplyConfiguration"},
		&operators: {
			"EtcdAlarmDisarm", "EtcdDefragment", "ImagePull", "PacketCapture", "Reboot", "Restart",
			"ServiceRestart", "ServiceStart", "ServiceStop", "Shutdown",
		},
		&readers: {
			"CPUInfo", "CPUFreqStats", "Containers", "DiskStats", "DiskUsage", "Dmesg", "Events", "Hostname",
			"ImageList", "List", "LoadAvg", "Logs", "LogsContainers", "Memory", "Mounts", "NetworkDeviceStats",
			"Netstat", "Processes", "ServiceList", "Stats", "SystemStat", "Version",
		},
		&etcdReaders: {"EtcdAlarmList", "EtcdMemberList", "EtcdStatus"},
		&etcdBackups: {"EtcdSnapshot"},
		&metaWriters: {"MetaWrite", "MetaDelete"},
	} {
		for _, method := range methods {
			table["/machine.MachineService/"+method] = *set
		}
	}

	return table
}()

// authorize applies the rule of a method to the roles of the peer.
func authorize(ctx context.Context, fullMethod string) error {
	allowed, ok := rules[fullMethod]
	if !ok {
		allowed = adminOnly
	}

	if RolesOf(ctx).IncludesAny(allowed) {
		return nil
	}

	return ErrNotAuthorized
}

type rolesKey struct{}

// RolesOf are the roles of the peer that made a call.
func RolesOf(ctx context.Context) role.Set {
	roles, ok := ctx.Value(rolesKey{}).(role.Set)
	if !ok {
		return role.Zero
	}

	return roles
}

// roleMetadata carries the roles of a forwarded call.
const roleMetadata = "talos-role"

// withRoles puts the peer's roles into the context: os:reader for anyone in
// maintenance mode, the certificate's organizations otherwise. A peer with
// os:impersonator (another apid) may state the roles of whom it speaks for.
func withRoles(ctx context.Context, p fault.Personality) context.Context {
	if p == fault.Maintenance {
		return context.WithValue(ctx, rolesKey{}, role.MakeSet(role.Reader))
	}

	roles := role.Zero

	if client := clientOf(ctx); client != nil {
		roles, _ = role.Parse(client.Subject.Organization)
	}

	if roles.Includes(role.Impersonator) {
		if md, ok := metadata.FromIncomingContext(ctx); ok && len(md[roleMetadata]) > 0 {
			roles, _ = role.Parse(md[roleMetadata])
		}
	}

	return context.WithValue(ctx, rolesKey{}, roles)
}

// clientOf is the certificate that the peer of a call showed; nil for one that showed none.
func clientOf(ctx context.Context) *x509.Certificate {
	client, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}

	info, ok := client.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.PeerCertificates) == 0 {
		return nil
	}

	return info.State.PeerCertificates[0]
}
