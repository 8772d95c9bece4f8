"""Is each column where its map says? Positions as given against what the data say, for probes and
montages alike.
"""
