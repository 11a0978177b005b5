// Package store is where backups are: the attributes of buckets and folders, the stores that they open, and the
// advice about their errors.
package store
