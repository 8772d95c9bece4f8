"""The placement engine: which column belongs to which grid point.

Handles empty points, duplicated columns, unrelated columns, and several columns per point.
"""
