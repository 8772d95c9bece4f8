"""Looks at every page in headless Chromium: reports of eight kinds and the documentation, on a
phone and a screen, light and dark.

Nothing may be wider than the screen, no page may complain, and none may ask for anything but its
own files. What was seen goes into one contact sheet, for people to look at. Without Chromium this
fails: pages that nobody looked at are not known to be right.

    python tests/pages/look.py --sheet docs/images/pages.png
"""

from __future__ import annotations

import argparse
import functools
import io
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from PIL import Image, ImageDraw

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from pages.browser import Browser, find_chromium  # noqa: E402
from pages.cases import CASES, make_report  # noqa: E402

WIDTHS = (390, 1280)
#: pages of the documentation that are on the contact sheet; all are looked at
SHOWN = ("index.html", "tutorials/unplaced-sensors.html", "api.html", "results.html")
# what reaches beyond the screen, innermost first: a box that scrolls by itself may hold more than
# it shows
_WIDE = """(() => {
  const width = document.documentElement.clientWidth, wide = [];
  if (document.documentElement.scrollWidth <= width) return [];
  for (const e of document.querySelectorAll("body *")) {
    const box = e.getBoundingClientRect();
    const free = !e.closest(".scroll, .md-typeset__scrollwrap, pre, [hidden]");
    if (box.width && box.right > width + 1 && free)
      wide.push(`${e.tagName.toLowerCase()}.${e.className} ${Math.round(box.right)}`);
  }
  return wide.slice(-3);
})()"""

# whether the paper is darker than the ink
_IS_DARK = """(() => {
  const sum = (text) => text.match(/[0-9.]+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0);
  const body = getComputedStyle(document.body), page = getComputedStyle(document.documentElement);
  const paper = (body.backgroundColor === "rgba(0, 0, 0, 0)" ? page : body).backgroundColor;
  return sum(paper) < sum(body.color);
})()"""


@dataclass(frozen=True)
class Look:
    """One page on one screen: what is wrong with it, and how it looked."""

    name: str
    width: int
    dark: bool
    wrong: tuple[str, ...]
    picture: Image.Image | None

    def __str__(self) -> str:
        state = "; ".join(self.wrong) if self.wrong else "right"
        return f"{self.name:44} {self.width:5} px {'dark ' if self.dark else 'light'} {state}"


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The folder behind an address of this computer, as a site is read."""

    class Silent(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def look(browser: Browser, name: str, url: str, own: str, keep: bool) -> Iterator[Look]:
    """One page on each screen; ``own`` is how addresses begin that it may ask for."""
    for width in WIDTHS:
        for dark in (False, True):
            browser.screen(width, dark, height=844 if width == 390 else 900)
            browser.open(url)
            wide = browser.run("document.documentElement.scrollWidth")
            wrong = [f"{wide} px wide: {', '.join(browser.run(_WIDE))}"] if wide > width else []
            if not browser.run(
                "[...document.images].every((i) => i.complete && i.naturalWidth > 0)"
            ):
                wrong.append("a picture is missing")
            if dark != browser.run(_IS_DARK):
                wrong.append("has the wrong colours")
            asked = [
                address
                for address in browser.requests()
                if not address.startswith((own, "data:", "blob:"))
            ]
            wrong += [f"asks for {address}" for address in asked]
            wrong += [f"complains: {str(event['params'])[:160]}" for event in browser.complaints()]
            picture = None
            if keep:
                tall = min(
                    browser.run("document.documentElement.scrollHeight"),
                    3200 if width == 390 else 3600,
                )
                browser.screen(width, dark, height=tall)
                picture = Image.open(io.BytesIO(browser.picture(whole=False))).convert("RGB")
            yield Look(name, width, dark, tuple(wrong), picture)


def contact_sheet(looks: list[Look], path: Path) -> None:
    """All pictures in one, small: one column for each page and screen."""
    shown = [one for one in looks if one.picture is not None]
    size, per_row, gap = (150, 420), 12, 8
    cell = size[0] + gap, size[1] + 22
    sheet = Image.new(
        "RGB", (per_row * cell[0] + gap, -(-len(shown) // per_row) * cell[1] + gap), "#777777"
    )
    draw = ImageDraw.Draw(sheet)
    for number, one in enumerate(shown):
        assert one.picture is not None
        x, y = gap + number % per_row * cell[0], gap + number // per_row * cell[1]
        scale = size[0] / one.picture.width
        small = one.picture.resize(
            (size[0], max(1, round(one.picture.height * scale))), Image.Resampling.LANCZOS
        )
        sheet.paste(small.crop((0, 0, size[0], min(size[1], small.height))), (x, y + 14))
        label = f"{Path(one.name).stem} {one.width} {'dark' if one.dark else 'light'}"
        draw.text((x, y), label[:26], fill="white")
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


def main() -> int:
    """Look at everything; 1 where something is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sheet",
        type=Path,
        default=ROOT / "docs" / "images" / "pages.png",
        help="the contact sheet",
    )
    sheet = parser.parse_args().sheet
    program = find_chromium()
    if program is None:
        sys.stderr.write(
            "error: no Chromium is installed, so no page was looked at: install chromium, and run"
            " it again\n"
        )
        return 1
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        site = folder / "site"
        command = [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "--quiet",
            "--site-dir",
            str(site),
        ]
        subprocess.run(command, cwd=ROOT, check=True)
        browser = Browser(program, folder / "profile")
        looks: list[Look] = []
        try:
            for kind in CASES:
                page = make_report(kind, folder)
                looks += _told(
                    look(browser, f"report of a {kind}", page.as_uri(), page.as_uri(), keep=True)
                )
            with served(site) as address:
                for page in sorted(site.rglob("*.html")):
                    name = page.relative_to(site).as_posix()
                    if name != "404.html":
                        looks += _told(
                            look(
                                browser,
                                name,
                                f"{address}/{name}",
                                f"{address}/",
                                keep=name in SHOWN,
                            )
                        )
        finally:
            browser.close()
    contact_sheet(looks, sheet)
    wrong = [one for one in looks if one.wrong]
    print(f"{len(looks)} looks, {len(wrong)} wrong; contact sheet: {sheet}")
    return 1 if wrong else 0


def _told(looks: Iterator[Look]) -> Iterator[Look]:
    for one in looks:
        print(one, flush=True)
        yield one


if __name__ == "__main__":
    raise SystemExit(main())
