"""What decides whether a placement is believed, and whether searching goes on: all of it, here.

The numbers come from `symlift.search.score` and `symlift.search.growth`; no other module
compares them with a number of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Judge"]


@dataclass(frozen=True)
class Judge:
    """The limits of acceptance.  All measurements were made with these values."""

    #: least z score of what is real in held-out statistics
    significant: float = 5.0
    #: standard errors by which one result must be ahead of a simpler one
    errors: float = 2.0
    #: probability that any unrelated column, or pair of columns, passes as a related one
    chance: float = 0.01
    #: attempts that must end alike to stop a search
    agreeing: int = 2
    #: share of the columns that two parts of the rows, or growth from a part, put in the same
    #: places, from which they agree
    alike: float = 0.95
    #: squared correlation of the places between points that two parts of the rows give, from which
    #: they agree
    same_places: float = 0.85
    #: share of what is real in held-out statistics that a placement must explain to be accepted.
    #: Correct placements: 0.89 to 0.96 on textures, 0.77 on faces, 0.6 to 0.8 on whole digits;
    #: dense mixings up to 0.41 (DST-I, where modes of neighbouring frequency are correlated), noise
    #: 0.08 or less
    believed: float = 0.5
    #: the same for placements by plain correlations: rotations of images reach 0.39, sine
    #: transforms 0.46
    believed_lags: float = 0.6
    #: the share above which no other statistic, and no other start of several channels, is tried;
    #: a field of which displacements explain less is far from stationary (digits 0.4 to 0.5; faces
    #: 0.66 to 0.7; stationary fields with a third of the points missing 0.8 and more)
    convinced: float = 0.55
    #: the share below which restarts are not tried: random rotations and noise reach less
    hopeless: float = 0.15
    #: the share above which places between the points are not tried
    complete: float = 0.9
    #: share of a column predicted by its neighbours above which the placement counts as local
    predicted: float = 0.3

    def accepts(self, kind: str, explained: float, ceiling: float, z: float) -> bool:
        """Whether held-out statistics of one kind show that columns are in their places."""
        needed = self.believed_lags if kind == "lags" else self.believed
        return z > self.significant and explained > needed * max(ceiling, 0.0)

    def is_convinced(self, explained: float, ceiling: float) -> bool:
        """Whether so much of what is real is explained that no other way is tried."""
        return explained > self.convinced * ceiling

    def has_hope(self, explained: float, ceiling: float, z: float) -> bool:
        """Whether an arrangement is worth more work than starts."""
        return z > self.significant and explained > self.hopeless * ceiling

    def explains_enough(self, share: float) -> bool:
        """Whether a domain of any kind explains enough of what is real to be believed."""
        return share > self.believed

    def finds_again(self, agreement: float | None) -> bool:
        """Whether two parts of the rows give the same places, without a grid."""
        return (agreement or 0.0) > self.same_places

    def is_local(self, predicted: float) -> bool:
        """Whether neighbours predict columns as well as neighbours do."""
        return predicted > self.predicted
