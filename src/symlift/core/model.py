"""The lifted model: from unstructured vectors to signals on a grid.

    y(t) = w₀ᵀ ρ̂(-t) E (x - mean) / scale

`LiftedModel` is what every solver returns.  It holds (mean, scale, E, Q, θ, r) and nothing else;
the lifting map

    W = T(θ) · diag(r) · Qᵀ · E / scale

is always computed from them, and only where it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from symlift.core.domain import domain_words, lattice_of
from symlift.core.embedding import (
    pseudo_inverse,
    times,
)
from symlift.core.factor import Factors, check_factors, factor_harmonics, factor_map
from symlift.core.grid import Grid
from symlift.core.rows import apply_to_rows
from symlift.core.sphere import Sphere
from symlift.errors import InputError

if TYPE_CHECKING:
    from symlift.core.differentiable import FixedLift, LiftedModule

__all__ = ["MAX_DENSE", "LiftedModel"]

#: maps and generators of more columns than this are not built as matrices
MAX_DENSE = 4096


@dataclass(frozen=True, eq=False)
class LiftedModel(Factors):
    """Lifting y(t) = w₀ᵀ ρ̂(-t) E (x - mean)/scale on a grid, with its symmetry group.

    Parameters
    ----------
    grid : Grid or Sphere
        The domain that signals are lifted to.
    mean : ndarray of shape (d,)
        Offset of the observations.
    scale : float
        One positive number for all columns, so that no symmetry is broken.
    E : ndarray or sparse array of shape (channels · D, d)
        Embedding into the space where the group acts, D rows for each channel.
    group : TranslationGroup, TorusGroup or RotationGroup
        Translations on R^D in 2-plane form, those of a torus, whose planes are its Fourier modes,
        or the rotations of a sphere.
    r : ndarray of shape (group.filter_size,)
        Resolving filter in the planes' own frames, or one weight for each degree, ‖r‖ = 1; empty
        for a torus, where it is flat.
    kind : {"identity", "zero-pad", "linear"}
        What E is.
    channels : int, default=1
        Number of signals at each grid point.

    Raises
    ------
    InputError
        If shapes do not fit, or if a parameter is not finite.

    References
    ----------
    "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", eq. (4).

    Examples
    --------
    >>> model = LiftedModel.from_lifting_map(np.eye(5), Grid((5,), periodic=True))
    >>> x = np.array([[0.0, 1.0, 0.0, 0.0, 0.0]])
    >>> model.lift(model.act(x, [2.0])).round(6) + 0.0
    array([[0., 0., 0., 1., 0.]])
    """

    def __post_init__(self) -> None:
        check_factors(self)

    def __repr__(self) -> str:
        channels = f" x {self.channels} channels" if self.channels > 1 else ""
        size = f"{self.n_features} columns, {self.kind} in {self.group.dimension} dimensions"
        return f"LiftedModel(grid {self.grid}{channels}, {size})"

    # -- what it is made of ------------------------------------------------------------------------

    @classmethod
    def from_lifting_map(
        cls,
        W: Any,
        grid: Grid,
        mean: ArrayLike | None = None,
        padding: float = 0.5,
        channels: int = 1,
    ) -> LiftedModel:
        """Factor a lifting map W into the model's parameters, without loss.

        On a torus, T diag(r) Qᵀ with the Fourier planes is the identity
        (`symlift.core.fourier.regular_frequencies`), so W itself can be carried by the rest.  Where
        W is a multiple of an orthogonal matrix it goes into Q, and E only pads with zeros;
        otherwise E carries it.  A sparse or large W is carried by a sparse E.

        Parameters
        ----------
        W : array-like or sparse array of shape (grid points · channels, d)
            The lifting map, channels fastest.
        grid : Grid
            The grid that it lifts to.
        mean : array-like of shape (d,), optional
            Offset of the observations; zero by default.
        padding : float, default=0.5
            Open axes are windows of a torus that is longer by this share, rounded up to an odd
            length.
        channels : int, default=1
            Number of signals at each grid point.

        Returns
        -------
        LiftedModel
            A model whose `lifting_map` is W.

        Raises
        ------
        InputError
            If W does not fit the grid, is zero or is not finite.
        """
        return cls(**vars(factor_map(W, grid, mean, padding, channels)))

    @classmethod
    def from_harmonics(cls, E: ArrayLike, sphere: Sphere, mean: ArrayLike) -> LiftedModel:
        """Build a model on a sphere from the map to coefficients of spherical harmonics.

        The filter is the field itself, up to its degree: the lifted value at a point is Σ Y_lm c_lm
        of the coefficients c = E (x - mean).

        Parameters
        ----------
        E : array-like of shape ((L + 1)², d)
            From observations to coefficients, by degree and order.
        sphere : Sphere
            A sphere of known degree L.
        mean : array-like of shape (d,)
            Offset of the observations.

        Returns
        -------
        LiftedModel
            The model.
        """
        return cls(**vars(factor_harmonics(E, sphere, mean)))

    @property
    def lattice(self) -> Grid:
        """The grid, where the domain is one; what is made for grids only is refused elsewhere."""
        return lattice_of(self.grid)

    @property
    def n_features(self) -> int:
        """Number d of columns of an observation."""
        return int(self.E.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of lifted values: grid points times channels."""
        return self.grid.size * self.channels

    @property
    def is_sparse(self) -> bool:
        """Whether the embedding is a sparse matrix."""
        return hasattr(self.E, "tocsr")

    @cached_property
    def unseen(self) -> NDArray[np.bool_]:
        """Columns whose weights are all zero, so that the model ignores them, (d,)."""
        size = np.abs(self.E).sum(axis=0)
        return np.asarray(size).reshape(-1) == 0

    @cached_property
    def map(self) -> Any:
        """Lifting map W (grid points · channels, d), sparse where the embedding is."""
        return self.group.evaluate(self.E, self.grid, self.r, self.channels) / self.scale

    @cached_property
    def _inverse_map(self) -> Callable[[NDArray], NDArray]:
        return pseudo_inverse(self.map)

    @cached_property
    def _inverse_embedding(self) -> Callable[[NDArray], NDArray]:
        return (
            (lambda rows: rows[:, : self.n_features])
            if self.kind != "linear"
            else pseudo_inverse(self.E)
        )

    def _check_dense(self, what: str) -> None:
        if self.n_features > MAX_DENSE:
            raise InputError(
                f"{what} would have {self.n_features} columns, more than {MAX_DENSE}: use lift,"
                " unlift and act instead"
            )

    def lifting_map(self) -> NDArray[np.float64]:
        """Lifting map W as a dense matrix: ``lift(X) = (X - mean) Wᵀ``.

        Returns
        -------
        ndarray of shape (grid points · channels, d)
            The map, channels fastest.

        Raises
        ------
        InputError
            If the model has more than 4,096 columns.
        """
        self._check_dense("the lifting map")
        return np.array(self.map.toarray() if self.is_sparse else self.map)

    def generators(self) -> NDArray[np.float64]:
        """Effective generators in observation space, L_eff = E⁺ L̂ E.

        Returns
        -------
        ndarray of shape (P, d, d)
            One matrix for each axis of the grid.

        Raises
        ------
        InputError
            If the model has more than 4,096 columns.

        References
        ----------
        "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", section
        "Experiments", evaluation protocol.
        """
        self._check_dense("the generators")
        E = self._blocks(np.eye(self.n_features, dtype=self.mean.dtype))
        moved = [self.group.derivative(E, axis) for axis in range(self.group.axes)]
        return np.stack([self._inverse_embedding(self._joined(z)).T for z in moved])

    def kernel(self, transform: ArrayLike) -> NDArray[np.float64]:
        """Recovery kernel k(s, t) = w₀ᵀ ρ̂(-t) E A δ_s for x = A f, A = transformᵀ.

        ``latent @ model.kernel(transform)`` is what the model recovers from noise-free observations
        of zero mean.

        Parameters
        ----------
        transform : array-like of shape (latent points, d)
            The matrix with ``X = latent @ transform``.

        Returns
        -------
        ndarray of shape (latent points, grid points · channels)
            The kernel; a translated delta for a perfect recovery.

        Raises
        ------
        InputError
            If ``transform`` does not have d columns.

        References
        ----------
        "Blind Recovery of Latent Domains via Unsupervised Symmetry Discovery", section
        "Identifiability and theoretical interpretation".
        """
        A = np.asarray(transform, dtype=np.float64)
        if A.ndim != 2 or A.shape[1] != self.n_features:
            raise InputError(
                f"a transform of shape {A.shape} does not end in d = {self.n_features} columns"
            )
        return A @ self.lifting_map().T

    def with_columns(self, seen: NDArray[np.bool_], mean: ArrayLike) -> LiftedModel:
        """Extend the model to observations of more columns.

        Columns that the model does not see have weight zero: `act` passes them through, and
        `unlift` gives them their mean.  The group is unchanged, and with it the action.

        Parameters
        ----------
        seen : ndarray of bool of shape (d,)
            Marks the model's own columns among all d.
        mean : array-like of shape (d,)
            Mean of all columns.

        Returns
        -------
        LiftedModel
            A model of d columns.
        """
        columns = np.flatnonzero(seen)
        if self.is_sparse:
            from scipy.sparse import csr_array

            E: Any = self.E.tocoo()
            E = csr_array((E.data, (E.row, columns[E.col])), shape=(E.shape[0], len(seen)))
        else:
            E = np.zeros((self.E.shape[0], len(seen)), dtype=self.E.dtype)
            E[:, columns] = self.E
        offset = np.array(mean, dtype=self.mean.dtype)
        offset[columns] = self.mean
        return replace(self, E=E, mean=offset, kind="linear")

    # -- what it does ------------------------------------------------------------------------------

    def _blocks(self, centred: NDArray) -> NDArray:
        """E x of each row, one row for each channel: (n · channels, D)."""
        return times(centred, self.E).reshape(len(centred) * self.channels, self.group.dimension)

    def _joined(self, blocks: NDArray) -> NDArray:
        return blocks.reshape(-1, self.channels * self.group.dimension)

    def lift(self, X: ArrayLike, out: NDArray | None = None) -> NDArray:
        """Lift observations: Y = (X - mean) Wᵀ.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Observations.
        out : ndarray of shape (n, grid points · channels), optional
            Where to write, for example a memory map, so that nothing of size n is held in memory.

        Returns
        -------
        ndarray of shape (n, grid points · channels)
            Lifted signals, channels fastest; ``out`` if it is given.

        Raises
        ------
        InputError
            If X has the wrong shape or type, or a row that is not finite.
        """

        def step(x: NDArray) -> NDArray:
            return times(x - self.mean.astype(x.dtype), self.map.astype(x.dtype))

        return apply_to_rows(X, self.n_features, step, self.n_outputs, out)

    def unlift(self, Y: ArrayLike, out: NDArray | None = None) -> NDArray:
        """Map signals back to observations: X = mean + Y W⁺ᵀ with the Moore–Penrose inverse.

        Of all x that lift nearest to y, it is the one nearest to the mean.

        Parameters
        ----------
        Y : array-like of shape (n, grid points · channels)
            Lifted signals.
        out : ndarray of shape (n, d), optional
            Where to write.

        Returns
        -------
        ndarray of shape (n, d)
            Observations; ``out`` if it is given.
        """
        return apply_to_rows(
            Y, self.n_outputs, lambda y: self.mean + self._inverse_map(y), self.n_features, out
        )

    def act(
        self, X: ArrayLike, t: Sequence[float] | NDArray, out: NDArray | None = None
    ) -> NDArray:
        """Move observations: mean + E⁺ ρ̂(t) E (X - mean), whose lifted signal is moved by +t.

        Columns that the model does not see stay as they are.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Observations.
        t : sequence of float of length P
            Translation in grid steps, one number for each axis; on a sphere, a rotation vector in
            radians.
        out : ndarray of shape (n, d), optional
            Where to write.

        Returns
        -------
        ndarray of shape (n, d)
            The moved observations; ``out`` if it is given.

        Raises
        ------
        InputError
            If ``t`` does not have one finite number for each axis.
        """
        try:
            steps = np.array([float(number) for number in np.ravel(np.asarray(t)).tolist()])
        except (TypeError, ValueError):
            steps = np.full(0, np.nan)
        if len(steps) != self.grid.ndim or not np.isfinite(steps).all():
            raise InputError(
                f"a {'rotation' if isinstance(self.grid, Sphere) else 'translation'} on the"
                f" {domain_words(self.grid)} takes {self.grid.ndim} finite numbers, not"
                f" {' '.join(repr(t).split()):.80}"
            )

        def step(x: NDArray) -> NDArray:
            centred = x - self.mean.astype(x.dtype)
            moved = self.mean + self._inverse_embedding(
                self._joined(self.group.act(self._blocks(centred), steps))
            )
            if self.unseen.any():
                moved[:, self.unseen] = x[:, self.unseen]
            return moved

        return apply_to_rows(X, self.n_features, step, self.n_features, out)

    def to(self, dtype: DTypeLike) -> LiftedModel:
        """Convert the parameters to another precision.

        Parameters
        ----------
        dtype : dtype-like
            A floating-point type of numpy.

        Returns
        -------
        LiftedModel
            The same model in that precision.
        """
        return replace(
            self,
            mean=self.mean.astype(dtype),
            E=self.E.astype(dtype),
            group=self.group.to(dtype),
            r=self.r.astype(dtype),
        )

    def to_torch(self, trainable: bool = True) -> LiftedModule | FixedLift:
        """Convert the model to a PyTorch module (extra ``train``).

        Parameters
        ----------
        trainable : bool, default=True
            Whether E, θ and r can be trained. If False, the map is fixed, and goes from vectors (…,
            d) to fields (…, channels, \\*grid), which convolutions take.

        Returns
        -------
        LiftedModule or FixedLift
            A `torch.nn.Module` that starts as this model.

        Raises
        ------
        InputError
            If PyTorch is not installed, or if the model is too large for a module.
        """
        try:
            from symlift.core.differentiable import FixedLift, LiftedModule
        except ImportError as error:
            raise InputError(
                "to_torch needs PyTorch, which is not installed: pip install 'symlift[train]'"
            ) from error
        return LiftedModule(self) if trainable else FixedLift(self)
