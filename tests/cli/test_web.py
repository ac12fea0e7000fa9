"""`tuirig --web`: a real site, a real screen behind it, a real server behind that."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from urllib.parse import urlsplit

import aiohttp
import psutil
import pytest

from tests.cli.support import Commands, pid_file, running, save_rig
from tests.processes import is_alive, until
from tuirig.cli import web
from tuirig.errors import ExitCode
from tuirig.rigs.schema import Rig


class Site:
    """A running `tuirig --web` and the address that it printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self.address = process.stdout.readline().strip()
        parts = urlsplit(self.address)
        self.url = f"{parts.scheme}://{parts.netloc}/"
        self.token = parts.query.removeprefix("token=")

    def screens(self) -> list[psutil.Process]:
        """The processes of the open pages."""
        return psutil.Process(self.process.pid).children()

    @asynccontextmanager
    async def visitor(self, *, known: bool) -> AsyncIterator[aiohttp.ClientSession]:
        """A browser, one that has opened the address before, or one that has not."""
        jar = aiohttp.CookieJar(unsafe=True)  # keeps cookies of a host that is an address
        async with aiohttp.ClientSession(self.url, cookie_jar=jar) as session:
            if known:
                async with session.get(self.address) as answer:
                    assert answer.status == 200
            yield session

    @asynccontextmanager
    async def page(self) -> AsyncIterator[Page]:
        """An open page."""
        async with (
            self.visitor(known=True) as session,
            session.ws_connect("/ws?width=120&height=36") as socket,
        ):
            yield Page(socket)


class Page:
    """The screen as the browser gets it."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.socket = socket

    async def press(self, key: str) -> None:
        await self.socket.send_json(["stdin", key])

    async def read_until(self, text: str) -> None:
        """Read until the screen has drawn this."""
        drawn = ""
        async with asyncio.timeout(60):
            while text not in drawn:
                drawn += (await self.socket.receive_bytes()).decode()


@pytest.fixture
def site(tiny_gemma4_rig: Rig) -> Iterator[Site]:
    save_rig(tiny_gemma4_rig)
    with running("--web", tiny_gemma4_rig.name) as process:
        yield Site(process)


async def status(
    session: aiohttp.ClientSession, path: str, headers: dict[str, str] | None = None
) -> int:
    async with session.get(path, headers=headers) as answer:
        return answer.status


async def handshake(session: aiohttp.ClientSession, headers: dict[str, str] | None = None) -> int:
    """The status with which a websocket is refused."""
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        await session.ws_connect("/ws?width=80&height=24", headers=headers)
    return refused.value.status


async def test_nobody_enters_without_the_token(site: Site) -> None:
    paths = ("/", "/?token=", "/?token=guess", "/static/js/textual.js", "/nothing", "/download/x")
    async with site.visitor(known=False) as session:
        for path in (*paths, f"/static/js/textual.js?token={site.token}"):
            assert await status(session, path) == 403, path
        assert await handshake(session) == 403
    assert not site.screens()


async def test_the_token_gives_a_cookie_that_no_script_reads(site: Site) -> None:
    async with site.visitor(known=False) as session:
        async with session.get(site.address, allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (303, "/")
            (cookie,) = answer.headers.getall("Set-Cookie")
        assert "; HttpOnly" in cookie
        assert "; SameSite=Strict" in cookie
        assert await status(session, "/") == 200
        assert await status(session, "/static/js/textual.js") == 200


async def test_another_name_or_page_is_refused(site: Site) -> None:
    port = urlsplit(site.url).port
    async with site.visitor(known=True) as session:
        for name, value in (
            ("Host", f"evil.example:{port}"),
            ("Host", "127.0.0.1"),
            ("Host", f"localhost:{port}"),
            ("Origin", "http://evil.example"),
            ("Origin", "null"),
            ("Origin", f"http://127.0.0.1:{port + 1 if port else 1}"),
        ):
            assert await status(session, site.address, {name: value}) == 403, value
            assert await handshake(session, {name: value}) == 403, value
        async with session.ws_connect("/ws", headers={"Origin": site.url.rstrip("/")}):
            pass


async def test_the_page_loads_nothing_from_elsewhere(site: Site) -> None:
    async with site.visitor(known=True) as session, session.get("/") as answer:
        page = await answer.text()
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
    assert "googleapis" not in page
    assert "/static/fonts/RobotoMono-VariableFont_wght.ttf" in page
    async with site.visitor(known=True) as session:
        assert await status(session, "/static/fonts/RobotoMono-VariableFont_wght.ttf") == 200


async def test_a_closed_page_ends_its_screen_and_server(site: Site) -> None:
    async with site.page() as page, site.page() as other:
        await other.read_until("tiny-gemma4")
        await page.read_until("tiny-gemma4")
        await page.press("\r")
        await page.read_until("ready")
        server = pid_file()
        assert server is not None
        assert is_alive(server.pid)
        for screen in site.screens():
            assert site.token not in " ".join(screen.cmdline())
            assert site.token not in "".join(screen.environ().values())
        await page.socket.close()
        await until(lambda: len(site.screens()) == 1, "one screen is left")
        assert not is_alive(server.pid)
        assert pid_file() is None


async def test_a_screen_that_ends_closes_its_page(site: Site) -> None:
    async with site.page() as page:
        await page.read_until("tiny-gemma4")
        await page.press("q")
        async with asyncio.timeout(20):
            while not page.socket.closed:
                await page.socket.receive()
    async with site.page() as page:
        await page.read_until("tiny-gemma4")
        site.screens()[0].kill()
        async with asyncio.timeout(20):
            while not page.socket.closed:
                await page.socket.receive()


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.TERMINATED)],
    ids=["SIGINT", "SIGTERM"],
)
async def test_a_signal_ends_every_screen_and_server(
    site: Site, number: signal.Signals, code: ExitCode
) -> None:
    async with site.page() as page:
        await page.press("\r")
        await page.read_until("ready")
        server = pid_file()
        assert server is not None
        screens = site.screens()
        site.process.send_signal(number)
        output, told = await asyncio.to_thread(site.process.communicate, timeout=30)
        assert site.process.returncode == code
        assert not any(is_alive(screen.pid) for screen in screens)
        assert not is_alive(server.pid)
        assert pid_file() is None
    assert output == ""
    assert "in order" in told
    assert site.token not in told


async def test_a_killed_site_leaves_nothing(site: Site) -> None:
    async with site.page() as page:
        await page.press("\r")
        await page.read_until("ready")
        server, (screen,) = pid_file(), site.screens()
        assert server is not None
        site.process.kill()
        await until(lambda: not is_alive(screen.pid), "the screen ends")
        await until(lambda: not is_alive(server.pid), "its server ends")


def test_a_port_in_use(run: Commands) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        ran = run("--web", "--port", str(holder.getsockname()[1]))
    assert (ran.code, ran.stdout) == (ExitCode.IN_USE, "")
    assert "is in use" in ran.stderr


def test_without_the_extra(run: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        web, "find_spec", lambda name: None if name == "textual_serve" else find_spec(name)
    )
    ran = run("--web")
    assert ran.code == ExitCode.MISSING
    assert "pip install 'tuirig[web]'" in ran.stderr


def test_words_that_make_no_sense(run: Commands) -> None:
    assert run("--port", "8000").code == ExitCode.USAGE
    assert run("--web", "no-such-rig").code == ExitCode.MISSING
