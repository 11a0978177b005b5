// Package sim is a simulated Talos Linux site: any number of machines in one
// process, each with a loopback address of its own, speaking the real protocols to
// real clients (the machinery client, talosctl, kubectl).
//
// It has state, not canned answers. A machine waits in maintenance mode with a
// self-signed certificate, takes a configuration through the checks of the real
// server (the machinery's own loader and validation), installs, reboots into a new
// boot id, serves mutual TLS from the certificate authority of that configuration,
// joins etcd as a learner, is promoted, registers a Kubernetes node, and goes back
// to maintenance when it is reset. Stages are derived from the published events, as
// Talos derives them, so that a client which follows events and one which reads
// MachineStatus see the same story. A machine that is upgraded runs what the image's
// reference says (Simulator.SetImage says otherwise), can roll back until it was
// ready once, and rolls back when its new system fails to boot.
//
// What it is for: tests and the demonstration. Time is a parameter (Delays), every
// call is recorded (Simulator.Calls), every call can be made to fail, streams of bytes in
// their middle (Fault, Options.OnCall), etcd can be backed up and recovered with keys that
// tests put into it (Machine.PutEtcdKeys), images can be missing or broken
// (Simulator.SetImage), etcd can raise alarms (Machine.RaiseEtcdAlarm), components of
// Kubernetes can crash in a version (Machine.BreakComponent), the cluster's endpoint can go
// away (Simulator.DropEndpoint), and machines can be switched off, wiped, moved to another
// address, made to panic, or told never to come back.
//
// What it is not:
//   - no operating system: disks are names and sizes, there are no containers, logs or kernel; services
//     are state machines, images are names without content (every tag that SetImage
//     does not know exists);
//   - no discovery service, KubeSpan or SideroLink: machines of one cluster id that have discovery on, or the same
//     endpoint of the Kubernetes API, simply know each other;
//   - no machines without Kubernetes, which Talos 1.14 has (and whose Kubeconfig is FailedPrecondition): their
//     configurations are refused;
//   - no scheduler or controllers: Kubernetes is an API with nodes, static pods and
//     bootstrap manifests in it. DaemonSets and Deployments get the status that would
//     follow from the nodes and the images, and no pods. With Options.Assets there are
//     real kube-apiservers on real etcd members, one process for each minor version that
//     machines have, still without controllers, unless a test brings its own
//     (Simulator.HandOverWorkloads, Simulator.StartGuest);
//   - no performance model. Delays are minimums, not distributions.
//
// Where things are: this package has the site, its machines and clusters, the sequences of a
// boot, and the calls that clients make. What runs on a machine has packages: machined what
// its parts share (disk, META, configuration, resources, events, services, stage), apid the
// API server, etcdservice the service that bootstraps, joins and leaves etcd, kubelet the node
// and the static pods, controllers what follows from the configuration, images what it pulls.
// Package etcd has the members of etcd, kube the API servers of Kubernetes, workloads the status
// of DaemonSets and Deployments, fault the record of calls and what makes them fail, objects what
// the stand-ins store, addresses those of the site, world the lock that guards the model.
//
// Facts about Talos are those of 1.13 (server code of v1.13.6) unless a comment names
// another version. When a real machine and the simulator disagree, the simulator is wrong.
package sim
