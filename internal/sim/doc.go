// Package sim is a simulated Talos Linux site: any number of machines in one process, each with its own loopback
// address. They speak the real protocols to real clients (the machinery client, talosctl, kubectl).
//
// It has state, not canned answers. A machine waits in maintenance mode with a self-signed certificate and checks
// a configuration as the real server does (the machinery's own loader and validation). It installs, reboots into a
// new boot id, and serves mutual TLS from the certificate authority of that configuration. It joins etcd as a
// learner, is promoted, registers a Kubernetes node, and returns to maintenance mode after a reset. Stages are
// derived from the published events, as in Talos, so that clients of events and clients of MachineStatus see the
// same. An upgraded machine runs the version in the image's reference (Simulator.SetImage overrides it), can roll
// back until it was ready once, and rolls back when its new system fails to boot.
//
// It is for tests and the demonstration:
//
//   - time is a parameter (Delays), and every call is recorded (Simulator.Calls);
//   - every call can be made to fail, streams of bytes in their middle (Fault, Options.OnCall);
//   - etcd can be backed up and recovered with keys of a test (Machine.PutEtcdKeys), and can raise alarms
//     (Machine.RaiseEtcdAlarm);
//   - images can be missing or broken (Simulator.SetImage), and components of Kubernetes can crash in a version
//     (Machine.BreakComponent);
//   - the cluster's endpoint can disappear (Simulator.DropEndpoint);
//   - machines can be switched off, wiped, moved to another address, made to panic, or kept down for ever.
//
// What it is not:
//   - no operating system: disks are names and sizes, there are no containers, logs or kernel; services are state
//     machines, images are names without content (every tag that SetImage does not know exists);
//   - no discovery service, KubeSpan or SideroLink: machines of one cluster id that have discovery on, or the same
//     endpoint of the Kubernetes API, simply know each other;
//   - no machines without Kubernetes, which Talos 1.14 has (and whose Kubeconfig is FailedPrecondition): their
//     configurations are refused;
//   - no scheduler or controllers: Kubernetes is an API with nodes, static pods and bootstrap manifests in it.
//     DaemonSets and Deployments get the status that would follow from the nodes and the images, and no pods. With
//     Options.Assets there are real kube-apiservers on real etcd members, one process for each minor version that
//     machines have. They have no controllers, unless a test brings its own (Simulator.HandOverWorkloads,
//     Simulator.StartGuest);
//   - no performance model. Delays are minimums, not distributions.
//
// This package has the site, its machines and clusters, the sequences of a boot, and the calls of clients. The
// parts of a machine have packages:
//
//   - machined: what the others share (disk, META, configuration, resources, events, services, stage)
//   - apid: the API server
//   - etcdservice: the service that bootstraps, joins and leaves etcd
//   - kubelet: the node and the static pods
//   - controllers: what follows from the configuration
//   - images: the pulled images
//
// Other packages are for the site:
//
//   - etcd: the members of etcd
//   - kube: the API servers of Kubernetes
//   - workloads: the status of DaemonSets and Deployments
//   - fault: the record of calls, and their faults
//   - objects: the objects of the stand-ins
//   - addresses: the addresses of the site
//   - world: the lock that guards the model
//
// Facts about Talos are those of 1.13 (server code of v1.13.6) unless a comment names another version. When a real
// machine and the simulator disagree, the simulator is wrong.
package sim
