"""A/A for real: how often a setting is called faster or slower than itself, with real servers.

    python -m tests.benchmarks.real_a_a [--comparisons 40] [--rig demo-gemma4] [--blocks N]

Half of the comparisons are `none` against `none`, half `q4_0:2` against itself, made as by
`tuirig ab` (12 prompts of 48 tokens, as many blocks as fit in two minutes); they share a store,
so that the noise of earlier ones counts. At most 1 in 8 may be called different. About a minute
each on two quiet cores.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tuirig.events import ignore
from tuirig.measure.prompts import choose
from tuirig.runs.ab import TOKENS, AbOptions, ab
from tuirig.runs.catalog import find_rig
from tuirig.runs.opening import open_session
from tuirig.runs.store import Store


async def compare(options: argparse.Namespace, folder: Path) -> int:
    """Print every comparison; how many were called different."""
    different = 0
    with Store(folder / "runs.sqlite") as store:
        async with open_session(find_rig(options.rig), ignore, rate_hz=0) as session:
            for number in range(options.comparisons):
                setting = ("none", options.setting)[number % 2]
                wanted = AbOptions(
                    a=setting,
                    b=setting,
                    prompts=choose(options.prompts),
                    tokens=options.tokens,
                    blocks=options.blocks,
                )
                found = await ab(session, wanted, store, ignore)
                different += found.verdict != "level"
                low, high = found.interval or (0.0, 0.0)
                print(
                    f"{number + 1:>3}  {setting:<8}  {found.ratio:.4f} [{low:.4f}, {high:.4f}]"
                    f"  {found.verdict:<6}  {found.starts} starts, {found.seconds:.0f} s,"
                    f" detectable {found.detectable:.1%}",
                    flush=True,
                )
    return different


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comparisons", type=int, default=40)
    parser.add_argument("--rig", default="demo-gemma4")
    parser.add_argument("--setting", default="q4_0:2")
    parser.add_argument("--prompts", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--blocks", type=int)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        different = asyncio.run(compare(options, Path(folder)))
    print(f"called different: {different} of {options.comparisons}")
    sys.exit(different > options.comparisons / 8)


if __name__ == "__main__":
    main()
