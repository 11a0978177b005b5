// Package rotation decides which keys a machine carries next while the keys of a cluster are turned over.
//
// A certificate authority is exchanged in three moves: every machine accepts the new one, every machine issues with
// it, every machine drops the old one. A move of one machine is only safe by what the other machines of the cluster
// carry, those of other resources included, and nothing else decides it: no step number is kept anywhere, so that a
// rotation that was interrupted goes on from what is observed. What has no accepted part (Talos 1.10 to 1.13: the
// aggregation layer's authority, the service account key, the tokens) goes to control planes first.
//
// Keys are compared by identifiers that reveal nothing of them. The package is pure.
package rotation
