"""The settings of a training run, and our presets, named after the rows of the paper's training
table.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)

from symlift.core.grid import Grid
from symlift.solvers.neural.full_batch import FullBatch
from symlift.solvers.neural.objective.critic import Head, Layer, Norm, Padding
from symlift.solvers.neural.objective.rank import Form, Window
from symlift.solvers.neural.two_valued import TwoValued

#: points of a short field; the most spins that are looked for, and the rows that show them
_SHORT, _MOST_SPINS, _SPIN_ROWS = 24, 128, 20_000

__all__ = ["PRESETS", "Estimator", "Settings", "few_planes", "fitted", "preset_for", "refining"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Estimator(_Frozen):
    """One stationarity estimator: the critics' layers, and the block size of the coarse field that
    they see.

    ``whole``: whether the mixture of a field and its shift is the whole of both or half of each;
    None takes the cheaper one on images. ``norm``: how the layers share the bound of the network's
    spectral norm. ``either``: whether the larger of KL(p‖m) and KL(m‖p) is taken.
    """

    layers: Annotated[tuple[Layer, ...], Field(min_length=1)]
    coarse: PositiveInt = 1
    padding: Padding = "field"
    head: Head = "linear"
    whole: bool | None = None
    norm: Norm = "root"
    either: bool = False


class Settings(_Frozen):
    """Everything that decides a training run.

    Weights, batch sizes, layers and decay are the paper's; learning rates (Q and θ are parametrised
    differently here), batch of the 63-point rows and the clock are ours, found by measurement.
    """

    # the objective: stationarity · JS + resolution · (marginal - joint entropy) - infomax · joint
    # entropy; 0 switches a term off
    stationarity: NonNegativeFloat = 1.0
    resolution: NonNegativeFloat = 1.0
    infomax: NonNegativeFloat = 0.75
    # infomax from a near start. The data leave the kernel's modulus open (a filtered stationary
    # field is stationary, too), and at the paper's weights resolution tilts it towards whitening,
    # noise included; a large weight takes the map closest to an isometry
    near_infomax: NonNegativeFloat = 30.0
    # from a near start: the weight of the moments' stationarity relative to the critics, and what
    # resolution is multiplied by
    near_moments: NonNegativeFloat = 2.0
    near_resolution: NonNegativeFloat = 1.0
    # how stationarity is measured: shares of the critics' estimate and of the two closed forms, at
    # the first and at the full rank
    critics: tuple[float, float] = (1.0, 1.0)
    gaussian: tuple[float, float] = (0.0, 0.0)
    moments: tuple[float, float] = (0.0, 0.0)
    estimators: tuple[Estimator, ...] = (Estimator(layers=(Layer(4, 5), Layer(6, 3), Layer(8, 3))),)
    #: the joint entropy of an eigenvalue: that of a Gaussian (½ log 2πe λ), or the printed log λ
    entropy: Form = "gaussian"
    #: whether its rank opens over the index, with the printed slope, or over the index's share of
    #: all, as in the released code
    window: Window = "index"
    #: whether estimators see the field divided by its rms deviation, or as it is
    standardise: bool = True
    # the model
    embedding: Literal["identity", "zero-pad", "linear"] = "zero-pad"
    #: D, the augmented dimension; None: half as large again as d on open grids (odd), d on odd
    #: rings
    dimension: PositiveInt | None = None
    rank_limit: PositiveFloat | None = None
    #: whether the window on an open grid is moved by a learned offset
    offset: bool = True
    #: steps between divisions of a learned embedding by the geometric mean of its singular values
    recondition: PositiveInt | None = 10
    #: what is learned of Q: a rotation of its planes (Cayley), or the paper's antisymmetric matrix,
    #: whose eigenvectors they are; or, on one axis, whose eigenvalues are the frequencies as well,
    #: as in the released code
    parametrisation: Literal["planes", "eigenvectors", "generator"] = "planes"
    #: the least log-variance of the Gaussians of marginal entropies
    least_log_variance: float = -5.0
    #: planes at the start: random, as in the paper, or neighbours in the spectrum of the data's
    #: covariance
    start: Literal["paper", "covariance"] = "paper"
    #: an embedding that compresses: random rows, which are learned, or the data's strongest modes,
    #: as many as points, which stay
    compress: Literal["learned", "modes"] = "learned"
    # the training
    batch: Annotated[int, Field(ge=4)] = 500
    rate: PositiveFloat = 5e-4
    near_rate: PositiveFloat = 3e-3
    #: steps at the beginning in which estimators learn and the model stays
    warm_up: NonNegativeInt = 0
    estimator_rate: PositiveFloat = 5e-3
    rotation_gain: PositiveFloat = 2.0
    frequency_gain: PositiveFloat = 4.0
    decay: Annotated[float, Field(gt=0, le=1)] = 0.1
    #: the norms that gradients of the model and of the estimators are clipped to
    clip: PositiveFloat | None = None
    estimator_clip: PositiveFloat | None = None
    #: whether estimators and model take a step from the same gradients, or estimators first, and
    #: the model with what they are then
    updates: Literal["simultaneous", "alternating"] = "simultaneous"
    #: steps of the estimators for one of the model, each on a batch of its own
    estimator_steps: PositiveInt = 1
    #: the deviation of noise on the filter, and the epochs that ``steps`` are, in ten of which it
    #: falls by e (None: epochs of 100 steps, as the released code counts them)
    filter_noise: NonNegativeFloat = 0.1
    epochs: PositiveInt | None = None
    data_noise: NonNegativeFloat = 0.0
    mixing: PositiveInt | None = None
    # the clock: "wait" opens the spectrum pair by pair, each when the one before fits, and then
    # settles; "paper" follows the summed learning rate over ``steps``
    clock: Literal["wait", "paper"] = "wait"
    steps: PositiveInt = 200_000
    rank_speed: PositiveFloat = 2e-3
    patience: PositiveFloat = 0.01
    dwell: PositiveInt = 500
    stall: PositiveInt = 10_000
    #: the share of the rank below which a stop that stalls has lost its way: the run starts again
    #: from another draw
    must_fit: Annotated[float, Field(ge=0, le=1)] = 0.0
    retries: NonNegativeInt = 3
    #: the rank at which, instead of settling, a run goes over to the nearest exact model and on as
    #: from a near start; for transforms that keep lengths
    close_at: PositiveFloat | None = None
    #: the rank from which on a run tries to end on all rows at once, every so many steps, until two
    #: of these closings agree; for as many columns as points
    full_batch_at: PositiveFloat | None = None
    full_batch_every: PositiveInt = 2_000
    #: closings of which none arrives after which the run starts again from another draw
    full_batch_tries: PositiveInt | None = None
    settle: PositiveInt = 4_000
    restarts: PositiveInt = 1
    #: which model a run returns: the best by the held-out objective (which has all three terms), or
    #: the last
    keep: Literal["best", "last"] = "best"
    precision: Literal["float32", "float64", "bfloat16"] = "float32"

    @property
    def noise_steps(self) -> float:
        """Steps in which the filter's noise falls by e."""
        return 10 * (100.0 if self.epochs is None else self.steps / self.epochs)


def _layers(*rows: tuple[int, ...], stride: int = 0) -> tuple[Layer, ...]:
    """(filters, kernel) rows; the first ``stride`` of them stride by 2 instead of pooling."""
    return tuple(
        Layer(f, k, 2, pool=False) if i < stride else Layer(f, k) for i, (f, k) in enumerate(rows)
    )


# the released code's network: strides where the text pools, which costs a third
_GSN63 = (Estimator(layers=_layers((4, 5), (4, 5), (6, 3), (6, 3), (8, 3), stride=3)),)
_GSN15 = (Estimator(layers=_layers((4, 5), (6, 5), (8, 3))),)
_ISING = (
    Estimator(layers=_layers((4, 5), (6, 5), (6, 3), (8, 3), stride=1)),
    Estimator(layers=_layers((4, 5), (6, 3), (8, 3), stride=1), coarse=2),
)
_NEURAL = (Estimator(layers=_layers((4, 7), (6, 5), (8, 3), (8, 3))),)
_MNIST15 = (Estimator(layers=_layers((4, 5), (6, 3), (8, 3))),)
_MNIST27 = (Estimator(layers=_layers((4, 7), (6, 5), (8, 3), (8, 3))),)

#: settings named after the rows of the paper's training table
PRESETS: dict[str, Settings] = {
    "gsn15": Settings(
        stationarity=1.5,
        estimators=_GSN15,
        rate=1e-3,
        estimator_rate=5e-3,
        batch=500,
        embedding="identity",
        dimension=15,
        # the last harmonics of these pulses are weak: opened, they push the others out of place
        rank_limit=12.5,
        close_at=8.5,
        full_batch_at=2.5,
        full_batch_every=500,
        must_fit=0.55,  # its first three harmonics
    ),
    "gsn63": Settings(
        estimators=_GSN63,
        batch=1000,
        rate=1e-3,
        dimension=99,
        clip=0.5,
        patience=0.006,
        close_at=26.5,
        full_batch_at=8.5,
        stall=6_000,
        rank_speed=4e-3,
        steps=1_000_000,
    ),
    "ising33": Settings(
        estimators=_ISING,
        batch=2500,
        rate=1e-3,
        rank_speed=4e-3,
        embedding="linear",
        dimension=63,
        clip=0.5,
        # later on, a learned embedding whitens the field, and the first harmonics are lost again
        full_batch_at=2.25,
        full_batch_every=250,
        full_batch_tries=1,
        retries=9,
        near_moments=30.0,
        # two-valued signals look resolved under many wrong maps: stationarity has more weight
        near_resolution=0.1,
    ),
    "visual-coding": Settings(
        stationarity=2.5,
        resolution=0.2,
        infomax=0.2,
        estimators=_NEURAL,
        batch=2500,
        rank_limit=3.0,
        mixing=20,
        full_batch_at=1.75,
        full_batch_every=250,
    ),
    "mnist15": Settings(
        resolution=0.2,
        infomax=0.15,
        estimators=_MNIST15,
        batch=1000,
        rate=1e-3,
        clip=0.5,
        dimension=325,
        # the two axes of an image can begin mixed, and stay so: a draw is closed once, early
        full_batch_at=1.75,
        full_batch_every=250,
        full_batch_tries=1,
        retries=39,
    ),
    "mnist27": Settings(
        resolution=0.2, infomax=0.15, estimators=_MNIST27, batch=2500, dimension=1053
    ),
    "mnist15-bits": Settings(
        resolution=0.2,
        infomax=0.15,
        estimators=_MNIST15,
        batch=2500,
        embedding="linear",
        dimension=325,
    ),
    "mnist27-bits": Settings(
        resolution=0.2,
        infomax=0.15,
        estimators=_MNIST27,
        batch=2500,
        embedding="linear",
        dimension=1053,
    ),
}


# bits of few pixels end on all rows, as the pixels do
PRESETS["mnist7-bits"] = PRESETS["mnist15"].model_copy(
    update={"embedding": "linear", "dimension": None, "compress": "modes"}
)


def preset_for(grid: Grid, d: int, rows: NDArray | None = None) -> str:
    """The name of the preset whose data are most like d columns on ``grid``.

    Spins are distinguished from shot noise by what ``rows`` (n, d) are: two-valued fields behind a
    linear map. Without rows, a line or ring has shot noise; short fields differ from long ones.

    >>> preset_for(Grid((15,), periodic=True), 15), preset_for(Grid((63,)), 63)
    ('gsn15', 'gsn63')
    >>> preset_for(Grid((15, 15)), 1800)
    'mnist15-bits'
    >>> preset_for(Grid((30,), periodic=True), 110)  # more tuned channels than points of a ring
    'visual-coding'
    """
    if grid.ndim == 1:
        if all(grid.periodic) and 2 * d > 3 * grid.size:
            return "visual-coding"
        if rows is not None and _spins(rows, grid):
            return "ising33"
        return "gsn15" if grid.size <= _SHORT else "gsn63"
    name = "mnist15" if max(grid.shape) <= 20 else "mnist27"
    return name if d <= 2 * grid.size else f"{name}-bits"


def _spins(rows: NDArray, grid: Grid) -> bool:
    """Whether all columns follow from as many sources of two values."""
    if not TwoValued.suits(grid, rows.shape[1]) or not 4 <= grid.size <= _MOST_SPINS:
        return False
    few = np.asarray(rows[:_SPIN_ROWS], dtype=np.float64)
    return len(few) > 4 * grid.size and TwoValued(few / few.std(), grid).applies


def fitted(settings: Settings, grid: Grid, d: int) -> Settings:
    """``settings`` with an embedding and an augmented dimension that d columns on ``grid`` can
    have.
    """
    kind, dimension = settings.embedding, settings.dimension
    limit = settings.rank_limit
    if kind == "identity" and dimension != d:
        limit = None  # it was one for data of another size
    odd_ring = all(wraps and n % 2 for n, wraps in zip(grid.shape, grid.periodic, strict=True))
    if kind == "identity" and not (odd_ring and d == grid.size):
        kind, dimension = "zero-pad", None
    # where a few planes are all that is asked for, the data's own dimensions have room for them
    few = kind == "zero-pad" and few_planes(limit, grid, d)
    if kind == "zero-pad" and d > 2 * grid.size and not few:
        kind, dimension = "linear", None
    if kind == "identity" or few:
        dimension = d
    elif (
        dimension is None
        or (kind == "zero-pad" and not d <= dimension <= 2 * d)
        or dimension < grid.size
    ):
        size = grid.size if kind == "linear" else d
        longer = size if all(grid.periodic) else size + size // 2
        dimension = longer + 1 - longer % 2
    # the nearest isometry is no help where the map is not to be one, and would bring back a term
    # that is switched off
    isometric = kind != "linear" or settings.compress == "modes"
    whole = 0 not in (settings.stationarity, settings.resolution, settings.infomax)
    # where there are more columns than points, an isometry is one of their strongest modes
    searched = (d == grid.size or few or settings.compress == "modes") and FullBatch.suits(grid, d)
    if not isometric:
        searched = TwoValued.suits(grid, d)
    coarse = tuple(
        e for e in settings.estimators if e.coarse == 1 or min(grid.shape) // e.coarse >= 4
    )
    return settings.model_copy(
        update={
            "embedding": kind,
            "dimension": dimension,
            "estimators": coarse,
            "rank_limit": limit,
            "close_at": settings.close_at if isometric and whole else None,
            "full_batch_at": settings.full_batch_at if whole and searched else None,
        }
    )


def few_planes(limit: float | None, grid: Grid, d: int) -> bool:
    """Whether a rank ``limit`` leaves most of d columns and most of the grid's harmonics out."""
    return limit is not None and 2 * limit <= min(grid.size, d)


def refining(settings: Settings) -> Settings:
    """``settings`` for a start that is near: no filter noise, and only the settling part of the
    clock.

    Fresh critics and mixtures know nothing yet, and while they learn the lifting map runs away from
    a good start: so they learn first. The stationarity of moments, which is right from the first
    step on, leads, and allows larger steps than critics alone.
    """
    near: dict[str, Any] = {
        "parametrisation": "planes",
        "entropy": "gaussian",
        "standardise": True,
        "updates": "simultaneous",
        "rate": settings.near_rate,
        "filter_noise": 0.0,
        "clock": "wait",
        "rank_limit": None,
        "full_batch_at": None,
        "warm_up": 500,
        "settle": max(settings.settle, 6_000),
    }
    if settings.critics == (1.0, 1.0):
        near |= {"critics": (0.5, 0.5), "moments": (settings.near_moments, settings.near_moments)}
    near["infomax"] = settings.near_infomax if settings.infomax > 0 else 0.0
    near["resolution"] = settings.resolution * settings.near_resolution
    return settings.model_copy(update=near)
