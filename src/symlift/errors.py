"""Errors whose message names what is wrong and a remedy, in one line."""

from __future__ import annotations


class SymliftError(Exception):
    """Base class of all errors that symlift raises on purpose."""


class InputError(SymliftError, ValueError):
    """Invalid input: the message names what is wrong and how to correct it.

    On the command line it ends the program with exit code 2.
    """


class RowError(InputError):
    """A row that cannot be used.

    Parameters
    ----------
    row : int
        Its index; the message counts from 1.
    what : str
        What is wrong with it, and a remedy.
    """

    def __init__(self, row: int, what: str) -> None:
        super().__init__(f"row {row + 1:,} {what}")
        self.row, self.what = row, what


class MissingDataError(InputError):
    """Data that are not part of symlift and were not found on this machine."""


class TrainingError(SymliftError, RuntimeError):
    """Failed training: the message names the step, the loss term and the last good checkpoint."""


class FitWarning(UserWarning):
    """Warning about a fit that finished but should be inspected before it is trusted."""


class FolderWarning(UserWarning):
    """Warning about a folder whose file system cannot guarantee what symlift relies on."""


class CostWarning(UserWarning):
    """Warning, before the work begins, about a fit that may take much memory or time."""
