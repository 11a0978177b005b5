// Package machineset is what a resource with machines wants, what its state recorded, and how they differ. It decides
// which machine is which, who leaves and who joins, what of it is refused, and what a plan says of it; and it renders
// the configurations that machines get. A Set is what is wanted. A Record is what state says, and a PriorState that
// record compared with a wanted set. A Forecast is made of these alone.
//
// It asks nobody and knows no type of Terraform: internal/provider/machines makes its values of models, and models of
// what it decides. How machines get from one state to the other is decided in internal/cluster.
package machineset
