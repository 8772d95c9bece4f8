"""Errors that name the thing and the remedy in one line."""

from __future__ import annotations


class SymliftError(Exception):
    """Base class of everything that symlift raises on purpose."""


class InputError(SymliftError, ValueError):
    """Bad input: the message names what is wrong and what to do about it (exit code 2 on the command line)."""


class MissingDataError(InputError):
    """Data that are not part of symlift and were not found where they may be put."""


class TrainingError(SymliftError, RuntimeError):
    """A training run that broke: the message names the step, the term and the last good checkpoint."""


class FitWarning(UserWarning):
    """A fit that ended, but that its user should look at before trusting it."""
