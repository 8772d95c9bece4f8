"""Run the scripts of the gallery and write its page: ``python docs/_gallery.py``."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE.parent / "examples" / "gallery"
PICTURES = HERE / "images" / "gallery"
#: in the order of the page
NAMES = ("shuffled_digits", "line_of_sensors", "ring_of_neurons", "a_derivative")

_HEAD = """# Gallery

Each picture was made by the script below it, which fits on one screen and runs in seconds.
The scripts are in `examples/gallery`; `python docs/_gallery.py` runs them and writes this page.
"""


def load(name: str) -> Any:
    """One script as a module."""
    spec = importlib.util.spec_from_file_location(f"gallery_{name}", SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page() -> str:
    """The page: title, what it shows, the picture, the script."""
    parts = [_HEAD]
    for name in NAMES:
        text = (SCRIPTS / f"{name}.py").read_text(encoding="utf-8")
        words, code = text.removeprefix('"""').split('"""', 1)
        title = name.replace("_", " ").capitalize()
        alt = " ".join(words.strip().split("\n\n")[0].split())
        picture = f"![{alt}](images/gallery/{name}.png)"
        script = f"```py\n{code.strip()}\n```\n"
        parts.append("\n\n".join([f"## {title}", words.strip(), picture, script]))
    return "\n".join(parts)


def main() -> None:
    """Run all scripts, and write their pictures and the page."""
    from symlift.plotting import save_figure

    PICTURES.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        save_figure(load(name).main(), PICTURES / f"{name}.png")
        print(name)
    (HERE / "gallery.md").write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
