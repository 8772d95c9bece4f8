"""The lifted model: from unstructured vectors to signals on a grid, y(t) = w₀ᵀ ρ̂(-t) E (x - mean) / scale.

:class:`LiftedModel` is the one artefact that every solver returns.  It holds (mean, scale, E, Q, θ, r) and nothing else;
the lifting map

    W = T(θ) · diag(r) · Qᵀ · E / scale

is only ever computed from them.  Tensors inside, numpy at the door: what goes in as an array comes out as one.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar, cast, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from scipy.linalg import null_space
from torch import Tensor

from symlift.errors import InputError
from symlift.grid import Grid
from symlift.group import TranslationGroup, plane_basis, regular_frequencies

__all__ = ["FORMAT_VERSION", "LiftedModel", "embedding_matrix", "lifting_map", "write_atomically"]

FORMAT_VERSION = 1
EmbeddingKind = Literal["identity", "zero-pad", "linear"]
Rows = TypeVar("Rows", NDArray, Tensor)

# Rows are lifted in slices of about this many numbers: large enough for BLAS, small enough for any laptop.
_BATCH_NUMBERS = 4_000_000
_RCOND = 1e-10


def spread_filter(r: Tensor, dimension: int) -> Tensor:
    """One weight for each column of T: r_k for both columns of plane k, the last one for a lone column."""
    pairs = torch.repeat_interleave(r[: dimension // 2], 2)
    return torch.cat([pairs, r[dimension // 2 :]])


def lifting_map(E: Tensor, Q: Tensor, theta: Tensor, r: Tensor, points: Tensor) -> Tensor:
    """W = T(θ) diag(r) Qᵀ E at ``points`` (N, P): rotate, weight, inverse (non-uniform) Fourier.  Differentiable."""
    dimension = len(Q)
    return (plane_basis(theta, points, dimension) * spread_filter(r, dimension)) @ (Q.T @ E)


def embedding_matrix(kind: EmbeddingKind, d: int, dimension: int) -> Tensor:
    """E of the two fixed kinds: the identity, or zeros below it up to ``dimension`` rows.

    >>> embedding_matrix("zero-pad", 2, 3)
    tensor([[1., 0.],
            [0., 1.],
            [0., 0.]], dtype=torch.float64)
    """
    if kind == "identity" and dimension != d:
        raise InputError(
            f"the identity embedding keeps d = {d} dimensions, but {dimension} are asked for: use 'zero-pad'"
        )
    if kind == "linear" or dimension < d:
        raise InputError(f"a {kind} embedding of {d} into {dimension} dimensions has to be given as a matrix")
    return torch.eye(dimension, d, dtype=torch.float64)


@dataclass(frozen=True)
class LiftedModel:
    """Lifting y(t) = w₀ᵀ ρ̂(-t) E (x - mean)/scale on a grid, with its symmetry group.

    Parameters
    ----------
    grid : the grid that signals are lifted to.
    mean, scale : (d,) offset and one positive number; a single scale, so that no symmetry is broken.
    E : (D, d) embedding into the space where the group acts.
    group : the translations, in 2-plane form, on R^D.
    r : (D//2 + D % 2,) resolving filter in the planes' own frames, ‖r‖ = 1.
    kind : "identity", "zero-pad" or "linear": what E is.

    >>> model = LiftedModel.from_lifting_map(np.eye(5), Grid((5,), periodic=True))
    >>> x = np.array([[0.0, 1.0, 0.0, 0.0, 0.0]])
    >>> model.lift(model.act(x, [2.0])).round(6) + 0.0
    array([[0., 0., 0., 1., 0.]])
    """

    grid: Grid
    mean: Tensor
    scale: float
    E: Tensor
    group: TranslationGroup
    r: Tensor
    kind: EmbeddingKind

    def __post_init__(self) -> None:
        D = self.group.dimension
        if self.kind not in get_args(EmbeddingKind):
            raise InputError(
                f"embedding kind {self.kind!r} is unknown: use one of {', '.join(get_args(EmbeddingKind))}"
            )
        if self.E.ndim != 2 or self.E.shape[0] != D:
            raise InputError(
                f"E has shape {tuple(self.E.shape)}, but the group acts on {D} dimensions: E must be ({D}, d)"
            )
        if self.mean.shape != self.E.shape[1:]:
            raise InputError(
                f"mean has shape {tuple(self.mean.shape)}: it must be ({self.E.shape[1]},), one entry a column of E"
            )
        if self.r.shape != (D // 2 + D % 2,):
            raise InputError(f"r has shape {tuple(self.r.shape)}: it must be ({D // 2 + D % 2},), one weight a plane")
        if self.group.axes != self.grid.ndim:
            raise InputError(
                f"the group has {self.group.axes} generators, but the grid {self.grid} has {self.grid.ndim} axes"
            )
        if self.kind == "identity" and any(
            wraps and length % 2 == 0 for length, wraps in zip(self.grid.shape, self.grid.axes_periodic, strict=True)
        ):
            raise InputError(
                f"the ring {self.grid} has an even number of points: its one-step shift has no real logarithm in d dimensions, "
                "so 'identity' cannot hold it; use 'zero-pad'"
            )
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise InputError(f"scale is {self.scale}: it must be a positive number")
        if not all(bool(torch.isfinite(v).all()) for v in (self.mean, self.E, self.group.Q, self.group.theta, self.r)):
            raise InputError("the model's parameters hold NaN or infinity")

    # -- what it is made of ------------------------------------------------------------------------------------------

    @classmethod
    def from_lifting_map(
        cls, W: ArrayLike, grid: Grid, mean: ArrayLike | None = None, padding: float = 0.5
    ) -> LiftedModel:
        """Factor a lifting map W (grid points × d) into the model's parameters, without loss.

        On a torus, T diag(r) Qᵀ with the Fourier planes is the identity (:func:`symlift.group.regular_frequencies`), so
        W itself can be carried by the rest.  Open axes are windows of a torus that is longer by ``padding`` (rounded up to an
        odd length).  Where W is a multiple of an orthogonal matrix it goes into Q, and E only pads with zeros; otherwise
        E carries it.
        """
        W = np.asarray(W, dtype=np.float64)
        if W.ndim != 2 or len(W) != grid.size:
            raise InputError(
                f"a lifting map of shape {W.shape} does not fit the grid {grid}: it needs {grid.size} rows"
            )
        if not np.isfinite(W).all() or not np.any(W):
            raise InputError("the lifting map is zero or holds NaN or infinity")
        d = W.shape[1]
        theta, r, F, window = _torus_frame(grid, padding)
        D = len(F)
        scale = float(np.sqrt(min(d, grid.size)) / np.linalg.norm(W))
        V = scale * W
        orthogonal = d == grid.size and np.abs(V @ V.T - np.eye(d)).max() < 1e-9
        if orthogonal:
            # Qᵀ E = F_window V with E = (I, 0)ᵀ: the first d columns of Qᵀ are those, the rest is any completion
            rest = np.delete(F, window, axis=1)
            Q = np.concatenate([F[:, window] @ V, rest], axis=1).T
            kind: EmbeddingKind = "identity" if D == d else "zero-pad"
            E = embedding_matrix(kind, d, D)
        else:
            Q, kind = F.T, "linear"
            E = torch.zeros(D, d, dtype=torch.float64)
            E[torch.from_numpy(window)] = torch.from_numpy(V)
        offset = np.zeros(d) if mean is None else np.asarray(mean, dtype=np.float64)
        group = TranslationGroup(torch.from_numpy(np.ascontiguousarray(Q)), torch.from_numpy(theta))
        return cls(grid, torch.from_numpy(offset.copy()), scale, E, group, torch.from_numpy(r), kind)

    @property
    def n_features(self) -> int:
        """d, the length of an observation."""
        return int(self.E.shape[1])

    @cached_property
    def _map(self) -> Tensor:
        points = torch.from_numpy(self.grid.coordinates()).to(self.E.dtype)
        return lifting_map(self.E, self.group.Q, self.group.theta, self.r, points) / self.scale

    @cached_property
    def _inverse_map(self) -> Tensor:
        return torch.linalg.pinv(self._map, rtol=_RCOND)

    @cached_property
    def _inverse_embedding(self) -> Tensor:
        if self.kind != "linear":
            return self.E.T
        # the window's rows only: those of the rest of the torus are zero, and so are their columns of the inverse
        inverse = torch.zeros_like(self.E.T)
        used = self.E.detach().any(dim=1)
        inverse[:, used] = torch.linalg.pinv(self.E[used], rtol=_RCOND)
        return inverse

    def lifting_map(self) -> NDArray[np.float64]:
        """W (grid points × d): ``lift(X) = (X - mean) Wᵀ``."""
        return self._map.detach().numpy().copy()

    def generators(self) -> NDArray[np.float64]:
        """Effective generators in observation space, L_eff = E⁺ L̂ E, (P, d, d)."""
        return (self._inverse_embedding @ self.group.generators() @ self.E).detach().numpy().copy()

    def kernel(self, transform: ArrayLike) -> NDArray[np.float64]:
        """Recovery kernel k(s, t) = w₀ᵀ ρ̂(-t) E A δ_s for x = A f, A = transformᵀ: (latent points, grid points).

        ``latent @ model.kernel(transform)`` is what the model recovers from noise-free observations of zero mean.
        """
        A = np.asarray(transform, dtype=np.float64)
        if A.ndim != 2 or A.shape[1] != self.n_features:
            raise InputError(f"a transform of shape {A.shape} does not end in d = {self.n_features} columns")
        return A @ self.lifting_map().T

    # -- what it does ------------------------------------------------------------------------------------------------

    def lift(self, X: Rows, out: NDArray | None = None) -> Rows:
        """Y = (X - mean) Wᵀ, (n, grid points); ``out`` may be a memmap, so that nothing of size n is held in memory."""
        return self._stream(
            X, self.n_features, lambda x, on: (x - on(self.mean)) @ on(self._map).T, self.grid.size, out
        )

    def unlift(self, Y: Rows, out: NDArray | None = None) -> Rows:
        """X = mean + Y W⁺ᵀ with the Moore–Penrose inverse: of all x that lift nearest to y, the one nearest to the mean."""
        return self._stream(
            Y, self.grid.size, lambda y, on: on(self.mean) + y @ on(self._inverse_map).T, self.n_features, out
        )

    def act(self, X: Rows, t: Sequence[float] | NDArray | Tensor, out: NDArray | None = None) -> Rows:
        """mean + E⁺ ρ̂(t) E (X - mean), t in grid steps: moves the lifted signal by +t."""
        steps = torch.as_tensor(np.asarray(t, dtype=np.float64)).reshape(-1)
        if len(steps) != self.grid.ndim or not bool(torch.isfinite(steps).all()):
            raise InputError(f"a translation on the grid {self.grid} takes {self.grid.ndim} finite numbers, not {t!r}")
        moved = self._inverse_embedding @ self.group.matrix(steps.to(self.E.dtype)) @ self.E
        return self._stream(
            X, self.n_features, lambda x, on: on(self.mean) + (x - on(self.mean)) @ on(moved).T, self.n_features, out
        )

    def _stream(self, X: Any, columns: int, step: Any, width: int, out: NDArray | None) -> Any:
        """Apply ``step`` to slices of rows.  Tensors are taken whole and keep their device and their gradients."""
        if isinstance(X, Tensor):
            rows = _check_rows(X, columns)
            return step(rows, lambda v: v.to(dtype=rows.dtype, device=rows.device))
        array = X if isinstance(X, np.ndarray) else np.asarray(X)
        rows = _check_rows(array, columns)
        dtype = np.float32 if rows.dtype == np.float32 else np.float64
        result = np.empty((len(rows), width), dtype=dtype) if out is None else out
        if result.shape != (len(rows), width):
            raise InputError(f"out has shape {result.shape}: it must be ({len(rows)}, {width})")
        kind = torch.float32 if dtype == np.float32 else torch.float64
        for part in _batches(len(rows), max(columns, width)):
            batch = torch.from_numpy(np.array(rows[part], dtype=dtype, order="C"))
            if not bool(torch.isfinite(batch).all()):
                bad = part.start + int(torch.nonzero(~torch.isfinite(batch).all(dim=1))[0])
                raise InputError(f"row {bad} holds NaN or infinity: drop or impute it first")
            result[part] = step(batch, lambda v: v.to(kind)).detach().numpy()
        return result

    def to(self, dtype: torch.dtype) -> LiftedModel:
        """The same model with parameters of another precision."""
        group = TranslationGroup(self.group.Q.to(dtype), self.group.theta.to(dtype))
        return replace(self, mean=self.mean.to(dtype), E=self.E.to(dtype), group=group, r=self.r.to(dtype))

    # -- what is kept ------------------------------------------------------------------------------------------------

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write ``model.safetensors`` and ``model.json`` into ``folder``, each under a temporary name and then renamed."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {
            "mean": self.mean, "E": self.E, "Q": self.group.Q, "theta": self.group.theta, "r": self.r,
        }  # fmt: skip
        contiguous = {name: value.detach().contiguous() for name, value in tensors.items()}
        with write_atomically(folder / "model.safetensors") as temporary:
            save_file(contiguous, temporary)
            digest = _sha256(temporary)
        header = {
            "format": "symlift-lifted-model", "version": FORMAT_VERSION, "grid": list(self.grid.shape),
            "periodic": list(self.grid.axes_periodic), "confidence": self.grid.confidence, "scale": self.scale,
            "embedding": self.kind, "sha256": digest,
        }  # fmt: skip
        with write_atomically(folder / "model.json") as temporary:
            temporary.write_text(json.dumps(header, indent=1) + "\n")

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> LiftedModel:
        """Read what :meth:`save` wrote.  Never runs code; a file that is not what it should be is named in the error."""
        folder = Path(folder)
        header_path, tensor_path = folder / "model.json", folder / "model.safetensors"
        for path in (header_path, tensor_path):
            if not path.is_file():
                raise InputError(f"{path} is missing: {folder} is not a saved symlift model")
        try:
            header = json.loads(header_path.read_text())
            version = int(header["version"])
            if header["format"] != "symlift-lifted-model":
                raise InputError(f"{header_path} is not a symlift model: its format is {header['format']!r}")
            if version > FORMAT_VERSION:
                raise InputError(
                    f"{header_path} has format version {version}, this symlift reads up to {FORMAT_VERSION}: upgrade symlift"
                )
            grid = Grid(tuple(header["grid"]), tuple(header["periodic"]), header["confidence"])
            kind, scale, digest = header["embedding"], float(header["scale"]), str(header["sha256"])
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
            raise InputError(f"{header_path} is damaged ({type(error).__name__}): save the model again") from None
        if _sha256(tensor_path) != digest:
            raise InputError(
                f"{tensor_path} is truncated or does not belong to {header_path.name}: save the model again"
            )
        try:
            parts = load_file(tensor_path)
            group = TranslationGroup(parts["Q"], parts["theta"])
            return cls(grid, parts["mean"], scale, parts["E"], group, parts["r"], cast(EmbeddingKind, kind))
        except (SafetensorError, KeyError) as error:
            raise InputError(f"{tensor_path} cannot be read ({error}): save the model again") from None


def _torus_frame(grid: Grid, padding: float) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """(θ, r, F, window): torus around the grid, F (D, D) orthogonal whose columns are its points in plane coordinates,
    and the columns that are the grid's own points."""
    lengths = []
    for length, wraps in zip(grid.shape, grid.axes_periodic, strict=True):
        longer = length if wraps else length + int(np.ceil(padding * length))
        lengths.append(longer if wraps else longer + 1 - longer % 2)
    torus = Grid(tuple(lengths), periodic=True)
    theta, r = regular_frequencies(torus.shape)
    D = 2 * theta.shape[1] + 1
    window = torus.flat(grid.indices())
    # the same coordinates as the grid's own, so that the window sits where T(θ) is evaluated
    points = torus.indices() - (np.array(grid.shape) - 1) / 2
    T = plane_basis(torch.from_numpy(theta), torch.from_numpy(points), D)
    F = (T * spread_filter(torch.from_numpy(r), D)).numpy().T
    if F.shape[1] < D:  # self-conjugate modes fill only half of their plane
        F = np.concatenate([F, null_space(F.T)], axis=1)
    return theta, r, F, window


def _check_rows(X: Any, columns: int) -> Any:
    if X.ndim != 2 or X.shape[1] != columns:
        raise InputError(f"an array of shape {tuple(X.shape)} was given where (n, {columns}) is needed")
    if not isinstance(X, Tensor) and X.dtype.kind not in "fiub":
        raise InputError(f"an array of dtype {X.dtype} was given where numbers are needed")
    return X


def _batches(n: int, width: int) -> Iterator[slice]:
    rows = max(1, _BATCH_NUMBERS // max(1, width))
    yield from (slice(start, min(n, start + rows)) for start in range(0, n, rows))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class write_atomically:  # noqa: N801 - used like a function
    """``with write_atomically(path) as temporary``: ``path`` appears whole when the block succeeds, or not at all."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __enter__(self) -> Path:
        handle, name = tempfile.mkstemp(prefix=f".{self.path.name}.", dir=self.path.parent)
        os.close(handle)
        self.temporary = Path(name)
        return self.temporary

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.temporary.unlink(missing_ok=True)
            return
        # mkstemp makes private files; a result should have the mode that any new file gets
        umask = os.umask(0)
        os.umask(umask)
        self.temporary.chmod(0o666 & ~umask)
        with self.temporary.open("rb") as file:
            os.fsync(file.fileno())
        self.temporary.replace(self.path)
