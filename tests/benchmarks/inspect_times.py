"""`python -m tests.benchmarks.inspect_times`: how long a header takes, first and remembered.

The model has a vocabulary of 262,144 tokens and 514,000 merges, as Gemma 4 has.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.files import gguf_bytes as g

_TRIES = 9
_TOKENS, _MERGES, _TENSORS = 262_144, 514_000, 700


def main() -> None:
    """Print the best and the middle of some tries."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TUIRIG_HOME"] = str(Path(folder) / "home")
        path = Path(folder) / "model.gguf"
        path.write_bytes(_header())
        os.utime(path, (1, 1))  # long ago: it may be remembered

        from tuirig.files.gguf import read_header
        from tuirig.files.headers import header_of
        from tuirig.files.inspection import inspect

        print(f"a header of {path.stat().st_size / 1e6:.1f} MB")
        _show("header, read", lambda: read_header(path))
        header_of(path)
        _show("header, remembered", lambda: header_of(path))
        _show("inspection, remembered", lambda: inspect(path))
        command = [sys.executable, "-m", "tuirig", "inspect", str(path), "--json"]
        _show("tuirig inspect --json", lambda: _run(command))
        _show("python -c pass", lambda: _run([sys.executable, "-c", "pass"]))


def _run(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)


def _show(what: str, work: Callable[[], object]) -> None:
    times = []
    for _ in range(_TRIES):
        began = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - began))
    times.sort()
    print(f"{what:24} best {times[0]:6.1f} ms, middle {times[_TRIES // 2]:6.1f} ms")


def _header() -> bytes:
    chance = random.Random(1)
    lengths = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 15)
    tokens = [
        "".join(chance.choices("abcdefghij", k=chance.choice(lengths))) for _ in range(_TOKENS)
    ]
    merges = [
        f"{one} {other}"
        for one, other in zip(
            chance.choices(tokens, k=_MERGES), chance.choices(tokens, k=_MERGES), strict=True
        )
    ]
    keys: dict[str, g.Typed] = {
        "general.architecture": g.string("gemma4"),
        "tokenizer.ggml.model": g.string("gpt2"),
        "tokenizer.ggml.tokens": g.strings(tokens),
        "tokenizer.ggml.scores": g.numbers(g.F32, "f", [0.0] * _TOKENS),
        "tokenizer.ggml.merges": g.strings(merges),
        "tokenizer.chat_template": g.string("x" * 20_000),
    }
    size = 64 * 1024 * 18
    return g.header(
        keys,
        [g.tensor(f"blk.{n}.attn_q.weight", (2048, 1024), 2, n * size) for n in range(_TENSORS)],
    )


if __name__ == "__main__":
    main()
