// Package e2e holds the acceptance scenarios: the provider that a user would install, under a real CLI, with the files
// of examples/quickstart, on machines that speak the real protocols. There are three kinds of machines.
//
// With TALOSOP_E2E_CONTROL_PLANES in the environment (CONTRIBUTING.md lists the variables) the scenarios run on
// machines of the developer, physical or virtual. They have to wait in maintenance mode; when one does not, nothing is
// sent to any. Every scenario resets them at its end, so the next one finds them as the first did; machines that cannot
// reset run the first scenario and keep its cluster.
//
// Without it the same scenarios run on simulated machines as part of the acceptance tests, so that they work on the day
// when somebody brings machines.
//
// With TALOSOP_E2E_HOST_KUBECONFIG in the environment a scenario of its own makes a cluster of examples/container in
// pods of that host cluster, which tools/hostbed makes where there is none.
//
// What a scenario expects is looked up around the provider, not through it: stages and etcd members by Talos's own
// client, nodes by Kubernetes' own.
package e2e
