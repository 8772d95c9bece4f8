"""Every threshold and size of the fast solver in one place, with the reason for each; recorded in
every run.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from symlift.search.settings import PlaceSettings

__all__ = ["DEFAULT", "MOMENT_BATCH", "FastSettings"]

#: products of three entries of each row that are held at a time; the plan counts them
MOMENT_BATCH = 16_000_000


@dataclass(frozen=True)
class FastSettings:
    """Thresholds and sizes of the fast solver; the reason for each stands next to it in the source.

    The numbers were set on shot noise, spins and digits (docs/decisions/0002 and 0003).

    Examples
    --------
    >>> from symlift.solvers.fast.settings import FastSettings
    >>> FastSettings().fit_rows
    40000
    """

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
    #: share of held-out correlations that is explained: 0.9 or more by shuffled bits, 0 by noise
    bits_local: float = 0.5
    #: how much lighter each bit is than the one before: right readings 0.62 or less (digits), wrong
    #: ones 0.78 or more (textures)
    bits_decay: float = 0.7
    landmarks: int = 400
    match_rounds: int = 10
    #: a word that was seen this often counts half as much as one that is always seen
    word_seen: int = 30
    #: variance that is added to a bit's own where it predicts another
    damping: float = 1e-4

    # -- independent components
    component_steps: int = 200
    component_tolerance: float = 1e-3
    #: components of fewer rows than this for each column go on with all rows (255 pulses: r 0.989 →
    #: 0.995)
    rows_per_component: int = 50
    #: fits from different starts of the components compete
    attempts: int = 3

    # -- linear processes: components that are innovations
    #: part of the mixing columns' overlaps that displacements explain: processes 0.88 or more,
    #: random mixings 0.4 or less, but 0.63 on 16 points, where there are few pairs; and the fewest
    #: points for which it is used
    overlap: float = 0.75
    #: below this no process is looked for: processes have 0.61 or more, random mixings of 24 points
    #: and more 0.56 or less
    tangled: float = 0.57
    fewest_innovations: int = 20

    # -- evidence
    #: noise has a locality of about 0 and |z| < 3
    local: float = 0.2
    nongaussian: float = 4.0
    #: locality of a ring for which only a general map was found: wrong ones 0.20 to 0.33 (decays)
    ring_local: float = 0.5

    #: divided by the number of held-out rows: by how much the stationarity of correct fits may
    #: exceed that of many rows
    few_rows: float = 8.0

    # -- stationary frames
    #: held-out distance of moments to stationary ones: correct frames have 0.002 or less, wrong
    #: ones 0.006 or more
    stationary: float = 0.004
    #: d³ third moments cost 5d⁴ operations per step
    max_third_order: int = 100
    #: share of the third moment that is sampling noise, beyond which the moment carries no
    #: information
    no_third_moment: float = 0.5
    #: gaps in units of the sampling noise below which a frame is continued, sharpened, or has
    #: converged
    near_gap: float = 5.0
    sharpen_gap: float = 3.0
    arrived_gap: float = 1.5
    #: weight of the pooled entropy while sharpening, in units of the sampling noise
    sharpen_strength: float = 20.0
    #: held-out distance to stationary moments between which frames of more points than third order
    #: takes are sharpened, too: shot noise on 12 x 12 and 6 x 6 x 6 points has 0.001 before, 255
    #: pulses 0.002 to 0.006, digits, whose components are no points, 0.16
    second_sharpen: tuple[float, float] = (0.002, 0.05)
    #: pooled entropies this close count as the same phase of a ring
    same_sharpness: float = 0.01

    #: sampling noise of the moments above which the gap alone is not trusted: frames are sharpened
    #: as they are, and two attempts have to end at the same signals (63 pulses: 0.003 from 40,000
    #: rows, 0.02 from 5,000, 0.07 from 1,500)
    noisy_moments: float = 0.01
    #: correlation of the signals of two such attempts: right ones 0.994 or more (1,500 rows, five
    #: draws); with a stretch of the line out of place, 0.9 or less with the truth. If no two of so
    #: many agree, the fit warns
    same_signals: float = 0.95
    few_rows_attempts: int = 6

    # -- attempts that share nothing but the data
    #: rows for each point from which on another attempt takes half of them, else three quarters
    many_rows: float = 100.0
    #: correlation of the signals (of images, of their detail) from which on two attempts agree.
    #: Errors of independent attempts multiply: where they agree by 0.9, neither is worse than that
    agreed: float = 0.9
    #: further attempts at most: the third decides where two are apart
    confirming: int = 2

    # -- starts from the covariance's eigenbasis
    #: partial whitenings C^(-a/2): at 0 high frequencies have no weight; ending at 3/4 instead of 0
    #: raises r of decays from 0.93 to 0.995 and of garments from 0.95 to 0.99
    whitenings: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75)
    #: the whitening at which starts are ranked
    ranked_at: float = 0.5
    #: on the coarsest grid at least one start in ten converges to the right minimum; forty take 3 s
    eigenbasis_starts: int = 40
    #: after so many starts the best gap on the coarsest grid, in units of the noise, is 0.8 to 17
    #: where the mixing is orthogonal, and 37 or more (Ising, pulses) where it is not: the search is
    #: then given up
    hopeful_starts: int = 12
    hopeless_gap: float = 25.0
    #: points of the coarsest grid, on one axis and on several, for third and fourth order
    coarse_points: tuple[tuple[int, int], tuple[int, int]] = ((16, 25), (16, 16))
    #: grids up to which several starts go on at third and fourth order; beyond, the best one
    max_order: tuple[int, int] = (100, 36)
    #: steps after which starts are ranked, how many of them go on to the next finer grid, and steps
    #: on the last grid
    first_steps: int = 50
    beam: int = 3
    #: starts that are fully optimised on the last grid: basins of nearly the same gap differ by a
    #: mild
    #: all-pass filter (0.99, 0.9997)
    finalists: int = 2
    path_steps: tuple[int, int] = (200, 80)
    #: a convincing frame of components has this gap half whitened, in units of the noise: shot
    #: noise 0.5; decays that ended in a wrong minimum (r 0.98) 2.0
    confirmed_gap: float = 1.4
    #: strong modes whose signs are tried the other way round at the end
    flips: int = 1
    #: at third order n³ numbers in float32, 5n⁴ operations per step: 0.14 s at 225 points; at
    #: fourth n⁴ and 10n⁵
    max_eigenbasis: tuple[int, int] = (256, 64)
    #: share of noise in the half whitened third moment beyond which no start converges
    #: (photographs: 0.4)
    eigenbasis_noise: float = 0.25
    #: the last gap of a frame that has converged, in units of the noise: 0.3 to 1.3; of others 1.5
    #: and more
    eigenbasis_arrived: float = 1.4
    #: the largest gap at any whitening of the path: right ones 2.2 or less, wrong ones 6 to 27
    widest_gap: float = 5.0
    #: the same at fourth order, with fewer steps: piecewise constant 1.0 to 1.6, wrong ones 2.9;
    #: held-out slices decide as well
    fourth_arrived: float = 2.0
    #: the part of held-out statistics that displacements explain for such a frame: 0.6 to 0.98;
    #: about 0 without a domain
    dense_explained: float = 0.4
    #: share of noise in the half whitened fourth cumulant: piecewise constant 0.05, Laplace
    #: innovations 0.43, Gaussian 1
    fourth_noise: float = 0.6
    #: weight of the pooled entropy in units of that noise (3 and 20 do equally well on images and
    #: decays, 3 better on moving averages), and the largest gap afterwards: images are not quite
    #: stationary, their true frame has 1.7
    third_sharpen_strength: float = 3.0
    third_sharpened_gap: float = 2.0
    #: least gain of held-out rows in pooled entropy: decays 0.5, images 0.5 to 0.9, moving averages
    #: 0.03
    third_sharper: float = 0.1

    # -- smooth fields with edges (photographs)
    #: share of the variance that one mode has, above which edges come before third moments:
    #: photographs 0.8 to 0.87, garments 0.5, digits 0.23
    mostly_mean: float = 0.7
    #: eigenmatrices of the fourth cumulant that may be position operators (8 x 8 photographs: third
    #: and fifth), and the rows that they are computed from
    energies: int = 10
    energy_rows: int = 20_000
    #: part of an eigenmatrix that held-out rows have to show again
    reproduced: float = 0.5
    #: points of the coarsest grid, on which three draws of four are right (of 6 x 6 points two, of
    #: 8 x 8 few)
    edge_points: int = 25
    #: weight of smoothness next to the position operators
    smoothness: float = 0.1
    #: tuples of operators whose frames are tried, and the steps and rows of a trial
    edge_candidates: int = 4
    edge_trial_steps: int = 300
    edge_rows: int = 6_000
    #: strong modes whose signs are tried the other way round, and how often at most
    edge_signs: int = 12
    edge_rounds: int = 3
    #: draws there, how many of them are followed to the whole grid at most, and the remaining
    #: distance of moments to stationary ones that is enough: photographs 8 x 8 with a detail of
    #: 0.98 leave 0.00002 to 0.00005, of 0.80 0.0007
    edge_draws: int = 4
    edge_followed: int = 2
    edge_stationary: float = 0.00025
    #: first rate of Adam times the number of points, and its steps for each point (12 x 12: detail
    #: 0.79 with 0.64 and 17, 0.94 with these)
    variation_rate: float = 1.28
    variation_steps: int = 40
    #: the same of held-out rows, below which the frame has converged (12 x 12: 0.0002 at a detail
    #: of 0.85)
    edge_arrived: float = 0.0004
    #: variation over that of random signs: photographs 0.8 to 0.93 (0.925 at the truth of
    #: photographs reduced to a third of their size), fields whose edges have no places 1
    rough: float = 0.96

    # -- steps of a line
    #: the shortest line, overlap of neighbouring differences (in theory 1/2: 0.46 to 0.5 measured),
    #: and of others (0; 0.02 to 0.09, and more with few rows)
    fewest_steps: int = 8
    linked: float = 0.3
    unlinked: float = 0.45
    #: variation of their sum over that of random signs: piecewise constant 0.42 to 0.47, what
    #: innovations of AR(1) processes sum up to 0.57 (most of them zero) to 0.92
    rough_steps: float = 0.5

    # -- phases of a ring
    #: rows by which phases are chosen, and the gain of held-out rows in pooled entropy that is
    #: needed to change the phase
    phase_rows: int = 4_000
    sharper_phase: float = 0.01
    #: agreement of the sharpest phase with that of the third moment above which one attempt is
    #: enough
    same_phase: float = 0.97
    #: gaps above which reversed modes are turned round (decays: 0.3 to 8.9 times the noise before,
    #: 0.3 to 0.9 after), and how often phases and steps alternate
    ring_gap: float = 12.0
    ring_rounds: int = 2

    # -- maps that need not be orthogonal
    max_resolve: int = 300
    #: bandwidths of the shared density, from coarse to fine
    bandwidths: tuple[float, ...] = (0.3, 0.15, 0.08)
    resolve_steps: int = 60
    filter_taps: int = 3
    #: where no such map is stationary: widths of the Gaussian that smooths a whitened line, in
    #: steps, and steps at each (Legendre pulses, condition 10: correlation with the whitened truth
    #: 0.78, and 0.69 without the wide ones; resolved 0.996), and the floor of its position operator
    smoothings: tuple[float, ...] = (3.0, 2.0, 1.5, 1.0, 0.7, 0.5, 0.0)
    smoothed_steps: int = 60
    whitened_floor: tuple[float, ...] = (0.002,)
    #: the best of those maps goes on with a finer density (0.9933 → 0.9968, 0.9976 → 0.9985; with
    #: all bandwidths once more 0.9937, 0.9937), and steps at each
    fine_bandwidths: tuple[float, ...] = (0.08, 0.04)
    fine_steps: int = 150

    # -- proposing a grid
    propose_rows: int = 6_000
    max_aspect: int = 4
    #: a proposal must explain this much of the held-out statistics, and this much of what simpler
    #: grids leave unexplained
    enough: float = 0.5
    margin: float = 0.15
    #: grids that leave at most this many times as much unexplained as the best one count as equal
    as_good: float = 1.25
    #: columns up to which components are tried: every grid is arranged then
    propose_columns: int = 150

    def still(self, held: int) -> float:
        """Distance to stationary moments up to which a fit can be right: more with few rows.

        Parameters
        ----------
        held : int
            How many rows were held out.

        Returns
        -------
        float
            The largest distance of their moments.
        """
        return self.stationary + self.few_rows / held


DEFAULT = FastSettings()
