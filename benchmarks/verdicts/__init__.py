"""Data sets with and without a translation symmetry, in families, for calibrating and judging the
diagnosis.
"""
