"""Value types and mathematics: grids, lags, the translation group and the lifted model.

Numpy only, no files, no optimiser.
"""
