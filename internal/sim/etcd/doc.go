// Package etcd has the etcd members of simulated control planes: a model of membership,
// leadership and quorum in this process ([Model]), and real etcd processes ([Real]). Both
// answer with the errors of etcd, and know their machines as a [Host].
package etcd
