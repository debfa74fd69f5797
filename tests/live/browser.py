"""A headless Chromium, driven by Debian's chromedriver over the WebDriver protocol of the W3C."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.waiting import wait_for

# How an answer names an element (https://www.w3.org/TR/webdriver2/#elements).
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
ENTER = "\ue007"
DOWN = "\ue015"


class NotInstalledError(Exception):
    """There is no Chromium, or nothing that drives it, on this machine."""


@dataclass(frozen=True)
class Browser:
    """One window; elements are named by XPath, and every call waits until they are there."""

    session: str

    def open(self, url: str) -> None:
        """Go to a page."""
        self._call("POST", "/url", {"url": url})

    def click(self, xpath: str) -> None:
        """Click on an element, as soon as that is possible."""
        self._on(xpath, "click", {})

    def fill(self, xpath: str, text: str) -> None:
        """Replace the text of a field by typing."""
        self._on(xpath, "clear", {})
        self.type(xpath, text)

    def type(self, xpath: str, text: str) -> None:
        """Type into an element."""
        self._on(xpath, "value", {"text": text})

    def text(self, xpath: str) -> str:
        """The text of an element that is visible."""
        return wait_for(xpath, lambda: self._text(xpath))

    def value(self, xpath: str) -> str:
        """What a field holds."""
        return str(self.run("return arguments[0].value", self._found(xpath)))

    def run(self, script: str, *arguments: Any) -> Any:
        """What JavaScript in the page returns."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def enter_frame(self, xpath: str) -> None:
        """From now on look into the frame of an element."""
        self._call("POST", "/frame", {"id": self._found(xpath)})

    def leave_frame(self) -> None:
        """From now on look at the page itself."""
        self._call("POST", "/frame", {"id": None})

    def to_newest_window(self) -> None:
        """From now on look at the window, or tab, that was opened last."""
        handle = self._call("GET", "/window/handles")[-1]
        self._call("POST", "/window", {"handle": handle})

    def resize(self, width: int, height: int) -> None:
        """Set the size of the window."""
        self._call("POST", "/window/rect", {"width": width, "height": height})

    @property
    def url(self) -> str:
        """The address of the page."""
        return str(self._call("GET", "/url"))

    def picture(self, path: Path) -> None:
        """Store the window as PNG."""
        path.write_bytes(base64.b64decode(self._call("GET", "/screenshot")))

    def _on(self, xpath: str, action: str, body: dict[str, Any]) -> None:
        def done() -> bool:
            try:
                self._call("POST", f"/element/{self._found(xpath)[_ELEMENT]}/{action}", body)
            except urllib.error.HTTPError:
                return False  # covered, or drawn anew in this moment
            return True

        wait_for(f"{action} on {xpath}", done)

    def _text(self, xpath: str) -> str:
        try:
            return str(self._call("GET", f"/element/{self._found(xpath)[_ELEMENT]}/text"))
        except urllib.error.HTTPError:
            return ""

    def _found(self, xpath: str) -> dict[str, str]:
        def look() -> list[dict[str, str]]:
            found: list[dict[str, str]] = self._call(
                "POST", "/elements", {"using": "xpath", "value": xpath}
            )
            return found

        return wait_for(xpath, look)[0]

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        return _call(method, self.session + path, body)


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """A browser whose profile is in ``folder``; nothing of it is left afterwards.

    Raises:
        NotInstalledError: Debian's packages are not installed.
    """
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        raise NotInstalledError("no Chromium: apt-get install chromium chromium-driver")
    options = {
        "binary": chromium,
        "args": [
            "--headless=new",
            # The sandbox refuses root, and the page is our own.
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--window-size=1300,1600",
            f"--user-data-dir={folder}",
        ],
    }
    wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
    with subprocess.Popen(
        [driver, "--port=0"],
        # Dates are typed as a locale has them.
        env={**os.environ, "LANGUAGE": "en_US"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = next(each for each in process.stdout if "successfully on port" in each)
            address = f"http://127.0.0.1:{re.findall(r'[0-9]+', line)[-1]}/session"
            session = f"{address}/{_new_session(address, wanted)}"
            try:
                yield Browser(session)
            finally:
                _call("DELETE", session)
        finally:
            process.kill()


def _new_session(address: str, wanted: dict[str, Any], tries: int = 3) -> str:
    """The id of a session; where a browser starts slowly, the driver gives up after a minute."""
    for _ in range(tries - 1):
        with suppress(urllib.error.HTTPError):
            return str(_call("POST", address, wanted)["sessionId"])
    return str(_call("POST", address, wanted)["sessionId"])


def _call(method: str, url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=600) as response:
            return json.loads(response.read())["value"]
    except urllib.error.HTTPError as error:
        error.add_note(error.read().decode(errors="replace")[:2000])
        raise
