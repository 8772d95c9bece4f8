"""A photograph in colour whose tiles went through an unknown scrambler: put it together again, from
the tiles alone.

Run: python examples/unknown_scrambler.py [--out FOLDER] [-n ROWS]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from skimage.data import astronaut, chelsea, coffee

from symlift import LatentDomain

SIDE = 12


def main(n: int = 6000, out: Path | None = None, seed: int = 0) -> dict[str, Any]:
    """Scramble, recover, compare; returns what it prints."""
    rng = np.random.default_rng(seed)
    # 432 numbers for each tile of 12 × 12 pixels in three colours, and one fixed order of all of
    # them
    order = rng.permutation(3 * SIDE * SIDE)
    tiles = []
    for photograph in (astronaut(), chelsea(), coffee()):
        windows = np.lib.stride_tricks.sliding_window_view(photograph, (SIDE, SIDE), axis=(0, 1))
        top, left = (rng.integers(length, size=n // 3) for length in windows.shape[:2])
        tiles.append(np.moveaxis(windows[top, left], 1, -1))
    X = np.concatenate(tiles).reshape(-1, 3 * SIDE * SIDE)[:, order].astype(np.float32)
    print(f"{len(X)} tiles of {X.shape[1]} numbers in unknown order")
    # the solver finds that three numbers belong to each pixel, and which
    est = LatentDomain(grid=(SIDE, SIDE), random_state=seed).fit(X)
    print(f"channels at each pixel: {est.n_channels_}; {est.diagnose(X)}")

    # another photograph behind the same scrambler: every tile of it, side by side
    cat = chelsea()[20:260, 100:340].astype(np.float32)
    rows = cat.reshape(20, SIDE, 20, SIDE, 3).swapaxes(1, 2).reshape(400, -1)
    recovered = est.to_grid(est.transform(rows[:, order]))

    # only because this example knows the truth: which way up, and which channel is red
    truth = rows.reshape(400, SIDE, SIDE, 3)
    views = [flip(y) for y in (recovered, recovered.swapaxes(1, 2)) for flip in _FLIPS]
    scores = [
        [[_r(truth[..., a], view[..., b]) for b in range(3)] for a in range(3)] for view in views
    ]
    best = int(np.argmax([np.max(score, axis=1).min() for score in scores]))
    channels = np.argmax(scores[best], axis=1)
    r = float(np.max(scores[best], axis=1).min())
    print(f"correlation with the hidden photograph, the worst of three colours: r = {r:.4f}")

    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        # `transform` takes the mean tile away
        picture = views[best][..., channels] + truth.mean(axis=(0, 1, 2))
        save([rows[:, order].reshape(truth.shape), picture, truth], out / "scrambler.png")
        print(f"picture: {out / 'scrambler.png'}")
    return {"r": r, "channels": est.n_channels_}


_FLIPS: tuple[Any, ...] = (
    lambda y: y,
    lambda y: y[:, ::-1],
    lambda y: y[:, :, ::-1],
    lambda y: y[:, ::-1, ::-1],
)


def _r(a: Any, b: Any) -> float:
    return float(np.corrcoef(a.ravel(), b.ravel())[0, 1])


def save(shown: list[Any], path: Path) -> None:
    """Scrambled, recovered and hidden photograph, side by side."""
    from matplotlib.image import imsave

    whole = [
        tiles.reshape(20, 20, SIDE, SIDE, 3).swapaxes(1, 2).reshape(240, 240, 3) for tiles in shown
    ]
    imsave(path, np.clip(np.concatenate(whole, axis=1), 0, 255).astype(np.uint8))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("-n", type=int, default=6000, help="number of tiles")
    parser.add_argument("--out", type=Path, help="folder for the picture")
    arguments = parser.parse_args()
    main(arguments.n, arguments.out)
