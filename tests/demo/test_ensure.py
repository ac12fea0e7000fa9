"""Making the files of the built-in rigs: whole or not at all, once, cancellable, readable."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.demo import quick_maker
from tuirig.demo import catalog, making, versions
from tuirig.errors import ExitCode, MissingError, TuirigError
from tuirig.events import Event, Progress, ignore
from tuirig.locations import demo_folder

NAME = "demo-gemma4"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The real maker process with another recipe: small files, at a pace that a test sets."""

    def command(name: str, workplace: Path) -> tuple[str, ...]:
        return (sys.executable, "-m", quick_maker.__name__, name, str(workplace), str(tmp_path))

    monkeypatch.setattr(making, "maker_command", command)
    return tmp_path


def made_count(folder: Path) -> int:
    return len(list(folder.glob(quick_maker.STARTED.format("*"))))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 (it asks about another process)
            await asyncio.sleep(0.01)


def assert_no_leftovers() -> None:
    assert not list(demo_folder().glob(f".{NAME}.*"))


async def test_makes_reports_and_is_idempotent(quick: Path) -> None:
    events: list[Event] = []
    assert len(catalog.missing_files(NAME)) == 4
    await catalog.ensure(NAME, events.append)
    assert catalog.missing_files(NAME) == ()
    progress = [event for event in events if isinstance(event, Progress)]
    assert progress == events
    assert [event.done for event in progress] == sorted(event.done for event in progress)
    assert {event.total for event in progress} == {1.0}
    assert progress[0].what == f"{NAME}: writing small files"
    assert progress[-1].done == 1.0
    before = len(events)
    await catalog.ensure(NAME, events.append)
    assert len(events) == before
    assert made_count(quick) == 1
    assert_no_leftovers()


async def test_a_missing_file_is_made_again(quick: Path) -> None:
    await catalog.ensure(NAME, ignore)
    (demo_folder() / NAME / "drafter-q4_0.gguf").unlink()
    assert [path.name for path in catalog.missing_files(NAME)] == ["drafter-q4_0.gguf"]
    await catalog.ensure(NAME, ignore)
    assert catalog.missing_files(NAME) == ()


async def test_another_version_is_made_again(quick: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await catalog.ensure(NAME, ignore)
    (demo_folder() / NAME / "of-the-old-version").touch()
    monkeypatch.setitem(versions.VERSIONS, NAME, versions.VERSIONS[NAME] + 1)
    assert len(catalog.missing_files(NAME)) == 4
    monkeypatch.setenv(quick_maker.VERSION, str(versions.VERSIONS[NAME]))
    await catalog.ensure(NAME, ignore)
    assert catalog.missing_files(NAME) == ()
    assert not (demo_folder() / NAME / "of-the-old-version").exists()
    assert made_count(quick) == 2
    assert_no_leftovers()


async def test_two_at_once_make_it_once(quick: Path) -> None:
    (quick / quick_maker.HOLD).touch()
    events: list[Event] = []
    first = asyncio.create_task(catalog.ensure(NAME, ignore))
    await until(lambda: made_count(quick) == 1)
    second = asyncio.create_task(catalog.ensure(NAME, events.append))
    await until(lambda: bool(events))
    assert isinstance(events[0], Progress)
    assert "another tuirig" in events[0].what
    (quick / quick_maker.HOLD).unlink()
    await asyncio.gather(first, second)
    assert made_count(quick) == 1
    assert catalog.missing_files(NAME) == ()


async def test_cancelling_ends_the_maker_and_leaves_nothing(quick: Path) -> None:
    (quick / quick_maker.HOLD).touch()
    task = asyncio.create_task(catalog.ensure(NAME, ignore))
    await until(lambda: made_count(quick) == 1)
    maker = _maker(quick)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not maker.is_running()
    assert len(catalog.missing_files(NAME)) == 4
    assert_no_leftovers()


async def test_a_killed_maker_is_an_error_and_the_next_try_works(quick: Path) -> None:
    (quick / quick_maker.HOLD).touch()
    task = asyncio.create_task(catalog.ensure(NAME, ignore))
    await until(lambda: made_count(quick) == 1)
    _maker(quick).kill()
    with pytest.raises(TuirigError, match=f"making {NAME} ended with code -9"):
        await task
    assert_no_leftovers()
    (quick / quick_maker.HOLD).unlink()
    await catalog.ensure(NAME, ignore)
    assert catalog.missing_files(NAME) == ()


async def test_the_maker_ends_with_tuirig_and_its_leftovers_are_cleared(quick: Path) -> None:
    (quick / quick_maker.HOLD).touch()
    script = (
        "import asyncio, sys; from pathlib import Path; from tuirig.demo import catalog, making;"
        "making.maker_command = lambda name, place: (sys.executable, '-m',"
        f" {quick_maker.__name__!r}, name, str(place), {str(quick)!r});"
        f"asyncio.run(catalog.ensure({NAME!r}, lambda event: None))"
    )
    tuirig = await asyncio.create_subprocess_exec(sys.executable, "-c", script)
    await until(lambda: made_count(quick) == 1)
    maker = _maker(quick)
    tuirig.send_signal(signal.SIGKILL)
    await tuirig.wait()
    await until(lambda: not maker.is_running() or maker.status() == psutil.STATUS_ZOMBIE)
    assert list(demo_folder().glob(f".{NAME}.*"))
    (quick / quick_maker.HOLD).unlink()
    await catalog.ensure(NAME, ignore)
    assert catalog.missing_files(NAME) == ()
    assert_no_leftovers()


async def test_what_the_maker_says_is_the_error(
    quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(quick_maker.FAIL, "missing")
    with pytest.raises(TuirigError) as caught:
        await catalog.ensure(NAME, ignore)
    assert caught.value.exit_code == ExitCode.MISSING
    assert caught.value.message == "no SmolLM2"
    assert caught.value.evidence == ("no network",)
    assert caught.value.hint == "go online"
    monkeypatch.setenv(quick_maker.FAIL, "disk")
    with pytest.raises(TuirigError, match=f"making {NAME} failed: .*No space left on device"):
        await catalog.ensure(NAME, ignore)
    monkeypatch.setenv(quick_maker.FAIL, "bug")
    with pytest.raises(TuirigError, match="ended with code 1") as caught:
        await catalog.ensure(NAME, ignore)
    assert "AssertionError: a bug" in caught.value.evidence
    assert_no_leftovers()


async def test_too_little_room_is_said_before_anything_is_made(
    quick: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(quick)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=50 * 2**20))
    with pytest.raises(TuirigError, match=r"needs 140 MiB in .*; 50 MiB are free") as caught:
        await catalog.ensure(NAME, ignore)
    assert "TUIRIG_HOME" in caught.value.hint
    assert made_count(quick) == 0


async def test_a_folder_that_cannot_be_written_is_readable(quick: Path, home: Path) -> None:
    home.mkdir()
    (home / "cache").write_text("a file where the folder should be")
    with pytest.raises(TuirigError, match="can't be made in") as caught:
        await catalog.ensure(NAME, ignore)
    assert "TUIRIG_HOME" in caught.value.hint


async def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "gguf" else real(name)
    )
    with pytest.raises(MissingError, match=r"Python package\(s\) gguf") as caught:
        await catalog.ensure(NAME, ignore)
    assert "pip install 'tuirig[demo]'" in caught.value.hint
    assert not demo_folder().exists()


@pytest.mark.parametrize("name", ["demo-gemma4", "demo-qwen35"])
async def test_the_real_maker_makes_what_the_rig_names(name: str) -> None:
    await catalog.ensure(name, ignore)
    assert catalog.missing_files(name) == ()


def _maker(folder: Path) -> psutil.Process:
    (started,) = folder.glob(quick_maker.STARTED.format("*"))
    process = psutil.Process(int(started.suffix.removeprefix(".")))
    assert process.pid != os.getpid()
    return process
