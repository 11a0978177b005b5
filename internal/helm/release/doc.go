// Package release keeps Helm releases on a cluster what they are wanted to be.
//
// What is to be done with a release is decided by [Decide] from what is wanted and from Helm's
// own history of it, without any I/O; [Cluster] observes and acts. Charts come from package
// charts, values from package values; what Helm's actions need of a cluster is made by package
// session, which binds all of it to a context, so that nothing goes on in the background when
// an operation ends.
package release
