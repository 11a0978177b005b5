// Package client provides what Helm's actions need of a cluster, and ends their calls with a context.
//
// Helm's actions take no context, or return at its end and continue in the background (action.Install,
// RunWithContext: performInstallCtx leaves its goroutine running, Helm 3.21). A [Session] changes that. It calls
// the actions with plain Run. Every request of theirs ends with the context of the session, and every wait is the
// session's own. Only the records of releases may still be written for a short grace period, so that an
// interrupted run is recorded as failed. When Run has returned, nothing runs any more. The exception is the
// rendering, which no context ends. It may look up host names where a release allows that (Helm 3.21,
// engine.Engine.EnableDNS); the resolver's own timeout bounds it.
//
// Sessions share [Slots]: how many of them render and build at a time, and the kinds that their clusters serve.
package client
