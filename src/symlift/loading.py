"""Read back a fit, of one domain or of several."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from symlift._parts_file import (
    PARTS_FILE,
    part_folder,
    read_maps,
    read_parts,
)
from symlift.core.domain import Scattered, given_domain
from symlift.core.grid import Grid
from symlift.core.sphere import Sphere
from symlift.errors import InputError
from symlift.estimator import LatentDomain
from symlift.several import LatentDomains
from symlift.solvers.contract import Solution
from symlift.storage.sample_file import SamplesError, read_samples

if TYPE_CHECKING:
    pass

__all__ = ["load", "load_domain"]


def load(folder: str | os.PathLike[str]) -> LatentDomain | LatentDomains:
    """Load a fitted `LatentDomain` or `LatentDomains`.

    Parameters
    ----------
    folder : str or path-like
        What `LatentDomain.save`, `LatentDomains.save` or ``symlift recover`` has written.

    Returns
    -------
    LatentDomain or LatentDomains
        The estimator, as it was saved.

    Examples
    --------
    >>> import tempfile
    >>> from symlift import LatentDomain, load
    >>> from symlift.datasets import gsn
    >>> X = gsn(600, (4, 5), transform="permutation", random_state=1).X
    >>> est = LatentDomain(grid=(4, 5), random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     est.save(folder, overwrite=True)
    ...     bool((load(folder).transform(X) == est.transform(X)).all())
    True
    """
    if not os.path.lexists(Path(folder) / PARTS_FILE):
        return load_domain(folder)
    record = read_parts(folder)
    labels = np.array(record.labels, dtype=np.int64)
    asked = given_domain(record.grid)
    grid = asked.shape if isinstance(asked, Grid) else record.grid
    est = LatentDomains(
        labels if record.parts == "labels" else record.parts,
        grid=grid,
        periodic=tuple(record.periodic) if isinstance(record.periodic, list) else record.periodic,
        solver=record.solver,
        mixing=record.mixing,
        channels=record.channels,
        random_state=record.random_state,
    )
    est.labels_, est.n_features_in_ = labels, len(labels)
    if record.feature_names is not None:
        est.feature_names_in_ = np.array(record.feature_names, dtype=object)
    est.domains_ = [load_domain(part_folder(folder, k)) for k in range(record.count)]
    widths = [domain.n_features_in_ for domain in est.domains_]
    est.mean_, est.maps_ = None, None
    if record.mapped:
        est.mean_, est.maps_ = read_maps(folder, len(labels), widths)
    elif widths != [int((labels == k).sum()) for k in range(record.count)]:
        raise InputError(
            f"{Path(folder) / PARTS_FILE} does not belong to the parts next to it: save the domains"
            " again"
        )
    return est


def load_domain(folder: str | os.PathLike[str]) -> LatentDomain:
    """Load one fitted `LatentDomain`, as it was saved."""
    from symlift._estimator_file import check_fits, read_estimator, read_gaps
    from symlift.storage.model_file import load_model

    model = load_model(folder)
    record = read_estimator(folder)
    est = LatentDomain(
        grid=(
            str(Scattered(model.grid.ndim))
            if record.scattered
            else model.grid
            if isinstance(model.grid, Sphere)
            else model.grid.shape
        ),
        periodic=model.grid.periodic
        if isinstance(model.grid, Grid) and not record.scattered
        else False,
        solver=record.solver,
        mixing=record.mixing,
        channels=record.channels,
        random_state=record.random_state,
    )
    placement = check_fits(record, model, folder)
    if record.feature_names is not None:
        est.feature_names_in_ = np.array(record.feature_names, dtype=object)
    est.gap_filler_ = read_gaps(folder, model.n_features)
    est._adopt(Solution(model, record.evidence, record.trace, placement, record.scattered))
    est.diagnosis_ = record.diagnosis
    with suppress(SamplesError):  # a model can be used without them
        est.samples_ = read_samples(folder, model.n_features)
    return est
