// Package machineconfig makes, patches, compares and redacts the configuration of Talos machines.
//
// The configuration alone determines a Talos machine: there is no other way to change it. A configuration is a
// stream of YAML documents. The main one, without a kind ("v1alpha1"), has the sections machine and cluster and
// holds the secrets; the others have a kind and mostly a name, such as HostnameConfig or VolumeConfig/EPHEMERAL.
// The version contract, pinned when a cluster is made, decides which form a setting takes: from v1.12 host name
// and registries are separate documents.
//
// Generate turns settings, secrets and patches into the bytes for one machine. The same input gives the same
// bytes, with every build of the same machinery library. The order is: generated base, patches of the cluster, of
// the pool, of the machine. Documents of kinds this build does not know (those of a newer Talos) are merged by the
// same rules as the known ones and otherwise pass through untouched. Nothing checks them before a machine does.
//
// Patches override two generated defaults, because Talos refuses the combination. They are the stable host name
// when a patch sets one, in either form, and the disabled time synchronization of an air-gapped cluster when a
// patch configures time.
//
// Patches cannot move a machine to another cluster: the role and the secrets that identify the cluster stay those
// of the settings and the bundle. (Rotation of authorities uses acceptedCAs.)
//
// Everything here is pure. Errors in settings are FieldErrors, which name the attribute.
package machineconfig
