// Package machineconfig makes, patches, compares and redacts the configuration of Talos machines.
//
// A Talos machine is what its configuration says, all of it: there is no other way in. A configuration is a
// stream of YAML documents. The main one, without a kind ("v1alpha1"), has the sections machine and
// cluster and holds the secrets; the others have a kind and mostly a name, such as HostnameConfig or
// VolumeConfig/EPHEMERAL. Which form a setting takes is decided by the version contract, pinned when a
// cluster is made: from v1.12 host name and registries are documents of their own.
//
// Generate turns settings, secrets and patches into the bytes for one machine, the same bytes for the same
// input, however often and by whichever build of the same machinery library. The order is: generated base,
// patches of the cluster, of the pool, of the machine. Documents of kinds this build does not know (those of
// a newer Talos) are merged by the same rules as the known ones and otherwise pass through untouched, but
// nothing checks them before a machine does.
//
// Two generated defaults give way to patches, because Talos refuses the combination: the stable host name
// when a patch sets one, in either form, and the disabled time synchronisation of an air-gapped
// cluster when a patch configures time.
//
// Patches cannot make a machine a member of another cluster: the role and the secrets that say who belongs to
// whom stay those of the settings and the bundle. (Rotation of authorities goes by acceptedCAs.)
//
// Everything here is pure. Mistakes in settings are FieldErrors, which name the attribute.
package machineconfig
