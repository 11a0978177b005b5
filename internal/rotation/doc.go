// Package rotation decides which keys a machine gets next during a key rotation.
//
// A certificate authority is replaced in three moves: every machine accepts the new one, every machine issues with
// it, every machine drops the old one. Whether a move of one machine is safe depends only on the keys of all other
// machines of the cluster, including those of other resources. No step number is stored, so an interrupted rotation
// continues from what is observed. Keys without an accepted part (Talos 1.10 to 1.13: the aggregation layer's
// authority, the service account key, the tokens) go to control planes first.
//
// Keys are compared by identifiers that reveal nothing about them. The package is pure.
package rotation
