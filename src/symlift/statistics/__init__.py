"""Numbers of a lifted batch: stationarity of moments, entropies, and the held-out objective."""
