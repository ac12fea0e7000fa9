"""The published tables (tests/data/published) in the shape that the tests need."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuirig.stats.cost_model import DraftedStart, accepted_from_kept

FOLDER = Path(__file__).parents[1] / "data" / "published"


def load(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / name).read_text())


@dataclass(frozen=True)
class Curve:
    """tok/s and acceptance by draft length; a_i for consecutive lengths from 1."""

    tok_s: dict[int, float]
    kept: dict[int, float]

    @property
    def accepted(self) -> tuple[float, ...]:
        return accepted_from_kept([self.kept[n] for n in range(1, max(self.kept) + 1)])

    @property
    def best(self) -> float:
        return max(self.tok_s.values())

    def start(self, length: int) -> DraftedStart:
        return DraftedStart(length, self.tok_s[length], self.accepted[:length])


def article() -> dict[tuple[str, str], Curve]:
    """(card, model) -> curve, lengths 0 to 3."""
    curves: dict[tuple[str, str], Curve] = {}
    for row in load("draft_length_table.json")["rows"]:
        curve = curves.setdefault((row["card"], row["model"]), Curve({}, {}))
        curve.tok_s[row["n"]] = row["tok_s"]
        if row["n"]:
            curve.kept[row["n"]] = row["kept"]
    return curves


def passes_1650ti() -> dict[str, dict[int, float]]:
    """model -> V(k) in seconds; k = 1, 2, 4, 8, ..."""
    table = load("batch_step_1650ti.json")
    together = table["E2B_aggregate_tok_s_llama_batched"]
    return {
        "E2B": {int(k): int(k) / tok_s for k, tok_s in together.items()},
        "E4B": {int(k): ms / 1000.0 for k, ms in table["E4B_tpot_ms_short_128_512"].items()},
    }


def rtx5090() -> dict[str, Curve]:
    """Power cap in watts -> curve, lengths 0 to 6."""
    caps = load("community_sweeps.json")["rtx5090_power"]["caps_w"]
    return {
        cap: Curve(dict(enumerate(found["tok_s"])), dict(enumerate(found["kept"][1:], start=1)))
        for cap, found in caps.items()
    }


def sweeps_by_kind() -> dict[str, dict[int, float]]:
    """ "card, kind of work" -> tok/s by length, of every published user sweep."""
    table = load("community_sweeps.json")
    found = {
        f"RTX 5090 at {cap} W, {kind}": dict(enumerate(columns[kind]))
        for cap, columns in table["rtx5090_power"]["caps_w"].items()
        for kind in ("tok_s", "code", "prose", "shell")
    }
    for kind in ("prose", "code"):
        lengths = table["v100"]["lengths"]
        found[f"V100, {kind}"] = dict(zip(lengths, table["v100"][kind], strict=True))
    return found
