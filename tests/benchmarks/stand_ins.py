"""Models that stand in for real ones on a GPU without a network, and a rig file for each.

    python -m tests.benchmarks.stand_ins FOLDER [--card "NVIDIA H200"] [--env NAME=VALUE]
        [--sizes 0b5,1b7,3b5] [--layers 10,30,60]

A miniature Gemma 4 in three sizes with its MTP drafter in f16, q8_0 and q4_0, and SmolLM2-135M with
10, 30 and 60 layers appended that cost time and change no token, drafted by itself in bf16, q8_0
and q4_0. All in closed form or copied: nothing is trained, nothing is downloaded. Ten minutes on
two cores; the rig files go where `tuirig rigs` finds them. `--sizes ""` or `--layers ""` makes none
of that family, so that several runs can share the work.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from gguf import GGUFReader

from tuirig import locations
from tuirig.demo import padding, smollm2
from tuirig.demo.bigram import Language
from tuirig.demo.gemma4 import Gemma4Pair, Gemma4Shape

SHAPES = {
    "0b5": Gemma4Shape(dim=768, ff=4096, layers=24, noise=0.08, draft_dim=256),
    "1b7": Gemma4Shape(dim=1024, ff=8192, layers=32, noise=0.08, draft_dim=256),
    "3b5": Gemma4Shape(dim=1536, ff=10240, layers=40, noise=0.08, draft_dim=256),
}
VOCABULARY = 4096


def gemma4(folder: Path, size: str) -> tuple[Path, dict[str, Path]]:
    """A target and its drafters by format."""
    pair = Gemma4Pair(SHAPES[size], Language.read(smollm2.obtain(), VOCABULARY))
    target = folder / f"gemma4-mini-{size}-f16.gguf"
    pair.write_target(target)
    drafters = {}
    for format in ("f16", "q8_0", "q4_0"):
        drafters[format] = folder / f"gemma4-mini-{size}-assistant-{format}.gguf"
        pair.write_drafter(drafters[format], format)
    return target, drafters


def smollm2_drafters(folder: Path, source: GGUFReader) -> dict[str, Path]:
    """The small model itself, by format."""
    drafters = {}
    for format in ("bf16", "q8_0", "q4_0"):
        drafters[format] = folder / f"smollm2-{format}.gguf"
        padding.requantise(source, drafters[format], format)
    return drafters


def rig_text(
    name: str, card: str, target: Path, type: str, drafters: dict[str, Path], env: Sequence[str]
) -> str:
    """A rig file with an n-gram row below the drafters."""
    rows = "".join(
        f'[[drafter]]\nformat = "{format}"\ntype = "{type}"\npath = "{path}"\n\n'
        for format, path in drafters.items()
    )
    pairs = ", ".join('{} = "{}"'.format(*pair.split("=", 1)) for pair in env)
    return (
        f'name = "{name}"\ncard = "{card}"\n'
        'note = "Stand-in: no trained model. Real serving, drafting and timing on this card."\n\n'
        f'[target]\npath = "{target}"\n\n{rows}'
        '[[drafter]]\nformat = "ngram"\ntype = "ngram-map-k"\n'
        'args = ["--spec-ngram-map-k-size-n", "3"]\n\n'
        '[server]\nargs = ["-ngl", "999", "-c", "8192", "-fa", "on", "--reasoning", "off"]\n'
        f"env = {{ {pairs} }}\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--card", default="NVIDIA H200")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--sizes", default=",".join(SHAPES), help="of the miniature Gemma 4")
    parser.add_argument("--layers", default="10,30,60", help="appended to SmolLM2")
    options = parser.parse_args()
    folder: Path = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    rigs = locations.rigs_folder()
    rigs.mkdir(parents=True, exist_ok=True)

    def write(name: str, target: Path, type: str, drafters: dict[str, Path]) -> None:
        text = rig_text(name, options.card, target, type, drafters, options.env)
        (rigs / f"{name}.toml").write_text(text, encoding="utf-8")
        print(rigs / f"{name}.toml", flush=True)

    for size in filter(None, options.sizes.split(",")):
        target, drafters = gemma4(folder, size)
        write(f"gpu-gemma4-{size}", target, "draft-mtp", drafters)
    counts = [int(count) for count in options.layers.split(",") if count]
    if not counts:
        return
    source = GGUFReader(smollm2.obtain())
    drafters = smollm2_drafters(folder, source)
    for layers in counts:
        target = folder / f"smollm2-pad{layers}-q4_1.gguf"
        padding.append_layers(source, target, layers)
        write(f"gpu-smollm2-{layers}", target, "draft-simple", drafters)


if __name__ == "__main__":
    main()
