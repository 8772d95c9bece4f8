"""Is each column where its map says? Positions as given against what the data say, for probes and
montages alike.
"""

from symlift.maps.verdict import MapFault, MapVerdict

__all__ = ["MapFault", "MapVerdict"]
