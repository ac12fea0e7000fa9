from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator

import pytest

from tests.cli.support import Commands, save_rig
from tests.processes import is_alive
from tuirig.errors import ExitCode
from tuirig.events import ignore
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import NONE
from tuirig.runs.catalog import find_rig
from tuirig.runs.opening import open_session
from tuirig.runs.session import Kept


@pytest.fixture
def kept(tiny_gemma4_rig: Rig) -> Iterator[Kept]:
    """A server of the tiny rig that goes on serving."""
    save_rig(tiny_gemma4_rig)

    async def keep() -> Kept:
        async with open_session(find_rig(tiny_gemma4_rig.name), ignore, rate_hz=0) as session:
            await session.restart(NONE)
            return await session.keep_serving()

    server = asyncio.run(keep())
    yield server
    with contextlib.suppress(ProcessLookupError):
        os.kill(server.pid, signal.SIGKILL)


def test_nothing_to_stop(run: Commands) -> None:
    ran = run("stop")
    assert (ran.code, ran.stdout) == (ExitCode.OK, "no server of tuirig was left running\n")


def test_a_server_that_went_on_is_ended(run: Commands, kept: Kept) -> None:
    assert is_alive(kept.pid)
    assert kept.key_file.exists()
    assert run("stop", "demo-gemma4").stdout.startswith("no server")
    unknown = run("stop", "another-rig")
    assert unknown.code == ExitCode.MISSING
    assert "no rig and no server is called another-rig" in unknown.stderr
    assert "tiny-gemma4" in unknown.stderr
    assert is_alive(kept.pid)
    ran = run("stop", "tiny-gemma4")
    assert ran.code == ExitCode.OK
    assert f"process {kept.pid}" in ran.stderr
    assert ran.stdout == "1 server(s) ended\n"
    assert not is_alive(kept.pid)
    assert not kept.key_file.exists()


def test_everybody_tells_of_it(run: Commands, kept: Kept) -> None:
    (server,) = [f for f in run("doctor", "--json").json["findings"] if f["what"] == "server"]
    assert f"process {kept.pid}" in server["found"]
    assert server["next"] == "tuirig stop tiny-gemma4"
    assert "tuirig stop tiny-gemma4" in run("rig", "check", "tiny-gemma4").stdout
    measured = run("measure", "tiny-gemma4", "--setting", "none", "--prompts", "1", "--tokens", "8")
    assert f"process {kept.pid}, port" in measured.stderr
    assert "end it: tuirig stop tiny-gemma4" in measured.stderr
    assert run("stop").stdout == "1 server(s) ended\n"
