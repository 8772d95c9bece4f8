"""The lifting network: the parameters of a `LiftedModel`, trainable."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from symlift.core.differentiable import lifting_map, rotate_planes
from symlift.core.embedding import EmbeddingKind
from symlift.core.grid import Grid
from symlift.core.group import TranslationGroup, spread_filter
from symlift.core.linalg import polar
from symlift.core.model import LiftedModel
from symlift.errors import InputError

__all__ = [
    "EigenvectorNetwork",
    "Eigenvectors",
    "GeneratorNetwork",
    "LiftingNetwork",
    "Rotation",
    "cayley_rotation",
    "initial_model",
    "network_kind",
]


#: deviation of the entries of a start
_SMALL = 1e-3


def initial_model(
    grid: Grid,
    mean: NDArray,
    scale: float,
    dimension: int,
    kind: EmbeddingKind,
    generator: torch.Generator,
    separate: bool = False,
    covariance: NDArray | None = None,
    embedding: NDArray | None = None,
) -> LiftedModel:
    """The paper's start: eigenvectors of a random antisymmetric matrix A with entries N(0, 1e-3²),
    and frequencies as small.

    Near zero in the frequencies only: the eigenvectors, and so Q, are Haar-random (Q = I would be
    the answer where nothing was mixed). With one axis, A has the frequencies, too, unless they are
    ``separate``, as the paper's text has them (its code has them so for several axes only):
    differences of conjugate pairs of N(0, 1e-3²), of either sign. An embedding that compresses
    starts with random orthonormal rows, so that no column is left out.

    With the ``covariance`` (d, d) of the observations, Q is its eigenbasis in descending order
    instead: cosine and sine of one frequency of a stationary field have nearly the same variance,
    so that neighbours span a plane. Frequencies are as small as before. ``embedding``
    (dimension, d) is used as it is, if it is given.
    """
    draw = torch.randn(dimension, dimension, generator=generator, dtype=torch.float64)
    if separate or grid.ndim > 1:
        planes = _haar(draw)  # as the eigenvectors of a Gaussian antisymmetric matrix are
        phases = torch.randn(grid.ndim, dimension // 2, 2, generator=generator, dtype=torch.float64)
        group = TranslationGroup(
            planes.numpy(), (_SMALL * (phases[..., 0] - phases[..., 1])).numpy()
        )
    else:
        group = TranslationGroup.from_generators((_SMALL * (draw - draw.T) / 2).numpy())
    r = np.zeros(dimension // 2 + dimension % 2)
    E = np.eye(dimension, len(mean))
    if embedding is not None:
        E = embedding
    elif dimension < len(mean):
        E = _haar(
            torch.randn(len(mean), dimension, generator=generator, dtype=torch.float64)
        ).T.numpy()
    if covariance is not None:
        group = TranslationGroup(_paired(E @ covariance @ E.T), group.theta)
    return LiftedModel(grid, mean.astype(np.float64), scale, E, group, r, kind)


def _paired(covariance: NDArray) -> NDArray[np.float64]:
    """Eigenvectors (columns) whose neighbours in the spectrum are paired, strongest pair first.

    In odd dimensions one stands alone, at the end: the one that leaves the others the most alike
    (on a ring that is the constant, whose variance is nobody else's).
    """
    values, vectors = np.linalg.eigh(covariance)
    order = np.arange(len(values))[::-1]
    if len(order) % 2:
        logs = np.log(np.maximum(values[order], 1e-9 * values[-1]))
        steps = logs[:-1] - logs[1:]
        # alone at an even place: pairs (0, 1), (2, 3), … before it, (1, 2), (3, 4), … after it
        before = np.concatenate([[0.0], np.cumsum(steps[0::2])])
        after = np.concatenate([np.cumsum(steps[1::2][::-1])[::-1], [0.0]])
        alone = 2 * int(np.argmin(before + after))
        order = np.append(np.delete(order, alone), order[alone])
    return np.ascontiguousarray(vectors[:, order])


def _haar(draw: Tensor) -> Tensor:
    """Orthonormal columns, uniform over all: those of a Gaussian matrix, with the signs that make
    its QR unique.
    """
    Q, R = torch.linalg.qr(draw)
    return Q * torch.sign(torch.diagonal(R))


def cayley_rotation(skew: Tensor) -> Tensor:
    """`symlift.core.linalg.cayley` of the skew part of ``skew``, differentiable."""
    A = (skew - skew.T) / 2
    eye = torch.eye(len(A), dtype=A.dtype, device=A.device)
    return torch.linalg.solve(eye - A / 2, eye + A / 2)


def _orthonormal(Q: Tensor) -> Tensor:
    """The orthogonal matrix nearest to Q, in float64."""
    return torch.from_numpy(polar(Q.detach().cpu().double().numpy()))


class Rotation(nn.Module):
    """A learnable orthogonal matrix Q = Q₀ · cayley(A), kept orthogonal over any number of
    optimiser steps.

    The Cayley map costs one solve, forward and backward (a sixth of a complex eigendecomposition at
    d = 225). Its accuracy falls as A grows, so `fold` moves A into the base Q₀ (re-orthonormalised
    in float64) once it is large; call it after optimiser steps.
    """

    base: Tensor

    def __init__(self, Q: Tensor) -> None:
        super().__init__()
        self.register_buffer("base", Q.detach().clone())
        self.skew = nn.Parameter(torch.zeros_like(Q))

    def forward(self) -> Tensor:
        return self.base @ cayley_rotation(self.skew)

    @torch.no_grad()
    def fold(self, limit: float = 1.0) -> bool:
        """Move A into the base when its largest row norm exceeds ``limit``; True if it did."""
        A = (self.skew - self.skew.T) / 2
        if float(A.norm(dim=1).max()) <= limit:
            return False
        self.base.copy_(_orthonormal(self.base.double() @ cayley_rotation(self.skew.double())))
        self.skew.zero_()
        return True


class Eigenvectors(nn.Module):
    """Planes as the paper has them: conjugate eigenvectors of one learned antisymmetric matrix A,
    by diagonalisation.

    Only the eigenvectors of A count, so its scale is free: as it grows, the same learning rate
    turns them less. Their gradient has no bound where two eigenvalues of A meet.
    """

    def __init__(self, Q: Tensor) -> None:
        super().__init__()
        D = len(Q)
        # planes and spectrum of a Gaussian antisymmetric matrix are independent: a spectrum for the
        # given planes
        draw = torch.triu(
            torch.randn(D, D, generator=torch.Generator().manual_seed(D), dtype=torch.float64), 1
        )
        sizes = torch.linalg.svdvals(draw - draw.T)[0 : D - D % 2 : 2]  # |±iλ|: each twice
        planes = torch.unflatten(Q.double()[:, : D - D % 2], 1, (-1, 2))
        first, second = planes.unbind(dim=2)
        A = _SMALL * ((second * sizes) @ first.T - (first * sizes) @ second.T)
        self.skew = nn.Parameter(A.to(Q.dtype))

    def forward(self) -> Tensor:
        """(D, ⌈D/2⌉): one eigenvector of each conjugate pair, in descending order of its
        eigenvalue, and the real one in odd D.
        """
        return self.spectrum()[1]

    def spectrum(self) -> tuple[Tensor, Tensor]:
        """The eigenvalues -λ of -iA that are not positive, ⌈D/2⌉, and their eigenvectors."""
        A = (self.skew - self.skew.T) / 2
        wide = torch.complex128 if len(A) <= _WIDE else torch.complex64
        # A's own eigenvalues are purely imaginary; those of -iA are pairs ±λ, in ascending order
        vectors = torch.linalg.eigh(-1j * A.to(wide))[1][:, : (len(A) + 1) // 2]
        # u†(-iA)u = 2 aᵀAb for u = a + ib: the value, and its derivative with u held, in real
        # numbers, since compiled code loses a part of the derivative of complex eigenvalues
        a, b = vectors.detach().real, vectors.detach().imag
        return 2 * (a * (A.to(a.dtype) @ b)).sum(dim=0), vectors

    def fold(self) -> bool:
        """Do nothing: there is no base to fold into."""
        return False


#: eigenvectors of matrices up to this size are found in double precision
_WIDE = 400


class LiftingNetwork(nn.Module):
    """W = T(θ) diag(r) Qᵀ E with Q = Q₀ · cayley(A), r = (filter + noise)/‖·‖, and one offset for
    each axis inside T.

    The offset moves the window along the torus as a whole, at most by half its length (not at all
    without ``offset``); `model` folds it into the planes. A linear embedding E is learned, unless
    it is to be kept as the start has it.
    """

    mean: Tensor
    points: Tensor
    reach: Tensor

    def __init__(
        self,
        start: LiftedModel,
        dtype: torch.dtype = torch.float32,
        keep_embedding: bool = False,
        offset: bool = True,
    ) -> None:
        super().__init__()
        if not isinstance(start.group, TranslationGroup) or start.channels > 1:
            raise InputError(
                f"a model of {start.grid.size} points and {start.channels} channels cannot be"
                " trained further"
            )
        self.grid, self.scale, self.kind = start.grid, start.scale, start.kind
        self.dimension = start.group.dimension
        self.rotation: Rotation | Eigenvectors = Rotation(torch.from_numpy(start.group.Q).to(dtype))
        self.theta = nn.Parameter(torch.from_numpy(start.group.theta).to(dtype).clone())
        self.filter = nn.Parameter(torch.from_numpy(start.r).to(dtype).clone())
        self.offset = nn.Parameter(torch.zeros(start.grid.ndim, dtype=dtype))
        embedding = torch.from_numpy(start.E).to(dtype).clone()
        if start.kind == "linear" and not keep_embedding:
            self.E: Tensor = nn.Parameter(embedding)
        else:
            self.register_buffer("E", embedding)
        self.register_buffer("mean", torch.from_numpy(start.mean).to(dtype).clone())
        self.register_buffer(
            "points", torch.from_numpy(start.grid.coordinates()).to(dtype), persistent=False
        )
        half = torch.tensor(
            [
                0.0 if wraps or not offset else n / 2
                for n, wraps in zip(start.grid.shape, start.grid.periodic, strict=True)
            ]
        )
        self.register_buffer("reach", half.to(dtype), persistent=False)

    def unit_filter(self, noise: Tensor | None = None) -> Tensor:
        """The resolving filter, ‖r‖ = 1."""
        r = self.filter if noise is None else self.filter + noise
        return r / r.norm().clamp_min(1e-12)

    def displacement(self) -> Tensor:
        """The window's offset along each axis, in grid steps; 0 on a ring, where it changes
        nothing.
        """
        return self.reach * torch.tanh(self.offset)

    def forward(self, noise: Tensor | None = None) -> Tensor:
        """The lifting map (points, d) of observations that were centred and scaled."""
        points = self.points + self.displacement()
        return lifting_map(self.E, self.rotation(), self.theta, self.unit_filter(noise), points)

    def parameters_by_gain(
        self,
    ) -> tuple[list[nn.Parameter], list[nn.Parameter], list[nn.Parameter]]:
        """What turns planes, what sets frequencies, and the rest."""
        own = (self.rotation.skew, self.theta)
        return [own[0]], [own[1]], [p for p in self.parameters() if all(p is not q for q in own)]

    @torch.no_grad()
    def condition_embedding(self) -> None:
        """Divide a learned embedding's singular values by their geometric mean: it may shape, not
        scale.
        """
        if isinstance(self.E, nn.Parameter):
            singular = torch.linalg.svdvals(self.E)
            self.E.div_(torch.exp(torch.log(singular.clamp_min(1e-12)).mean()))

    @torch.no_grad()
    def model(self) -> LiftedModel:
        """The current model, in float64, with the offset folded into the planes' orientation."""
        theta = self.theta.double()
        # cos θ(t + o), sin θ(t + o) against (a, b) is cos θt, sin θt against (a, b) turned by -θo
        Q = _orthonormal(self.rotation()).to(theta.device)
        turned = rotate_planes(Q, -self.displacement().double() @ theta)
        r = self.unit_filter().double()
        if float(r.norm()) < 0.5:  # never trained: the filter is still zero
            r = torch.full_like(r, 1 / math.sqrt(len(r)))
        group = TranslationGroup(_array(turned), _array(theta))
        return LiftedModel(
            self.grid, _array(self.mean), self.scale, _array(self.E), group, _array(r), self.kind
        )


class EigenvectorNetwork(LiftingNetwork):
    """The same family as the paper writes it: y_n = Re w₀ᵀ U exp(-i φ·t_n) U† E x, with U from
    `Eigenvectors`.

    A filter w₀ of D entries, and for each axis a vector α of D entries with φ = α - Pα, P the
    exchange of conjugate pairs.
    """

    def __init__(
        self,
        start: LiftedModel,
        dtype: torch.dtype = torch.float32,
        keep_embedding: bool = False,
        offset: bool = True,
    ) -> None:
        super().__init__(start, dtype, keep_embedding, offset)
        group = start.group
        assert isinstance(group, TranslationGroup)  # noqa: S101 - checked above
        half, D = group.theta.shape[1], self.dimension
        self.rotation = Eigenvectors(torch.from_numpy(group.Q).to(dtype))
        alpha = np.zeros((len(group.theta), D))
        alpha[:, :half], alpha[:, D - half :] = group.theta / 2, -group.theta[:, ::-1] / 2
        self.theta = nn.Parameter(torch.from_numpy(alpha).to(dtype))
        self.filter = nn.Parameter(torch.from_numpy(group.Q @ spread_filter(start.r, D)).to(dtype))

    def planes(self) -> tuple[Tensor, Tensor]:
        """U, (D, ⌈D/2⌉), and φ of the first of each conjugate pair, (axes, ⌊D/2⌋)."""
        return self.rotation(), (self.theta - self.theta.flip(1))[:, : self.dimension // 2]

    def forward(self, noise: Tensor | None = None) -> Tensor:
        """The lifting map (points, d) of observations that were centred and scaled."""
        U, frequencies = self.planes()
        half = self.dimension // 2
        angles = ((self.points + self.displacement()) @ frequencies).to(U.real.dtype)
        # in real numbers, of which a compiler makes one loop and of complex ones many calls
        real, imaginary, r = U.real, U.imag, self.unit_filter(noise).to(U.real.dtype)
        a, b = r @ real, r @ imaginary
        cos, sin = angles.cos(), angles.sin()
        along = cos * a[:half] + sin * b[:half]  # real part of exp(-i φ·t) (a + ib)
        across = cos * b[:half] - sin * a[:half]
        # a pair of conjugates is twice the real part of one of them
        W = 2 * (along @ real[:, :half].T + across @ imaginary[:, :half].T)
        if self.dimension % 2:
            W = W + a[half] * real[:, half] + b[half] * imaginary[:, half]
        return W.to(self.E.dtype) @ self.E

    @torch.no_grad()
    def model(self) -> LiftedModel:
        """The model as it stands, in float64: each eigenvector turned so that the filter is real on
        it.
        """
        U, frequencies = self.planes()
        U = U.to(torch.complex128)
        half, D = self.dimension // 2, self.dimension
        weights = self.unit_filter().to(U.dtype) @ U
        turned = U * torch.exp(-1j * weights.angle())
        planes = math.sqrt(2) * torch.stack(
            [turned[:, :half].real, -turned[:, :half].imag], dim=2
        ).flatten(1)
        r = math.sqrt(2) * weights[:half].abs()
        if D % 2:  # real up to a phase, which is taken from its largest entry
            lone = U[:, half] * torch.exp(-1j * U[U[:, half].abs().argmax(), half].angle())
            weight = self.unit_filter().double() @ lone.real
            planes = torch.cat([planes, (lone.real * (1 if weight >= 0 else -1))[:, None]], dim=1)
            r = torch.cat([r, weight.abs()[None]])
        theta = frequencies.double()
        Q = rotate_planes(
            _orthonormal(planes).to(theta.device), -self.displacement().double() @ theta
        )
        if float(r.norm()) < 0.5:  # never trained: the filter is still zero
            r = torch.full_like(r, 1 / math.sqrt(len(r)))
        group = TranslationGroup(_array(Q), _array(theta))
        return LiftedModel(
            self.grid, _array(self.mean), self.scale, _array(self.E), group, _array(r), self.kind
        )


class GeneratorNetwork(EigenvectorNetwork):
    """One axis as the released code has it: a single antisymmetric matrix, whose eigenvectors are
    the planes and whose eigenvalues are the frequencies.
    """

    def __init__(
        self,
        start: LiftedModel,
        dtype: torch.dtype = torch.float32,
        keep_embedding: bool = False,
        offset: bool = True,
    ) -> None:
        super().__init__(start, dtype, keep_embedding, offset)
        group = start.group
        assert isinstance(group, TranslationGroup)  # noqa: S101 - checked above
        del self.theta
        # eigenvectors in descending order of what they turn by
        theta = np.abs(group.theta[0])
        signed = np.where(group.theta[0] < 0, -1.0, 1.0)
        planes = group.Q[:, : 2 * len(theta)].reshape(self.dimension, -1, 2)
        first, second = planes[..., 0], planes[..., 1] * signed
        A = (second * theta) @ first.T - (first * theta) @ second.T
        with torch.no_grad():
            self.rotation.skew.copy_(torch.from_numpy(A))

    def planes(self) -> tuple[Tensor, Tensor]:
        """U, and the eigenvalues as φ."""
        assert isinstance(self.rotation, Eigenvectors)  # noqa: S101 - of the parent
        values, vectors = self.rotation.spectrum()
        return vectors, values[None, : self.dimension // 2].to(self.filter.dtype)

    def parameters_by_gain(
        self,
    ) -> tuple[list[nn.Parameter], list[nn.Parameter], list[nn.Parameter]]:
        """What turns planes sets frequencies, too."""
        own = self.rotation.skew
        return [own], [], [p for p in self.parameters() if p is not own]


def network_kind(parametrisation: str, grid: Grid) -> type[LiftingNetwork]:
    """The network of a `Settings.parametrisation`; one matrix has frequencies for one axis only."""
    if parametrisation == "generator" and grid.ndim == 1:
        return GeneratorNetwork
    return LiftingNetwork if parametrisation == "planes" else EigenvectorNetwork


def _array(tensor: Tensor) -> NDArray[np.float64]:
    """A copy as a numpy array of double precision."""
    return tensor.detach().cpu().double().numpy().copy()
