// Package e2e holds the acceptance scenarios: a real CLI applies the files of examples/quickstart to machines that
// speak the real protocols. There are three kinds of machines.
//
// With TALOSOP_E2E_CONTROL_PLANES in the environment (CONTRIBUTING.md lists the variables) the scenarios run on
// physical or virtual machines of the developer. The machines must wait in maintenance mode; if one does not, the
// scenarios send nothing to any machine. Every scenario resets the machines at its end. Machines that cannot reset
// run only the first scenario and keep its cluster.
//
// Without the variable the same scenarios run on simulated machines as part of the acceptance tests. This keeps them
// working until a developer brings machines.
//
// With TALOSOP_E2E_HOST_KUBECONFIG in the environment, a separate scenario makes a cluster of examples/container in
// pods of that host cluster. tools/hostbed makes a host cluster.
//
// The scenarios check results around the provider, not through it: stages and etcd members with the Talos client,
// nodes with the Kubernetes client.
package e2e
