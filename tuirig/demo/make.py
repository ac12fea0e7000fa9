"""`python -m tuirig.demo.make NAME FOLDER`: the process that makes a built-in rig's files.

A process of its own, so that numpy's memory and time are not tuirig's, BLAS can be held to one
thread, and killing it cancels the work. It prints events as JSON lines: Progress while it works,
Failed when it fails; its exit code is then the error's. It ends when its standard input is closed,
so it does not outlive tuirig.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from tuirig.demo import smollm2
from tuirig.demo.versions import write_version
from tuirig.errors import ExitCode, TuirigError
from tuirig.events import Failed, Progress

#: (share of the time that is over, what comes next); shares are those of one timed run.
Steps = Iterator[tuple[float, str]]

_VOCABULARY = 4096
_APPENDED_LAYERS = 30


def demo_gemma4(folder: Path) -> Steps:
    """The target and its drafter in three formats."""
    from tuirig.demo.bigram import Language
    from tuirig.demo.gemma4 import Gemma4Pair, Gemma4Shape

    shape = Gemma4Shape(dim=512, ff=2048, layers=16, noise=0.06, draft_dim=256)
    yield 0.0, "reading SmolLM2's vocabulary"
    language = Language.read(smollm2.obtain(), _VOCABULARY)
    yield 0.1, "factoring word pairs"
    pair = Gemma4Pair(shape, language)
    yield 0.7, "writing the target"
    # In f32 a pass waits for memory, as on a GPU, also on a CPU that is slow to unpack f16.
    pair.write_target(folder / "demo-gemma4-f32.gguf", "f32")
    for format in ("f16", "q8_0", "q4_0"):
        yield 0.95, f"writing the {format} drafter"
        pair.write_drafter(folder / f"drafter-{format}.gguf", format)


def demo_qwen35(folder: Path) -> Steps:
    """The target with its head inside."""
    from tuirig.demo.bigram import Language
    from tuirig.demo.qwen35 import Qwen35Shape, Qwen35Target

    yield 0.0, "reading SmolLM2's vocabulary"
    language = Language.read(smollm2.obtain(), _VOCABULARY)
    yield 0.1, "factoring word pairs"
    target = Qwen35Target(Qwen35Shape(layers=24), language)
    yield 0.7, "writing the target"
    target.write(folder / "demo-qwen35-f16.gguf")


def demo_smollm2(folder: Path) -> Steps:
    """The padded target and the requantised drafter."""
    from gguf import GGUFReader

    from tuirig.demo.padding import append_layers, requantise

    yield 0.0, "reading SmolLM2"
    source = GGUFReader(smollm2.obtain())
    yield 0.3, "appending layers to SmolLM2"
    append_layers(source, folder / "demo-smollm2-q4_1.gguf", _APPENDED_LAYERS)
    yield 0.5, "requantising SmolLM2"
    requantise(source, folder / "drafter-q4_0.gguf", "q4_0")


RECIPES: dict[str, Callable[[Path], Steps]] = {
    "demo-gemma4": demo_gemma4,
    "demo-qwen35": demo_qwen35,
    "demo-smollm2": demo_smollm2,
}


def main(name: str, folder: Path) -> int:
    """Make the files; the exit code."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        for share, what in RECIPES[name](folder):
            _print(Progress(what=f"{name}: {what}", done=share, total=1.0))
        write_version(name, folder)
        _print(Progress(what=f"{name}: writing to disk", done=0.97, total=1.0))
        for path in (*folder.iterdir(), folder):
            _sync(path)
    except TuirigError as error:
        _print(Failed(message=error.message, hint=error.hint, evidence=error.evidence))
        return error.exit_code
    except (OSError, MemoryError) as error:
        _print(Failed(message=f"making {name} failed: {error or 'out of memory'}"))
        return ExitCode.FAILED
    return ExitCode.OK


def _print(event: Progress | Failed) -> None:
    print(msgspec.json.encode(event).decode(), flush=True)


def _end_with_parent() -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    os._exit(ExitCode.TERMINATED)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
