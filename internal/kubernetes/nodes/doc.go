// Package nodes observes, cordons, drains and deletes the nodes of a cluster. It leaves the annotation
// talosop.dev/cordoned on nodes that it cordoned, which are those that it may uncordon. A drain is kubectl's
// selection of pods in a loop that says what blocks them.
package nodes
