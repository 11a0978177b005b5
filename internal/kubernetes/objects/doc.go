// Package objects applies, compares and removes objects of any kind that an API serves, as maps: where it does
// is asked of it and remembered.
package objects
