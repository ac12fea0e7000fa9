"""`python -m tests.benchmarks.repack [MILLIONS]`: values per second of a repack, on one core.

Beside it the same search written as a plain NumPy loop over groups of 32, on a small part of the
same weights. Both take processor time, so that other work on the machine counts less.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tests.files.repack.checkpoints import as_bf16, on_grid, write_safetensors, write_template
from tuirig.files.repack.build import repack, verify

T = TypeVar("T")
GOAL_MILLIONS_S = 20.0
COLUMNS = 1024
LOOPED_GROUPS = 4000


def loop_over_groups(weights: NDArray[np.float32]) -> float:
    """Step, levels and the best of nine fp16 steps of each group; the share identical in bf16."""
    identical = 0
    for group in weights.reshape(-1, 32):
        largest = np.abs(group).max()
        for count in range(1, 9):
            signs = (1,) if count < 8 else (1, -1)
            for sign in signs:
                step = sign * largest / np.float32(count)
                levels = np.clip(np.rint(group / step), -8, 7)
                if np.abs(group - levels * step).max() <= largest * 2.0**-7:
                    break
            else:
                continue
            break
        fitted = np.float16((group * levels).sum() / (levels * levels).sum())
        bits = np.array([fitted]).view(np.int16)
        near = (bits + np.arange(-4, 5, dtype=np.int16)).view(np.float16).astype(np.float32)
        identical += int(max((as_bf16(levels * step) == group).sum() for step in near))
    return identical / weights.size


def timed(work: Callable[[], T]) -> tuple[float, float, T]:
    """(processor seconds, seconds, result)."""
    began, began_wall = time.process_time(), time.perf_counter()
    result = work()
    return time.process_time() - began, time.perf_counter() - began_wall, result


def main(millions: float) -> None:
    rows = int(millions * 1e6) // COLUMNS
    weights = on_grid(np.random.default_rng(0), rows, COLUMNS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_safetensors(folder / "model.safetensors", {"model.embed_tokens.weight": weights})
        write_template(folder / "template.gguf", {"token_embd.weight": weights})
        sample = weights.reshape(-1)[: LOOPED_GROUPS * 32].copy()
        count = weights.size
        del weights
        rates = {}
        for format in ("q4_0", "bf16"):
            out = folder / f"{format}.gguf"
            cpu_s, wall_s, report = timed(
                lambda out=out, format=format: repack(folder, folder / "template.gguf", out, format)
            )
            rates[f"repack to {format}"] = (count / cpu_s, count / wall_s)
            found = report.tensors[0].against_source
            print(
                f"{format}: error {found.error:.5f}, identical in fp32"
                f" {100 * found.identical_fp32:.1f} %, in bf16 {100 * found.identical_bf16:.2f} %"
            )
        cpu_s, wall_s, _ = timed(lambda: verify(folder, folder / "q4_0.gguf"))
        rates["verify"] = (count / cpu_s, count / wall_s)
        cpu_s, wall_s, share = timed(lambda: loop_over_groups(sample))
        rates["plain loop over groups"] = (sample.size / cpu_s, sample.size / wall_s)
    print(f"{count / 1e6:.0f} M values, one matrix of {2 * count / 2**20:.0f} MiB in bf16")
    for what, (per_cpu_s, per_s) in rates.items():
        print(f"  {what:<24}{per_cpu_s / 1e6:8.2f} M values per core second{per_s / 1e6:8.2f} M/s")
    print(f"plain loop: identical in bf16 {100 * share:.2f} %")
    good = rates["repack to q4_0"][0] >= GOAL_MILLIONS_S * 1e6
    print(f"goal of {GOAL_MILLIONS_S:g} M values per core second: {'met' if good else 'missed'}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 32.0)
