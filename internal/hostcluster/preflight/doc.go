// Package preflight asks a host cluster, before anything is made, for what would keep machines from being made there:
// rights, classes, networks, foreign objects, and by dry runs quotas, limits and policies.
package preflight
