// Package world guards the model that the machines of a site share.
package world
