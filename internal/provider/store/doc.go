// Package store is where backups are: the attributes of buckets and folders, the stores they open, and what to do
// about an error of one.
package store
