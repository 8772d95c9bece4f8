"""The placement engine: which column sits where on the grid, with holes, duplicates, strangers and several columns at a point."""
