package chart

import "time"

const (
	// fresh is how long what can change is kept: an index, a tag, a package without a digest.
	fresh = time.Minute
	// largestIndex and largestPackage are beyond any real one.
	largestIndex, largestPackage int64 = 64 << 20, 64 << 20
	// mostFiles and largestUnpacked are of a package with all packages within it; mostTagPages are those of a registry.
	mostFiles       int64 = 20_000
	largestUnpacked int64 = 100 << 20
	mostTagPages          = 200
	// keptIndexes and keptFiles are the bytes of memory that a process gives to them, about.
	keptIndexes, keptFiles int64 = 32 << 20, 64 << 20
	keptArtifacts          int64 = 256
)
