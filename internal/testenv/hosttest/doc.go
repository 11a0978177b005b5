// Package hosttest is a host cluster for tests of container mode: real Kubernetes (package kubetest), whose nodes
// run Talos pods as simulated machines (package sim). Their kubelets are stand-ins.
//
// [New] starts a host for one test in three to four seconds; [Shared] is one for all tests of a package:
//
//	func TestMain(m *testing.M) { hosttest.Run(m) }
//
//	func TestEnsure(t *testing.T) {
//		host := hosttest.Shared(t)
//		namespace := host.Namespace(t)
//		h, err := hostcluster.Open(hostcluster.Options{Kubeconfig: …host.Kubeconfig()…, Reach: host.Reach})
//		…
//		host.Machine(namespace, "dev-cp-0-0").AwaitStage(…)
//	}
//
// # What runs
//
// A pod labeled app.kubernetes.io/name=talos with a container called talos is one machine of [Host.Sim]. The tag
// of its image is its release. A tag that is no release cannot be pulled, and Sim().SetImage sets other faults of
// an image. The machine continues from pod to pod as long as the pod's name stays, and its data is in its volumes.
// It has the configuration as long as the volume at /system/state is the same, and etcd's data as long as that at
// /var is. A claim is the same as long as its UID is; an emptyDir is deleted with its pod. Talos does not start in
// a pod that lacks what it needs (the container ends with status 1).
//
// Every pod gets another address. A pod at 10.a.b.c is the machine at 127.a.b.c, because the addresses of pods
// must not be loopback ones. [Host.Reach] translates them, and also node ports and load balancers, by the
// Services' EndpointSlices. A container that exits is restarted with another container id in the same pod.
// Readiness is the result of the pod's TCP probe, which runs fifty times as often as configured. All other pods
// just run and are ready.
//
// Claims of [Class], the default, are bound at once to volumes that all nodes can use; those of [LocalClass] when
// their pod has a node, to volumes of that node. Services of type LoadBalancer get an address, unless they have
// kubetest.HangAnnotation or a class.
//
// Nodes forward ports as kubelets do, behind the kube-apiserver. [Host.LoseNode] and [Host.DeleteNode] simulate
// the loss of nodes; tests that call them need a separate host.
package hosttest
