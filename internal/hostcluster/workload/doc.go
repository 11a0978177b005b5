// Package workload keeps Talos machines as pods of a host cluster. It makes what a machine needs there (a
// StatefulSet of one replica, volumes, Services), sees and repairs drift of it, replaces and removes it.
package workload
