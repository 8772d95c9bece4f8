"""What makes a lifted batch a good one: stationarity and resolution, one function of the batch each."""

from symlift.objective.entropy import joint_entropy, marginal_entropies, resolution
from symlift.objective.selection import distortion, score
from symlift.objective.stationarity import LagClasses, stationarity

__all__ = ["LagClasses", "distortion", "joint_entropy", "marginal_entropies", "resolution", "score", "stationarity"]
