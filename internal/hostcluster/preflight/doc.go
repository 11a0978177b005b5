// Package preflight checks a host cluster before machines are made there: rights, classes, networks and foreign
// objects. Dry runs check quotas, limits and policies.
package preflight
