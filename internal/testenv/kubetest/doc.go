// Package kubetest is the environment for tests of addons: real Kubernetes, chart repositories and registries, the
// real helm, and a proxy that cuts or counts requests.
//
// # Clusters
//
// [NewCluster] starts a cluster of one simulated Talos machine (package sim) with a real etcd,
// kube-apiserver, kube-controller-manager and kube-scheduler, in three to four seconds. [Shared] is one for all
// tests of a package, which saves their starts:
//
//	func TestMain(m *testing.M) { kubetest.Run(m) }
//
//	func TestInstall(t *testing.T) {
//		cluster := kubetest.Shared(t)
//		namespace := cluster.Namespace(t)
//		client := cluster.Client(t, kubernetes.Options{}) // talosop's own
//		…
//	}
//
// [Attach] does the same for the cluster that a test makes in its own simulated site, such as by
// applying a talosop_cluster, and may be called before that.
//
// There is no kubelet: annotations of pods set the status that this package reports ([FailAnnotation] and its
// neighbors). A pod without any is ready at once, or succeeds if it can complete. Logs are served as kubelets do, so
// that all clients can read them; claims are bound; Services of type LoadBalancer wait for ever. Probes, images and
// commands are ignored. Nodes that are not ready take only pods that tolerate it, until a pod with [CNIAnnotation]
// runs on them.
//
// Everything ends with its test, and all programs die with the test's process.
//
// # Charts
//
// [Chart] packages files, and a [Sample] is a ready-made chart:
//
//	kubetest.Simple.Package("1.0.0")
//
//	files := kubetest.WithCRD.Files("2.0.0")
//	files["crds/widgets.yaml"] = …
//	kubetest.Chart("crd", "2.0.0", files)
//
// [NewRepository] and [NewRegistry] serve packages, count requests, and can fail:
//
//	charts := kubetest.NewRepository(t, kubetest.ServerOptions{Username: "reader", Password: "secret"})
//	charts.Add(t, kubetest.Simple.Package("1.0.0"))
//	charts.Fail(kubetest.First(1, nil, kubetest.Cut))
//	… charts.URL, charts.CA
//	if charts.Requests("/simple-1.0.0.tgz") > 1 { … }
//
//	oci := kubetest.NewRegistry(t, kubetest.ServerOptions{})
//	oci.Push(t, kubetest.Simple.Package("1.0.0"))
//	… oci.URL + "/simple", oci.CA
//
// [Helm] runs the real helm, to read a release as users do or to act as another owner of it:
//
//	helm := kubetest.Helm(t, cluster)
//	stdout, stderr, err := helm("upgrade", "web", "simple", "--repo", charts.URL, "--ca-file", charts.CAFile)
//
// # Faults
//
// A [Proxy] stands between the client under test and the Kubernetes API. To show that a process may be killed
// at any time, let it die at each request in turn:
//
//	for n := 1; ; n++ {
//		proxy := cluster.Proxy(t)
//		dead := proxy.Die(n, kubetest.Call.Changes, true)
//		ctx, cancel := context.WithCancel(t.Context())
//		go func() { <-dead; cancel() }()
//		err := apply(ctx, proxy.Client(t, kubernetes.Options{}))
//		if err == nil { break } // it ended before the n-th change
//		… apply again with cluster.Client, which has to succeed
//	}
package kubetest
