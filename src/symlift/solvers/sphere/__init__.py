"""A sphere behind a dense mixing: runs of equal variance, orientations from third moments."""
