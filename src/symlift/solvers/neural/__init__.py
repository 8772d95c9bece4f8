"""The paper's training: a lifting network against trained estimators of stationarity, resolution
and infomax (extra ``train``).
"""
