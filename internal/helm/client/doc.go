// Package client makes what Helm's actions need of a cluster, bound to a context.
//
// Helm's actions take no context, or return at its end and go on behind (action.Install,
// RunWithContext: performInstallCtx leaves its goroutine to itself, Helm 3.21). A [Session] turns
// that around: the actions are called with plain Run, and every request that they make ends with
// the context of the session, every wait is the session's own, and only the records of releases
// may still be written for a short grace, so that an interrupted run is recorded as failed. When
// Run has returned, nothing goes on. What no context ends is the rendering itself, which may look up
// names of hosts where a release allows that (Helm 3.21, engine.Engine.EnableDNS); the resolver's own
// timeout bounds it.
//
// Sessions share [Slots]: how many of them render and build at a time, and what their clusters
// said of the kinds that they serve.
package client
