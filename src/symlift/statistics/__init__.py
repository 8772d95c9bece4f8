"""Numbers of a lifted batch: stationarity of its moments, its entropies, and the one that chooses among candidates."""
