"""A/B with a known difference: the same model with more and with fewer layers that only cost time.

    python -m tests.benchmarks.known_difference [--layers 28] [--fewer 1,2,4,8]

Target A has 28 appended layers, target B fewer, so B is faster by a known direction and an amount
that grows with the number of layers taken away. Both are measured in an A B B A block, each start
in a server of its own. Wherever a difference is called, the direction must be right, and it must be
called where the ratio is over the detectable difference that is printed beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

import msgspec
from gguf import GGUFReader

from tuirig.demo import smollm2
from tuirig.demo.catalog import built_in_rig
from tuirig.demo.padding import append_layers
from tuirig.events import ignore
from tuirig.measure import summary
from tuirig.measure.prompts import choose
from tuirig.rigs.schema import ModelFile
from tuirig.rigs.settings import NONE
from tuirig.runs.catalog import FoundRig
from tuirig.runs.opening import open_session
from tuirig.stats.comparison import Start, compare
from tuirig.stats.stopping import block_order


def padded(folder: Path, layers: int) -> FoundRig:
    """demo-smollm2 with another number of appended layers."""
    path = folder / f"target-{layers}.gguf"
    if not path.exists():
        append_layers(GGUFReader(smollm2.obtain()), path, layers)
    rig = msgspec.structs.replace(
        built_in_rig("demo-smollm2"),
        name=f"padded-{layers}",
        target=ModelFile(path=str(path)),
        drafter=(),
    )
    return FoundRig(rig, folder / f"padded-{layers}.toml")


async def start(found: FoundRig, prompts: int, tokens: int) -> Start:
    """One server start without a drafter."""
    async with open_session(found, ignore, rate_hz=0) as session:
        await session.restart(NONE)
        arm = await session.measure(choose(prompts), tokens=tokens)
    return summary.tok_s_by_prompt(arm.replies)


async def measure(options: argparse.Namespace, folder: Path) -> bool:
    """Print every difference; whether each was judged rightly."""
    right = True
    for fewer in map(int, options.fewer.split(",")):
        rigs = {
            "A": padded(folder, options.layers),
            "B": padded(folder, options.layers - fewer),
        }
        starts: dict[str, list[Start]] = {"A": [], "B": []}
        for side in block_order(1):
            starts[side].append(await start(rigs[side], options.prompts, options.tokens))
        found = compare(starts["A"], starts["B"])
        assert found.ratio is not None and found.detectable is not None
        over = found.ratio - 1 > found.detectable
        right &= found.verdict != "slower" and (found.verdict == "faster" or not over)
        print(
            f"{fewer} layers fewer: {found.ratio:.4f} [{found.low:.4f}, {found.high:.4f}]"
            f" {found.verdict}, detectable {found.detectable:.1%}",
            flush=True,
        )
    return right


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=28)
    parser.add_argument("--fewer", default="1,2,4,8")
    parser.add_argument("--prompts", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=64)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        right = asyncio.run(measure(options, Path(folder)))
    sys.exit(not right)


if __name__ == "__main__":
    main()
