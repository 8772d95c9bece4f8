"""The paper's objective: stationarity, resolution and infomax of a lifted batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from symlift.core.grid import Grid
from symlift.solvers.neural.objective.batch import Lifted, Workers
from symlift.solvers.neural.objective.closed_form import GaussianStationarity, MomentStationarity
from symlift.solvers.neural.objective.critic import JensenShannon
from symlift.solvers.neural.objective.mixture import MixtureMarginals
from symlift.solvers.neural.objective.rank import JointEntropy

__all__ = ["Infomax", "Objective", "Resolution"]


class Resolution(nn.Module):
    """Total correlation per point, mean_n h(y_n) - h(Y)/N, to the batch's rank.

    The scale of y drops out of Gaussian entropies; of the printed one, -log of it is left.
    """

    def __init__(self, marginals: MixtureMarginals) -> None:
        super().__init__()
        self.marginals = marginals

    def forward(self, batch: Lifted) -> Tensor:
        """Marginal minus joint entropy per point."""
        value = self.marginals(batch) - batch.joint_entropy()
        scales = 1 - batch.entropy.scales
        return value + scales * batch.log_scale if scales else value


class Infomax(nn.Module):
    """Minus the joint entropy per point of y (not of the standardised z), to the batch's rank."""

    def forward(self, batch: Lifted) -> Tensor:
        """-h(Y)/N."""
        return -(batch.joint_entropy() + batch.entropy.scales * batch.log_scale)


class Objective(nn.Module):
    """stationarity · S + resolution · R + infomax · I, with S a mixture of the critics' estimate
    and of closed forms.

    A term with weight 0 is not computed. Shares of the measures of stationarity run from their
    first to their second value as the rank opens, so that a run can mix, swap or anneal them.
    """

    #: names of the values that `forward` returns
    names = ("stationarity", "resolution", "infomax", "loss")

    def __init__(
        self,
        grid: Grid,
        critics: Sequence[JensenShannon],
        weights: tuple[float, float, float],
        shares: dict[str, tuple[float, float]],
        marginals: MixtureMarginals | None = None,
        entropy: JointEntropy | None = None,
        standardise: bool = True,
    ) -> None:
        super().__init__()
        self.weights, self.shares = weights, shares
        self.entropy, self.standardise = entropy or JointEntropy(), standardise
        on = weights[0] > 0
        self.critics = nn.ModuleList(critics if on and any(shares.get("critics", ())) else [])
        self.closed = nn.ModuleDict()
        if on and any(shares.get("gaussian", ())):
            self.closed["gaussian"] = GaussianStationarity(grid)
        if on and any(shares.get("moments", ())):
            self.closed["moments"] = MomentStationarity(grid)
        self.resolution = (
            Resolution(marginals or MixtureMarginals(grid.size)) if weights[1] > 0 else None
        )
        self.infomax = Infomax() if weights[2] > 0 else None

    def lifted(self, y: Tensor, workers: Workers, rank: Tensor) -> Lifted:
        """The batch that `forward` takes, of lifted rows ``y`` (n, N)."""
        return Lifted.of(y, workers, rank, self.entropy, self.standardise)

    def share(self, name: str, opened: float) -> float:
        """Share of one measure of stationarity when ``opened`` (0 to 1) of the rank is open."""
        first, last = self.shares[name]
        return first + (last - first) * min(1.0, max(0.0, opened))

    def forward(self, batch: Lifted, opened: float = 1.0) -> tuple[Tensor, Tensor]:
        """(loss, values): a loss whose gradient trains lifting map, critics and mixtures at once,
        and the terms' values.

        The loss itself has no meaning (critics enter it with the opposite sign); ``values`` (4,)
        are those of `names`.
        """
        stationarity, resolution, infomax = self.weights
        zero = batch.z.new_zeros(())
        loss, S, R, I = zero, zero, zero, zero  # noqa: E741 - as in the paper
        for estimator in self.critics:
            share = self.share("critics", opened) / len(self.critics)
            adversarial, value = estimator.adversarial(batch, stationarity * share)  # type: ignore[operator]
            loss, S = loss + adversarial, S + share * value
        for name, term in self.closed.items():
            share = self.share(name, opened)
            if share > 0:
                value = term(batch)
                loss, S = loss + stationarity * share * value, S + share * value.detach()
        if self.resolution is not None:
            value = self.resolution(batch)
            loss, R = loss + resolution * value, value.detach()
        if self.infomax is not None:
            value = self.infomax(batch)
            loss, I = loss + infomax * value, value.detach()  # noqa: E741
        total = stationarity * S + resolution * R + infomax * I
        return loss, torch.stack([S, R, I, total])

    def constrain(self) -> None:
        """Hold all critics to their spectral norm bound; call it after an optimiser step."""
        for estimator in self.critics:
            estimator.constrain()  # type: ignore[operator]
