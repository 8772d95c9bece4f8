"""symlift: find the hidden domain, the translation symmetry and the signals behind plain vectors.

>>> import symlift
>>> symlift.Grid((15, 15)).size
225
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

# Public names and where they live; imported on first use, so that `import symlift` itself costs
# next to nothing.
_HOME = {
    "Diagnosis": "symlift.diagnosis",
    "Grid": "symlift.core.grid",
    "InputError": "symlift.errors",
    "LatentDomain": "symlift.estimator",
    "LatentDomains": "symlift.several",
    "LiftedModel": "symlift.core.model",
    "Placement": "symlift.solvers.placement",
    "Scattered": "symlift.core.domain",
    "Sphere": "symlift.core.sphere",
    "Verdict": "symlift.diagnosis",
    "load": "symlift.loading",
    "place": "symlift.functions",
    "propose": "symlift.functions",
    "read": "symlift.runs.readers",
    "unmix": "symlift.functions",
}

__all__ = [
    "Diagnosis",
    "Grid",
    "InputError",
    "LatentDomain",
    "LatentDomains",
    "LiftedModel",
    "Placement",
    "Scattered",
    "Sphere",
    "Verdict",
    "__version__",
    "load",
    "place",
    "propose",
    "read",
    "unmix",
]

if TYPE_CHECKING:
    from symlift.core.domain import Scattered
    from symlift.core.grid import Grid
    from symlift.core.model import LiftedModel
    from symlift.core.sphere import Sphere
    from symlift.diagnosis import Diagnosis, Verdict
    from symlift.errors import InputError
    from symlift.estimator import LatentDomain
    from symlift.functions import place, propose, unmix
    from symlift.loading import load
    from symlift.runs.readers import read
    from symlift.several import LatentDomains
    from symlift.solvers.placement import Placement


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'symlift' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
