"""Every threshold and size of the fast solver in one place, with the reason for each; recorded in every run."""

from __future__ import annotations

from dataclasses import dataclass, field

from symlift.solvers.fast.place.settings import PlaceSettings

__all__ = ["DEFAULT", "FastSettings"]


@dataclass(frozen=True)
class FastSettings:
    """What the fast solver decides by.  The numbers were set on shot noise, spins and digits (docs/decisions/0002 and 0003)."""

    # -- how much of the data is looked at: beyond, sampling noise is no longer what limits a fit
    fit_rows: int = 40_000
    held_rows: int = 10_000
    component_rows: int = 10_000
    sharpen_rows: int = 8_000
    resolve_rows: tuple[int, int] = (4_000, 15_000)
    #: rows times grid points that resolving works on, between the two bounds above
    resolve_numbers: int = 600_000

    # -- putting columns in their places
    place: PlaceSettings = field(default_factory=PlaceSettings)

    # -- putting components in order
    #: lag models are smoothed over displacements, ever less, while an arrangement settles
    widths: tuple[float, ...] = (1.5, 1.0, 0.7, 0.5, 0.0)
    refine_steps: int = 12
    #: starts are tried until this many end at the same least value, and at most so many
    agreeing_starts: int = 2
    max_starts: int = 6

    # -- bits
    bit_rows: int = 20_000
    #: shuffled bits explain 0.9 or more of held-out correlations, noise nothing
    bits_local: float = 0.5
    #: how much lighter each bit is than the one before: right readings 0.62 or less (digits), wrong ones 0.78 or more (textures)
    bits_decay: float = 0.7
    landmarks: int = 400
    match_rounds: int = 10
    #: a word that was seen this often counts half as much as one that is seen always
    word_seen: int = 30
    #: variance that is added to a bit's own where it predicts another
    damping: float = 1e-4

    # -- independent components
    component_steps: int = 200
    component_tolerance: float = 1e-3
    #: fits from different starts of the components compete
    attempts: int = 3

    # -- evidence
    #: noise leaves a locality of about 0 and |z| < 3
    local: float = 0.2
    nongaussian: float = 4.0

    # -- stationary frames
    #: held-out distance of moments to stationary ones: right frames leave 0.002 or less, wrong ones 0.006 or more
    stationary: float = 0.004
    #: d³ third moments cost 2d⁴ operations a step
    max_third_order: int = 100
    #: share of the third moment that is sampling noise, beyond which it says nothing
    no_third_moment: float = 0.5
    #: gaps in units of the sampling noise: worth going on from, worth sharpening, arrived
    near_gap: float = 5.0
    sharpen_gap: float = 3.0
    arrived_gap: float = 1.5
    #: weight of the pooled entropy while sharpening, in units of the sampling noise
    sharpen_strength: float = 20.0
    #: pooled entropies this close are one and the same phase of a ring
    same_sharpness: float = 0.01

    # -- maps that need not be orthogonal
    max_resolve: int = 300
    #: bandwidths of the shared density, from coarse to fine
    bandwidths: tuple[float, ...] = (0.3, 0.15, 0.08)
    resolve_steps: int = 60
    filter_taps: int = 3

    # -- proposing a grid
    propose_rows: int = 6_000
    max_aspect: int = 4
    #: a proposal must explain this much of the held-out statistics, and this much of what simpler grids leave over
    enough: float = 0.5
    margin: float = 0.15
    #: grids that leave at most this many times as much unexplained as the best one count as equal
    as_good: float = 1.25
    #: the same for columns that were placed, whose share of what is real scatters less
    as_good_columns: float = 1.1
    #: columns up to which components are tried: every grid is arranged then
    propose_columns: int = 150


DEFAULT = FastSettings()
