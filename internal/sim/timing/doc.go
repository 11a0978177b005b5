// Package timing has pauses that end with a context, bells, and values computed once.
package timing
