"""Ways to begin behind a dense mixing, one file each."""
