"""``symlift doctor``: versions, devices and optional packages of this installation."""

from __future__ import annotations

import platform
from importlib import metadata
from importlib.util import find_spec
from typing import Any

import typer

from symlift import __version__
from symlift.cli.console import AsJson, print_json

__all__ = ["EXTRAS", "doctor"]


#: optional modules and the extra that installs each
EXTRAS = {
    "torch": "train",
    "umap": "paper",
    "h5py": "data",
    "pynwb": "data",
    "mlxtend": "data",
    "zarr": "data",
    "pyarrow": "data",
    "openpyxl": "data",
    "SALib": "paper",
    "dask": "cluster",
    "spikeinterface": "ephys",
    "probeinterface": "ephys",
}


def doctor(
    as_json: AsJson = False,
) -> None:
    """Versions, devices, threads, optional extras.

    Example: symlift doctor
    """
    report: dict[str, Any] = {
        "symlift": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        **{
            name: metadata.version(name)
            for name in ("numpy", "scipy", "scikit-learn", "python-picard")
        },
        **_devices(),
        **{
            f"{name} (extra {extra})": find_spec(name) is not None for name, extra in EXTRAS.items()
        },
    }
    if as_json:
        print_json(report)
        return
    for key, value in report.items():
        typer.echo(f"{key:28} {'yes' if value is True else 'no' if value is False else value}")


def _devices() -> dict[str, Any]:
    """Version and devices of PyTorch, if it is installed."""
    if find_spec("torch") is None:
        return {}
    import torch

    return {
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
