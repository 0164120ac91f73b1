"""The dashboard as it is started by its command, asked as a browser would ask, and a browser that
looks at it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import Message
from functools import cached_property
from urllib.parse import urlencode

import pytest
from processes import eventually
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

# Nothing but the page: no network of its own, no first steps, nothing left behind.
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--window-size=1280,900",
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What the dashboard answers."""

    status: int
    headers: Message
    text: str


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


@dataclass(frozen=True)
class Dashboard:
    """A dashboard that listens.

    Args:
        entrance: the address that it printed; its code works once, for a browser or for `cookie`.
    """

    entrance: str

    @property
    def root(self) -> str:
        """Its address without the code."""
        return self.entrance.partition("/?")[0]

    @cached_property
    def cookie(self) -> str:
        """The cookie of a browser that has come by the entrance."""
        answer = self.ask(self.entrance.removeprefix(self.root), cookie=None)
        return str(answer.headers["set-cookie"]).partition(";")[0]

    def ask(
        self,
        path: str,
        form: Mapping[str, str] | None = None,
        method: str | None = None,
        **headers: str | None,
    ) -> Answer:
        """The answer to a browser that has come by the entrance, without following where it is
        sent.

        Names of headers have _ for -; None leaves one out.
        """
        content = None if form is None else urlencode(form).encode()
        usual = {} if form is None else {"hx_request": "true"}
        if "cookie" not in headers:
            usual["cookie"] = self.cookie
        sent = {
            name.replace("_", "-"): text
            for name, text in {**usual, **headers}.items()
            if text is not None
        }
        request = urllib.request.Request(self.root + path, content, sent, method=method)
        try:
            with urllib.request.build_opener(_Stay).open(request, timeout=60) as found:
                return Answer(found.status, found.headers, found.read().decode())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.headers, error.read().decode())


@contextmanager
def dashboard(url: str, *options: str) -> Iterator[Dashboard]:
    """The dashboard of a database URL, in a process of its own, until Ctrl-C."""
    fixed = ["dashboard", "--no-browser", "--port", "0", "--url", url]
    command = [sys.executable, "-I", "-m", "cerebro_db", *fixed, *options]
    with subprocess.Popen(
        command, cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stderr
        address = process.stdout.readline().strip()
        try:
            assert address, process.stderr.read()
            yield Dashboard(address)
        finally:
            process.send_signal(2)
            ending = process.wait(timeout=60), process.stderr.read()
        assert ending == (0, "")


class Browser:
    """A browser with one page."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def look(self, expression: str) -> object:
        """What an expression of JavaScript says, once that is true."""
        return eventually(lambda: self.driver.execute_script(f"return {expression}"))

    def complaints(self) -> list[str]:
        """What the browser has to say against the programs of pages since this was asked last."""
        lines: list[dict[str, str]] = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [line["message"] for line in lines if line["level"] == "SEVERE"]

    def text(self, selector: str) -> str:
        """What can be read in the first element, once there is something."""
        return str(self.look(f"document.querySelector({selector!r})?.innerText"))

    def click(self, selector: str) -> None:
        """Clicks on the first element, once it is there."""
        self.look(f"document.querySelector({selector!r}) !== null")
        self.driver.execute_script(f"document.querySelector({selector!r}).click()")

    def fill(self, selector: str, value: str) -> None:
        """Types into a field, or chooses in a list, once it is there."""
        self.look(f"document.querySelector({selector!r}) !== null")
        self.driver.execute_script(
            f"const field = document.querySelector({selector!r}); field.value = arguments[0];"
            "field.dispatchEvent(new Event('change', {bubbles: true}))",
            value,
        )

    def type(self, selector: str, value: str) -> None:
        """Types into a field that answers while one types."""
        self.look(f"document.querySelector({selector!r}) !== null")
        self.driver.execute_script(
            f"const field = document.querySelector({selector!r}); field.value = arguments[0];"
            "field.dispatchEvent(new Event('input', {bubbles: true}))",
            value,
        )


@contextmanager
def browser() -> Iterator[Browser]:
    """Debian's chromium, without a window."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("no browser: chromium and chromedriver are not installed")
    with tempfile.TemporaryDirectory() as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = program
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        started = webdriver.Chrome(options, Service(driver))
        try:
            yield Browser(started)
        finally:
            started.quit()
