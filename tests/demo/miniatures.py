"""`python -m tests.demo.miniatures WHAT FOLDER`: small models for tests, made out of process."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import platformdirs

ROOT = Path(__file__).parents[2]
MAKERS = ("bigram", "gemma4", "padding", "qwen35", "smollm2", "tokenizer", "writing")


def made(what: str) -> Path:
    """The folder of "miniatures" or "smollm2", made when it is not there yet.

    It lies in the user's cache, under a key of everything that decides its content, so that later
    test runs find it.
    """
    makers = [*(ROOT / "tuirig" / "demo" / f"{name}.py" for name in MAKERS), Path(__file__)]
    key = hashlib.sha256(
        b"".join(path.read_bytes() for path in makers)
        + f"{sys.version} {version('numpy')} {version('gguf')}".encode()
    ).hexdigest()[:16]
    cache = platformdirs.user_cache_path("tuirig-tests", appauthor=False)
    folder = cache / f"{what}-{key}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as workplace:
            unfinished = Path(workplace) / what
            unfinished.mkdir()
            subprocess.run(
                [sys.executable, "-m", __name__, what, str(unfinished)],
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                cwd=ROOT,
                check=True,
                timeout=120,
            )
            try:
                unfinished.rename(folder)
            except OSError:  # another test run was first
                if not folder.is_dir():
                    raise
    return folder


def make_miniatures(folder: Path) -> None:
    """gemma4.gguf, gemma4-{f16,q8_0,q4_0}.gguf (its drafters) and qwen35.gguf (MTP inside)."""
    from tuirig.demo import smollm2
    from tuirig.demo.bigram import Language
    from tuirig.demo.gemma4 import Gemma4Pair, Gemma4Shape
    from tuirig.demo.qwen35 import Qwen35Shape, Qwen35Target

    language = Language.read(smollm2.obtain(), 4096)
    pair = Gemma4Pair(Gemma4Shape(), language)
    pair.write_target(folder / "gemma4.gguf")
    for format in ("f16", "q8_0", "q4_0"):
        pair.write_drafter(folder / f"gemma4-{format}.gguf", format)
    Qwen35Target(Qwen35Shape(dim=256, layers=4), language).write(folder / "qwen35.gguf")


def make_smollm2(folder: Path) -> None:
    """smollm2-q4_0.gguf, the requantised drafter of the wheel's own file."""
    from gguf import GGUFReader

    from tuirig.demo import smollm2
    from tuirig.demo.padding import requantise

    requantise(GGUFReader(smollm2.obtain()), folder / "smollm2-q4_0.gguf", "q4_0")


if __name__ == "__main__":
    {"miniatures": make_miniatures, "smollm2": make_smollm2}[sys.argv[1]](Path(sys.argv[2]))
