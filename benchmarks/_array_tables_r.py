"""Tables from packages of R: each entry is a line of R that makes X and, where needed, P."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from _array_tables import Table, table

PACKAGES = (
    "r-base-core r-recommended r-cran-ade4 r-cran-caret r-cran-cluster r-cran-collapse"
    " r-cran-dslabs r-cran-epi r-cran-evd r-cran-fields r-cran-forecast r-cran-gstat"
    " r-cran-luminescence r-cran-mlbench r-cran-modeldata r-cran-pls r-cran-plyr r-cran-psych"
    " r-cran-qtl r-cran-robustbase r-cran-rrcov r-cran-seriation r-cran-stars r-cran-surveillance"
    " r-cran-tidyr r-cran-vegan"
)


@dataclass(frozen=True)
class Recipe:
    """``code`` makes X (n, d) and perhaps P (d, k); ``get`` loads a data set of a package."""

    kind: str
    group: str
    code: str
    source: str
    guess: tuple[int, ...] | None = None
    either: bool = False


PRELUDE = r"""
get1 <- function(name, package, want = name) {
  e <- new.env(); suppressWarnings(data(list = name, package = package, envir = e)); e[[want]]
}
shown <- function(...) suppressWarnings(suppressPackageStartupMessages(library(...)))
markers <- function(cross, chromosomes) {
  parts <- lapply(chromosomes, function(k) {
    one <- cross$geno[[k]]$data
    # markers without a crossing between them are one: nothing could order them
    same <- function(i, j) all(one[, i] == one[, j], na.rm = TRUE)
    use <- 1
    for (j in seq_len(ncol(one))[-1]) if (!same(use[length(use)], j)) use <- c(use, j)
    list(X = one[, use], P = cbind(k, as.numeric(cross$geno[[k]]$map)[use]))
  })
  list(X = do.call(cbind, lapply(parts, `[[`, "X")), P = do.call(rbind, lapply(parts, `[[`, "P")))
}
folded <- function(value, row, column) unclass(tapply(value, list(row, column), mean))
"""

ENDING = r"""
X <- as.matrix(X); storage.mode(X) <- "double"
if (!exists("P")) P <- matrix(seq_len(ncol(X)) - 1)
P <- as.matrix(P); storage.mode(P) <- "double"
asked <- commandArgs(TRUE)[1]
write.table(X, file.path(asked, "X"), row.names = FALSE, col.names = FALSE)
write.table(P, file.path(asked, "P"), row.names = FALSE, col.names = FALSE)
"""

RECIPES: dict[str, Recipe] = {
    "irish_wind": Recipe(
        "irregular",
        "irish-wind",
        """
        w <- get1("wind", "gstat"); l <- get1("wind", "gstat", "wind.loc")
        X <- sqrt(w[, 4:15])
        degrees <- function(s) sapply(as.character(s), function(v) {
          n <- as.numeric(strsplit(v, "[^0-9.]+")[[1]]); sum(n / 60^(seq_along(n) - 1)) })
        at <- match(names(X), sub("RPT2", "RPT", as.character(l$Code)))
        P <- cbind(-degrees(l$Longitude) * cos(53 * pi / 180), degrees(l$Latitude))[at, ]
        """,
        "R gstat wind: daily wind speed at 12 Irish stations 1961-78, square roots",
    ),
    "us_ozone": Recipe(
        "irregular",
        "us-ozone",
        """
        o <- get1("ozone2", "fields"); keep <- colMeans(is.na(o$y)) < 0.15
        X <- o$y[, keep]; P <- o$lon.lat[keep, ]; P[, 1] <- P[, 1] * cos(41 * pi / 180)
        """,
        "R fields ozone2: summer days of 1987, US Midwest stations with under 15 % of gaps",
    ),
    "ozone_columns": Recipe(
        "grid",
        "satellite-ozone",
        """
        o <- get1("ozone", "plyr"); month <- rep(1:12, 6)
        rows <- matrix(aperm(o, c(3, 1, 2)), 72)
        X <- rows - apply(rows, 2, function(v) tapply(v, month, mean)[month])
        P <- cbind(rep(0:23, 24), rep(0:23, each = 24))
        """,
        "R plyr ozone: monthly ozone of 24 x 24 places in Central America, yearly cycle removed",
        (24, 24),
    ),
    "flu_bavaria": Recipe(
        "irregular",
        "flu",
        """
        shown(surveillance); f <- get1("fluBYBW", "surveillance")
        X <- log1p(f@observed); P <- sp::coordinates(f@map)[colnames(X), ]
        X <- X[rowSums(X > 0) > 20, ]; X <- X[, colMeans(X > 0) > 0.4]; P <- P[colnames(X), ]
        """,
        "R surveillance fluBYBW: weekly influenza in German districts, in weeks of an epidemic",
    ),
    "mortality_ages": Recipe(
        "line",
        "danish-rates",
        """
        m <- get1("M.dk", "Epi"); m <- m[m$A >= 30 & m$A < 90, ]
        sums <- function(v) tapply(v, list(paste(m$sex, m$P), m$A %/% 3), sum)
        years <- log(sums(m$D)) - log(sums(m$Y)); at <- seq_len(nrow(years))
        X <- residuals(lm(years ~ factor(at > length(at) / 2) * poly(at, 2)))
        """,
        "R Epi M.dk: log death rates 1974-2012 of men and women, 20 ages, slow trends removed",
    ),
    "measles_states": Recipe(
        "irregular",
        "us-diseases",
        """
        d <- get1("us_contagious_diseases", "dslabs")
        d <- d[d$weeks_reporting > 20 & !(d$state %in% c("Alaska", "Hawaii")), ]
        rate <- log((d$count + 0.5) / d$population / d$weeks_reporting)
        X <- folded(rate, paste(d$disease, d$year), as.character(d$state))
        X <- X[rowMeans(is.na(X)) < 0.3, ]; X <- X - rowMeans(X, na.rm = TRUE)
        at <- match(colnames(X), state.name); at[colnames(X) == "District Of Columbia"] <- 20
        P <- cbind(state.center$x[at] * cos(39 * pi / 180), state.center$y[at])
        """,
        "R dslabs us_contagious_diseases: seven diseases, 1928-2011, 49 states, centred rows",
    ),
    "melons_nir": Recipe(
        "line",
        "melons",
        'X <- get1("fruit", "rrcov")[, -1]',
        "R rrcov fruit: spectra of 1096 cantaloupes, 256 wavelengths",
    ),
    "gasoline_nir": Recipe(
        "line",
        "gasoline",
        'X <- unclass(get1("gasoline", "pls")$NIR)',
        "R pls gasoline: NIR spectra of 60 samples, 401 wavelengths",
    ),
    "meat_nir": Recipe(
        "line",
        "tecator",
        'X <- get1("tecator", "caret", "absorp")',
        "R caret tecator: absorbance of 215 pieces of meat, 100 wavelengths",
    ),
    "sonar": Recipe(
        "line",
        "sonar",
        'X <- get1("Sonar", "mlbench")[, 1:60]',
        "R mlbench Sonar: energy of 208 echoes in 60 bands",
    ),
    "landsat_3x3": Recipe(
        "grid",
        "landsat-statlog",
        """
        X <- get1("Satellite", "mlbench")[, 4 * (1:9)]
        P <- cbind(rep(0:2, each = 3), rep(0:2, 3))
        """,
        "R mlbench Satellite: 3 x 3 pixels of one band, 6435 places",
        (3, 3),
    ),
    "glow_temperatures": Recipe(
        "line",
        "luminescence",
        'shown(Luminescence); X <- get1("ExampleData.XSYG", "Luminescence", "TL.Spectrum")@data',
        "R Luminescence TL.Spectrum: counts at 1024 wavelengths (rows) and 24 temperatures",
    ),
    "forest_plots": Recipe(
        "grid",
        "barro-colorado",
        """
        X <- t(log1p(get1("BCI", "vegan"))); X <- X[rowSums(X > 0) > 4, ]
        P <- cbind((0:49) %/% 5, (0:49) %% 5)
        """,
        "R vegan BCI: trees of 50 plots (10 x 5) on Barro Colorado; rows are species",
        (10, 5),
    ),
    "mites": Recipe(
        "irregular",
        "mites",
        'X <- t(log1p(get1("mite", "vegan"))); P <- get1("mite.xy", "vegan")',
        "R vegan mite: mites in 70 soil cores; rows are 35 species",
    ),
    "mafragh_plants": Recipe(
        "irregular",
        "mafragh",
        'm <- get1("mafragh", "ade4"); X <- t(log1p(as.matrix(m$flo))); P <- m$xy',
        "R ade4 mafragh: plants of 97 sites; rows are 56 species",
    ),
    "venice_floods": Recipe(
        "line",
        "venice",
        'X <- get1("venice", "evd")',
        "R evd venice: the ten highest sea levels of 51 years, from highest to tenth",
    ),
    "votes_republican": Recipe(
        "line",
        "us-elections",
        'X <- get1("votes.repub", "cluster")[, -(1:3)]',
        "R cluster votes.repub: share of votes in 50 states (rows), elections 1868-1976",
    ),
    "life_expectancy": Recipe(
        "line",
        "world-bank",
        """
        w <- get1("wlddev", "collapse"); X <- folded(w$LIFEEX, w$iso3c, w$year)
        X <- X[rowMeans(is.na(X)) < 0.2, colMeans(is.na(X)) < 0.5]
        """,
        "R collapse wlddev: life expectancy of countries (rows), 1960-2019",
    ),
    "hit_weeks": Recipe(
        "line",
        "billboard",
        'X <- get1("billboard", "tidyr")[, 3 + 1:40]',
        "R tidyr billboard: rank of 317 songs in weeks 1 to 40 on the list; gaps: no longer on it",
    ),
    "mouse_listeria": Recipe(
        "lines",
        "listeria",
        'shown(qtl); m <- markers(get1("listeria", "qtl"), 1:19); X <- m$X; P <- m$P',
        "R qtl listeria: genotypes of 120 mice, 19 chromosomes",
    ),
    "mouse_chromosome5": Recipe(
        "line",
        "listeria",
        'shown(qtl); m <- markers(get1("listeria", "qtl"), 5); X <- m$X; P <- m$P[, 2]',
        "R qtl listeria, chromosome 5",
    ),
    "fly_chromosome3": Recipe(
        "line",
        "bristles",
        'shown(qtl); m <- markers(get1("bristle3", "qtl"), 1); X <- m$X; P <- m$P[, 2]',
        "R qtl bristle3: genotypes of 66 fly lines, chromosome 3",
    ),
    "mouse_hyper": Recipe(
        "lines",
        "hyper",
        """
        shown(qtl); m <- markers(get1("hyper", "qtl"), 1:19)
        # markers of which only mice with a crossing were typed tell nothing about pairs
        use <- colSums(!is.na(m$X)) > 80; X <- m$X[, use]; P <- m$P[use, ]
        """,
        "R qtl hyper: genotypes of 250 mice, 19 chromosomes, many markers in the extreme 92 only",
    ),
    "graves": Recipe(
        "line",
        "munsingen",
        'X <- t(get1("Munsingen", "seriation"))',
        "R seriation Munsingen: 59 graves by age (as Hodson ordered them), 70 kinds of finds",
    ),
    "nox_hours": Recipe(
        "ring",
        "nox",
        """
        n <- get1("NOxEmissions", "robustbase"); hour <- (as.numeric(rownames(n)) - 1) %% 24
        X <- folded(n$LNOx, as.character(n$julday), hour)
        """,
        "R robustbase NOxEmissions: log NOx at a Swiss road, days x 24 hours",
        either=True,
    ),
    "england_demand": Recipe(
        "ring",
        "england-demand",
        'X <- matrix(get1("taylor", "forecast"), ncol = 48, byrow = TRUE)',
        "R forecast taylor: electricity of England and Wales, 84 days x 48 half hours",
        either=True,
    ),
    "volcano_profiles": Recipe(
        "line", "volcano", "X <- volcano", "R datasets volcano: heights of 87 profiles at 61 places"
    ),
    "sunspot_months": Recipe(
        "line",
        "sunspots",
        "X <- sqrt(matrix(sunspot.month[1:(264 * 12)], ncol = 12, byrow = TRUE))",
        "R datasets sunspot.month: 264 years x 12 months, square roots (a line)",
    ),
    "nino_months": Recipe(
        "line",
        "nino",
        """
        x <- get1("nino", "tseries", "nino3")
        X <- matrix(x[seq_len(length(x) %/% 12 * 12)], ncol = 12, byrow = TRUE)
        """,
        "R tseries nino3: temperature of the Pacific, years x 12 months (a line)",
    ),
    "landsat_windows": Recipe(
        "grid",
        "landsat-stars",
        """
        shown(stars); x <- read_stars(system.file("tif/L7_ETMs.tif", package = "stars"))[[1]][, , 4]
        at <- expand.grid(i = seq(1, 337, 12), j = seq(1, 340, 12))
        X <- t(apply(at, 1, function(a) as.vector(t(x[a[1] + 0:11, a[2] + 0:11]))))
        P <- cbind(rep(0:11, each = 12), rep(0:11, 12))
        """,
        "R stars L7_ETMs.tif: windows of 12 x 12 pixels of the near infrared band, Olinda",
        (12, 12),
    ),
    "mountain_windows": Recipe(
        "grid",
        "prism",
        """
        z <- get1("PRISMelevation", "fields")$z[61:400, 61:560]
        at <- expand.grid(i = seq(1, 329, 10), j = seq(1, 489, 10))
        X <- t(apply(at, 1, function(a) as.vector(t(z[a[1] + 0:9, a[2] + 0:9]))))
        X <- X - rowMeans(X); X <- X[apply(X, 1, sd) > 0 & rowSums(is.na(X)) == 0, ]
        P <- cbind(rep(0:9, each = 10), rep(0:9, 10))
        """,
        "R fields PRISMelevation: windows of 10 x 10 heights in the western US, minus their mean",
        (10, 10),
    ),
    "none_cancer": Recipe(
        "none", "wdbc", 'X <- get1("brca", "dslabs")$x', "R dslabs brca: 30 measures of 569 tumours"
    ),
    "none_tissues": Recipe(
        "none",
        "tissues",
        'X <- get1("tissue_gene_expression", "dslabs")$x[, 1:200]',
        "R dslabs tissue_gene_expression: 200 genes of 189 samples",
    ),
    "none_olives": Recipe(
        "none",
        "olives",
        'X <- get1("olive", "dslabs")[, -(1:2)]',
        "R dslabs olive: eight fatty acids of 572 oils",
    ),
    "none_boston": Recipe(
        "none",
        "boston",
        'X <- get1("Boston", "MASS")',
        "R MASS Boston: 14 properties of 506 quarters",
    ),
    "none_votes": Recipe(
        "none",
        "house-votes",
        'X <- sapply(get1("HouseVotes84", "mlbench")[, -1], function(v) 1 * (v == "y"))',
        "R mlbench HouseVotes84: 16 votes of 435 congressmen, gaps",
    ),
    "none_questions": Recipe(
        "none",
        "bfi",
        'X <- get1("bfi", "psych")[, 1:25]',
        "R psych bfi: 25 questions of personality, 2800 people, gaps",
    ),
    "none_cells": Recipe(
        "none",
        "cell-segmentation",
        'X <- get1("segmentationData", "caret")[, -(1:3)]',
        "R caret segmentationData: 58 measures of 2019 cells",
    ),
}


def read(recipe: Recipe) -> Table:
    """Run one recipe. ``FileNotFoundError`` without R, ``RuntimeError`` without the package."""
    with tempfile.TemporaryDirectory() as folder:
        code = PRELUDE + recipe.code + ENDING
        run = ["Rscript", "--vanilla", "-e", code, folder]
        done = subprocess.run(run, capture_output=True, text=True, check=False)
        if done.returncode:
            lines = [line for line in done.stderr.splitlines() if "timedatectl" not in line]
            raise RuntimeError(" ".join(lines[-3:]) or "R failed")
        X, P = (
            np.genfromtxt(Path(folder) / name, missing_values="NA", filling_values=np.nan)
            for name in "XP"
        )
    if P.ndim == 1:
        P = P[:, None]
    return table(recipe.kind, recipe.group, recipe.source, X, P, recipe.guess, either=recipe.either)
