// Package objects applies, compares and removes objects of any kind that an API serves. It asks the API where a
// kind is served.
package objects
