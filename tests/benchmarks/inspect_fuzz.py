"""`python -m tests.benchmarks.inspect_fuzz [COUNT]`: damaged headers against the header reader.

Prints how many were read and refused, crashes (anything but a TuirigError), and the peak memory.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from tests.files.mutations import damaged, plain_header
from tuirig.errors import TuirigError
from tuirig.files.forecast import forecast
from tuirig.files.gguf import read_header
from tuirig.files.gguf_model import Model, Shard
from tuirig.files.inspection import inspection_of
from tuirig.files.memory_flags import memory_flags
from tuirig.files.pairing import pair

ARCHITECTURES = ("llama", "gemma4", "gemma4-assistant", "eagle3", "dflash", "qwen35", "mamba")
FLAGS = memory_flags(("-c", "8192", "-fa", "off"), slots=2)


def main(count: int) -> int:
    """Run; the number of crashes."""
    chance = random.Random(20261130)
    outcomes: Counter[str] = Counter()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.gguf"
        path.write_bytes(plain_header())
        sound = _model(path)
        for _ in range(count):
            path.write_bytes(damaged(plain_header(chance.choice(ARCHITECTURES)), chance))
            try:
                model = _model(path)
                inspection_of(model)
                for type in ("draft-simple", "draft-mtp", "draft-eagle3", "draft-dflash"):
                    pair(sound, model, type)
                    pair(model, sound, type)
                    forecast(model, sound, FLAGS, type=type, length=2)
                    forecast(sound, model, FLAGS, type=type, length=2)
            except TuirigError:
                outcomes["refused"] += 1
            except Exception:
                outcomes["crashed"] += 1
                traceback.print_exc()
            else:
                outcomes["read"] += 1
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"{count:,} damaged headers in {time.monotonic() - began:.0f} s:"
        f" {outcomes['read']:,} read, {outcomes['refused']:,} refused,"
        f" {outcomes['crashed']:,} crashed; peak memory {peak / 1024:.0f} MiB"
        f" ({before / 1024:.0f} MiB before)"
    )
    return outcomes["crashed"]


def _model(path: Path) -> Model:
    """The model without the cache of headers, which would write a file for each."""
    header = read_header(path)
    return Model((Shard(str(path), header),), header)


if __name__ == "__main__":
    sys.exit(min(1, main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)))
