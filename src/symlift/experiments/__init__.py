"""The paper's rows as data: a registry of experiments and a runner that measures any solver on them."""

from symlift.experiments.registry import EXPERIMENTS, Experiment, get_experiment
from symlift.experiments.runner import run_experiment

__all__ = ["EXPERIMENTS", "Experiment", "get_experiment", "run_experiment"]
