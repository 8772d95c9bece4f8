"""The training as the authors' released code has it, where it differs from the paper's text.

Each difference is one setting, named in `_CODE`; the table in the page on training sets text, code
and preset next to each other. Configurations were released for 63 points, images and recordings.
The rows without one (rings, spins, bits) have the numbers of the text under the code's choices.

Not followed, because they are faults of that code: pools that pair neighbouring channels instead of
positions on lines, and zero padding on rings. A learned embedding is divided by the geometric mean
of all its singular values, where the code weights them by the rank that is open.
"""

from __future__ import annotations

from typing import Any

from symlift.solvers.neural.objective.critic import Layer
from symlift.solvers.neural.presets import Estimator, Settings
from symlift.solvers.neural.printed import PRINTED

__all__ = ["RELEASED"]

#: steps of an epoch there, whatever the size of the data set
_EPOCH = 100
#: what all configurations share, against the text
_CODE: dict[str, Any] = {
    "entropy": "gaussian",
    "window": "share",
    "standardise": True,
    "recondition": 10,
    "updates": "simultaneous",
    "parametrisation": "generator",
}
#: what single configurations have, against the text; both gradients are clipped on 63 points only
_OWN: dict[str, dict[str, Any]] = {
    "gsn63": {
        "resolution": 0.5,
        "infomax": 0.5,
        "batch": 2500,
        "rate": 2.5e-4,
        "estimator_rate": 2.5e-3,
        "clip": 0.5,
        "estimator_clip": 0.5,
    },
    "visual-coding": {"rank_limit": 6.0, "epochs": 1_000},
}


def _network(printed: Estimator, row: str) -> Estimator:
    """A network of the text as the code has it: its last layer linear, three strides on 63 points,
    an equal share of the norm for each layer, and the larger of two directions.
    """
    layers = printed.layers
    if row == "gsn63":
        strided = [Layer(layer.filters, layer.kernel, 2, pool=False) for layer in layers[:3]]
        layers = (*strided, *layers[3:])
    changes = {"layers": layers, "head": "linear", "norm": "share", "either": True}
    return printed.model_copy(update=changes)


def _released(row: str, text: Settings) -> Settings:
    own = _OWN.get(row, {})
    # the rings' steps are those of the table: no configuration counts their epochs
    epochs: int | None = own.get("epochs", text.epochs)
    steps = text.steps if row == "gsn15" or epochs is None else _EPOCH * epochs
    changes: dict[str, Any] = {
        # a learned offset is in the configurations of lines
        "offset": not row.startswith("mnist"),
        "estimators": tuple(_network(e, row) for e in text.estimators),
        "steps": steps,
    }
    # noise on the filter fades by epochs of 100 steps everywhere
    return text.model_copy(update=_CODE | own | changes | {"epochs": None})


#: "released-" and the name of a row → its settings
RELEASED: dict[str, Settings] = {
    f"released-{row}": _released(row, text)
    for row, text in ((name.removeprefix("paper-"), text) for name, text in PRINTED.items())
}
