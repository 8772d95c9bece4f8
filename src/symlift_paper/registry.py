"""Experiments as data: where the vectors come from, what is run on them, what the paper reports.

The paper's rows are in ``paper.yaml``; a file of the same form adds rows of your own.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from symlift.errors import InputError
from symlift_paper.bounded_yaml import MAX_BYTES, read_yaml
from symlift_paper.experiment import Experiment, PaperValues, Printed, Training

__all__ = [
    "AUTHORS",
    "EXPERIMENTS",
    "Experiment",
    "PaperValues",
    "Printed",
    "Training",
    "experiments_with",
    "get_experiment",
    "read_experiments",
]

#: characters of what is wrong with an experiment
_LONGEST = 500


def read_experiments(text: str, source: str) -> dict[str, Experiment]:
    """Read experiments from YAML: a list of mappings with the fields of `Experiment`.

    >>> rows = '''
    ... - name: gsn31-ring
    ...   title: shot noise on a ring of 31
    ...   source: gsn
    ...   shape: [31]
    ...   periodic: true
    ... '''
    >>> read_experiments(rows, "rows.yaml")["gsn31-ring"].observe(seed=0, n=10).X.shape
    (10, 31)
    """
    try:
        rows = read_yaml(text)
    except ValueError as error:
        raise InputError(
            f"{source} cannot be used ({error}): give a list of experiments in YAML"
        ) from None
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise InputError(
            f"{source} must be a list of experiments, each with name, title, source and shape"
        )
    experiments: dict[str, Experiment] = {}
    for row in rows:
        try:
            experiment = Experiment.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])[:80] or "as a whole"
            message = " ".join(first["msg"].removeprefix("Value error, ").split())
            if len(message) > _LONGEST:  # it repeats what stands there; its end says what would do
                message = f"{message[: _LONGEST // 2]} … {message[-_LONGEST // 2 :]}"
            raise InputError(
                f"{source}, experiment {str(row.get('name'))[:64]!r}, {where}: {message}"
            ) from None
        if experiment.name in experiments:
            raise InputError(f"{source} has two experiments called {experiment.name!r}: rename one")
        experiments[experiment.name] = experiment
    return experiments


def _packaged(name: str) -> dict[str, Experiment]:
    return read_experiments((files(__package__) / name).read_text(encoding="utf-8"), name)


#: the paper's rows, and one of our own
EXPERIMENTS = _packaged("paper.yaml")
#: row of the paper → what the authors ran its baselines on, and how
AUTHORS = {name.removesuffix("-authors"): row for name, row in _packaged("authors.yaml").items()}


def get_experiment(name: str, file: Path | None = None) -> Experiment:
    """Return an experiment by its name: one of the paper's, or one of a YAML file.

    Parameters
    ----------
    name : str
        Its name, as ``symlift experiment list`` prints it.
    file : pathlib.Path, optional
        A YAML file with experiments of your own.

    Returns
    -------
    Experiment
        The experiment.

    Raises
    ------
    InputError
        If there is no experiment of that name.

    Examples
    --------
    >>> get_experiment("gsn15-fft").shape
    (15,)
    """
    known = experiments_with(file)
    if name not in known:
        raise InputError(
            f"experiment {name!r} is unknown: `symlift experiment list` shows them all"
        )
    return known[name]


def experiments_with(file: Path | None = None) -> dict[str, Experiment]:
    """Return the paper's experiments together with those of a YAML file.

    Parameters
    ----------
    file : pathlib.Path, optional
        A YAML file with experiments of your own; their names must differ from the paper's.

    Returns
    -------
    dict of str to Experiment
        All experiments by name.

    Raises
    ------
    InputError
        If the file cannot be read, or a name is taken.

    Examples
    --------
    >>> "gsn15-fft" in experiments_with()
    True
    """
    if file is None:
        return EXPERIMENTS
    try:
        own = read_experiments(_text(file), str(file))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{file} cannot be read ({error}): give a YAML file of experiments"
        ) from None
    for experiment in own.values():
        _check_baselines(experiment, file)
    taken = sorted(set(own) & set(EXPERIMENTS))
    if taken:
        raise InputError(
            f"{file}: {taken[0]!r} is one of the paper's experiments: choose another name"
        )
    return EXPERIMENTS | own


def _text(file: Path) -> str:
    """Read a file up to one byte beyond the limit, which `read_yaml` refuses."""
    with file.open("rb") as handle:
        return handle.read(MAX_BYTES + 1).decode("utf-8")


def _check_baselines(experiment: Experiment, file: Path) -> None:
    """Refuse baselines that do not exist, and settings that a baseline does not take."""
    from symlift_paper.baselines import get_baseline

    for name, search in experiment.baselines.items():
        baseline = get_baseline(name)
        taken = inspect.signature(baseline.fit).parameters
        wide = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in taken.values())
        for setting in search:
            if setting not in list(taken)[3:] and not wide:
                raise InputError(
                    f"{file}, experiment {experiment.name!r}: {name} has no setting"
                    f" {setting[:40]!r}: leave it out"
                )
