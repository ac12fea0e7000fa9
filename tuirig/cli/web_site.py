"""textual-serve's site with a door before it. Needs the extra `web`.

textual-serve lets everybody in. Here a token gives a cookie, and a Host or Origin other than the
address that was printed is refused: a foreign page whose name leads to this machine gets nothing.
"""

from __future__ import annotations

import asyncio
import errno
import re
import secrets
from contextlib import suppress
from typing import Any

from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.server import Server, to_int

from tuirig.cli.output import answer, say
from tuirig.errors import ExitCode, TuirigError
from tuirig.hosts.ports import LOOPBACK

#: How long a screen may take to stop its server and end.
END_S = 20.0
#: The page asks for a font from elsewhere; the same one lies beside its scripts.
_FOREIGN_FONT = re.compile(r"<link[^>]*fonts\.googleapis\.com[^>]*>")
_OWN_FONT = (
    "<style>@font-face { font-family: 'Roboto Mono';"
    " src: url(/static/fonts/RobotoMono-VariableFont_wght.ttf); }</style>"
)


async def serve(command: str, port: int) -> int:
    """Serve until cancelled; command shows the screen in one page, port 0 is a free one."""
    site = Site(command)
    # A log of requests would hold the token.
    runner = web.AppRunner(await site._make_app(), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, LOOPBACK, port).start()
        site.listen_at(runner.addresses[0][1])
        answer(f"{site.public_url}/?token={site.token}")
        say("the screen opens at this address, for whoever knows it; ctrl+c ends it")
        await asyncio.Event().wait()
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        hint = "leave --port away for a free one"
        raise TuirigError(f"port {port} is in use", hint=hint, exit_code=ExitCode.IN_USE) from None
    finally:
        await runner.cleanup()
    return ExitCode.OK


class Site(Server):
    """A screen, in a process of its own, for each page that is open."""

    def __init__(self, command: str) -> None:
        super().__init__(command, host=LOOPBACK, title="tuirig")
        self.token = secrets.token_urlsafe(32)
        self._pages: dict[asyncio.Task[Any], web.WebSocketResponse] = {}

    def listen_at(self, port: int) -> None:
        """The address that counts from now on."""
        self.port = port
        self.public_url = f"http://{LOOPBACK}:{port}"

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._door)
        app.on_response_prepare.append(self._seal)
        return app

    async def on_startup(self, app: web.Application) -> None:
        """No banner."""

    async def on_shutdown(self, app: web.Application) -> None:
        """Close every page, which ends its screen, which stops its server."""
        await asyncio.gather(*(page.close() for page in self._pages.values()))
        await asyncio.gather(*self._pages, return_exceptions=True)

    @web.middleware
    async def _door(self, request: web.Request, handler: Any) -> web.StreamResponse:
        origin = request.headers.get("Origin", self.public_url)
        if f"http://{request.headers.get('Host')}" != self.public_url or origin != self.public_url:
            raise web.HTTPForbidden(text=f"The screen is at {self.public_url} alone.\n")
        cookie = f"tuirig-{self.port}"  # all ports of a host share their cookies
        if self._is_token(request.cookies.get(cookie, "")):
            response: web.StreamResponse = await handler(request)
            if request.path == "/" and isinstance(response, web.Response):
                response.text = _FOREIGN_FONT.sub(_OWN_FONT, response.text or "")
            return response
        if request.path == "/" and self._is_token(request.query.get("token", "")):
            known = web.HTTPSeeOther("/")  # the address without the token
            known.set_cookie(cookie, self.token, httponly=True, samesite="Strict")
            raise known
        raise web.HTTPForbidden(text="Open the address that tuirig printed.\n")

    def _is_token(self, text: str) -> bool:
        return secrets.compare_digest(text.encode(errors="replace"), self.token.encode())

    async def _seal(self, request: web.Request, response: web.StreamResponse) -> None:
        """Nothing is loaded from elsewhere or sent there, and no other page frames this one."""
        response.headers["Content-Security-Policy"] = (
            "default-src 'self' 'unsafe-inline' data:; frame-ancestors 'none';"
            f" connect-src 'self' {self.public_url.replace('http:', 'ws:')}"
        )
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cache-Control"] = "no-store"

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """A screen as long as its page is open; a screen that ends closes its page."""
        page = web.WebSocketResponse(heartbeat=15)
        await page.prepare(request)

        async def close() -> None:
            await page.close()

        screen = AppService(
            self.command,
            write_bytes=page.send_bytes,
            write_str=page.send_str,
            close=close,
            download_manager=self.download_manager,
        )
        task = asyncio.current_task()
        assert task is not None
        self._pages[task] = page
        try:
            width, height = (
                to_int(request.query.get(name, ""), 80) for name in ("width", "height")
            )
            await screen.start(width, height)
            assert screen._task is not None
            screen._task.add_done_callback(lambda _: asyncio.ensure_future(close()))
            with suppress(ValueError, TypeError, KeyError):  # a message that no page sends
                await self._process_messages(page, screen)
        finally:
            await _end(screen)
            del self._pages[task]
        return page


async def _end(screen: AppService) -> None:
    process = screen._process
    try:
        async with asyncio.timeout(END_S):
            await screen.stop()
            if process is not None:
                await process.wait()
    except TimeoutError:
        if process is not None and process.returncode is None:
            process.kill()  # its server dies with it
