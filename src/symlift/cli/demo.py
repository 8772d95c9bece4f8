"""The demonstration: scramble known signals, recover them from the vectors alone, draw both."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from symlift.core.grid import Alignment, Grid
from symlift.datasets import Observations, gsn, image_crops, load_mnist
from symlift.errors import InputError
from symlift.estimator import LatentDomain
from symlift.loading import load
from symlift.metrics import align, signal_recovery
from symlift.plotting import gallery, new_figure, save_figure, styled
from symlift.report import write_report
from symlift.runs.recover import recover
from symlift.runs.writers import write_rows
from symlift.storage.lock import Lock
from symlift.storage.plain_files import refuse_links

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["from_tiles", "run_demo", "to_tiles"]

SIDE, SAMPLES = 15, 20_000


def demo_data(seed: int) -> tuple[Observations, str]:
    """Shuffled crops of digits, or shuffled shot noise where no digits are installed."""
    try:
        images = load_mnist().images
    except InputError:
        return gsn(
            SAMPLES, (12, 12), transform="permutation", random_state=seed
        ), "2-D shot noise, shuffled"
    return image_crops(
        images, (SIDE, SIDE), SAMPLES, transform="permutation", random_state=seed
    ), "shuffled digits"


def run_demo(out: Path, seed: int = 0, solver: str = "auto") -> dict[str, Any]:
    """Scramble, recover from a file, write the report and ``demo.png``; return the measures."""
    data, what = demo_data(seed)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"{out} cannot be a folder ({error.strerror}): choose another --out"
        ) from None
    with Lock(out / ".lock", f"the demonstration in {out}"):
        refuse_links(out, ["run"])
        return _run_in(out, data, what, seed, solver)


def _run_in(out: Path, data: Observations, what: str, seed: int, solver: str) -> dict[str, Any]:
    observed = out / "observed.npy"
    write_rows(observed, data.X)
    run = recover(
        observed,
        out / "run",
        grid=str(data.grid),
        solver=solver,
        seed=seed,
        overwrite=(out / "run").exists(),
    )
    assert run is not None  # noqa: S101 - there is one process only
    report = write_report(run.folder)
    est = load(run.folder)
    assert isinstance(est, LatentDomain)  # noqa: S101 - one domain was fitted
    recovered = est.transform(data.X)
    recovery = signal_recovery(data.latent, recovered, data.grid)
    assert recovery.alignment is not None  # noqa: S101 - the global protocol always has one
    seconds = run.record.timings.fit
    figure = out / "demo.png"
    title = f"{what}: r = {recovery.r:.3f} in {seconds:.1f} s"
    if data.grid.ndim == 2 and data.transform is not None:
        before_and_after = _on_whole_pictures(data, est, recovery.alignment)
        title += "; then whole pictures, by the same model"
        save_figure(_side_by_side(before_and_after, data.grid, title), figure)
    else:
        shown = np.argsort(-data.latent[:500].var(axis=1), kind="stable")[:8]
        rows: dict[str, NDArray] = {
            "as observed": data.X[shown],
            "recovered": align(recovered[shown], recovery.alignment, data.grid),
            "hidden truth": data.latent[shown],
        }
        save_figure(gallery(rows, data.grid, title=title), figure)
    diagnosis = run.record.diagnosis
    return {
        "what": what,
        "n": len(data.X),
        "d": data.X.shape[1],
        "solver": solver,
        "r": float(recovery.r),
        "seconds": seconds,
        "verdict": None if diagnosis is None else diagnosis.verdict.words,
        "figure": str(figure),
        "report": str(report),
    }


def _on_whole_pictures(
    data: Observations, est: LatentDomain, alignment: Alignment
) -> dict[str, tuple[NDArray, NDArray]]:
    """Pictures that the fit did not see, cut into tiles: scrambled like its rows, and recovered."""
    out = {}
    for name, picture in _whole_pictures(data.grid).items():
        scrambled = to_tiles(picture, data.grid) @ np.asarray(data.transform)
        tiles = align(scrambled @ est.lifting_map_.T, alignment, data.grid)
        out[name] = (
            from_tiles(scrambled, picture.shape, data.grid),
            from_tiles(tiles, picture.shape, data.grid),
        )
    return out


def _whole_pictures(grid: Grid) -> dict[str, NDArray]:
    """A photograph, and digits where they are installed, in whole tiles; from 0 to 1."""
    from sklearn.datasets import load_sample_image

    rows, columns = grid.shape
    photograph = load_sample_image("china.jpg").mean(axis=2)[::2, ::2] / 255
    high, wide = photograph.shape
    out = {"a photograph": photograph[: high // rows * rows, : wide // columns * columns]}
    with suppress(InputError):
        images = load_mnist().images
        some = images[np.linspace(0, len(images) - 1, 24).astype(int)]
        digits = some.reshape(4, 6, 28, 28).swapaxes(1, 2).reshape(4 * 28, 6 * 28)
        rims = [(0, -length % side) for length, side in zip(digits.shape, grid.shape, strict=True)]
        out["digits"] = 1 - np.pad(digits, rims) / 255
    return out


def to_tiles(picture: NDArray, grid: Grid) -> NDArray:
    """A picture of whole tiles as one row for each tile."""
    rows, columns = grid.shape
    tiles = picture.reshape(picture.shape[0] // rows, rows, picture.shape[1] // columns, columns)
    return tiles.swapaxes(1, 2).reshape(-1, grid.size)


def from_tiles(tiles: NDArray, shape: tuple[int, ...], grid: Grid) -> NDArray:
    """The picture of the given shape that `to_tiles` has cut.

    >>> picture, grid = np.arange(24.0).reshape(4, 6), Grid((2, 3))
    >>> bool((from_tiles(to_tiles(picture, grid), picture.shape, grid) == picture).all())
    True
    """
    rows, columns = grid.shape
    parts = tiles.reshape(shape[0] // rows, shape[1] // columns, rows, columns)
    return parts.swapaxes(1, 2).reshape(shape)


def _side_by_side(pictures: dict[str, tuple[NDArray, NDArray]], grid: Grid, title: str) -> Figure:
    """One column for each picture: scrambled above, recovered below."""
    with styled():
        figure = new_figure(4.6 * len(pictures), 6.4, title)
        grids = figure.subplots(2, len(pictures), squeeze=False)
        for column, (name, pair) in zip(grids.T, pictures.items(), strict=True):
            for axes, picture in zip(column, pair, strict=True):
                axes.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
                axes.set(xticks=[], yticks=[])
            column[0].set_title(f"{name}, tiles of {grid} shuffled alike")
        grids[0, 0].set_ylabel("as observed")
        grids[1, 0].set_ylabel("recovered")
    return figure
