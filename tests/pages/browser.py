"""Headless Chromium, driven through its debugging pipe."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

__all__ = ["Browser", "find_chromium"]

_LAUNCH = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4);"
    " os.execv(sys.argv[3], sys.argv[3:])"
)


class Browser:
    """Headless Chromium through its debugging pipe: no driver, no port."""

    def __init__(self, program: str, profile: Path) -> None:
        child_in, self.to = os.pipe()
        self.back, child_out = os.pipe()
        flags = [
            "--headless", "--no-sandbox", "--no-first-run", "--remote-debugging-pipe",
            "--disable-gpu", "--disable-quic", "--disable-sync", "--disable-dev-shm-usage",
            "--disable-background-networking", "--disable-component-update",
            f"--user-data-dir={profile}", "--window-size=1000,900", "about:blank",
        ]  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, str(child_in), str(child_out), program, *flags],
            pass_fds=(child_in, child_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(child_in)
        os.close(child_out)
        self.buffer, self.count, self.session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def message(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self.buffer:
            if not select.select([self.back], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.back, 1 << 16)
            if not part:
                raise ConnectionError("the browser has ended")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.count += 1
        request = {"id": self.count, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.to, json.dumps(request).encode() + b"\0")
        deadline = time.monotonic() + 120
        while (message := self.message(deadline)).get("id") != self.count:
            pass
        assert "error" not in message, message
        result: dict[str, Any] = message["result"]
        return result

    def open(self, url: str) -> None:
        self.call(
            "Page.navigate", url="about:blank"
        )  # so that a change of the fragment alone is a new page, too
        self.events.clear()
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + 120
        while not self.loaded(url.partition("#")[0]):
            self.message(deadline)

    def loaded(self, url: str) -> bool:
        """Whether a load event came after the page's own navigation, rather than the one before."""
        names = [e["params"].get("frame", {}).get("url") or e["method"] for e in self.events]
        return url in names and "Page.loadEventFired" in names[names.index(url) :]

    def run(self, expression: str) -> Any:
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def key(self, name: str) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=name,
                code=name,
                windowsVirtualKeyCode={"ArrowRight": 39}[name],
            )

    def complaints(self) -> list[dict[str, Any]]:
        wrong = {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}
        return [e for e in self.events if e["method"] in wrong]

    def requests(self) -> list[str]:
        return [
            e["params"]["request"]["url"]
            for e in self.events
            if e["method"] == "Network.requestWillBeSent"
        ]

    def close(self) -> None:
        for end in (self.to, self.back):
            os.close(end)
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def screen(self, width: int, dark: bool, height: int = 900) -> None:
        """The size of the window, and whether its colours are dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", media="", features=scheme)

    def picture(self, whole: bool = True) -> bytes:
        """The page as PNG: all of it, or what is in the window."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(shot["data"])


def find_chromium() -> str | None:
    """The program, where it is installed."""
    return next(
        (
            p
            for name in ("chromium", "chromium-browser", "google-chrome")
            if (p := shutil.which(name))
        ),
        None,
    )
