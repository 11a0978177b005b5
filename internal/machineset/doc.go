// Package machineset has what a resource with machines wants, what its state recorded, and how they differ. It
// decides which machine is which, which ones leave and join, what is refused, and what a plan reports. It also
// renders the machine configurations. A Set is what is wanted. A Record is the recorded state, and a PriorState is
// that record compared with a wanted set. A Forecast is made of these alone.
//
// It does no I/O and knows no type of Terraform: internal/provider/machines converts between models and its values.
// How machines get from one state to the other is decided in internal/cluster.
package machineset
