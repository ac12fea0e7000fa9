"""llama-server's `/metrics` (Prometheus text) as counters."""

from __future__ import annotations

import re

from tuirig.engines.base import Counters

_SAMPLE = re.compile(r'^llamacpp:(\w+)(?:\{position="(\d+)"\})? (\S+)', re.MULTILINE)
_PER_POSITION = "spec_decode_num_accepted_tokens_per_pos_total"


def parse_metrics(text: str) -> Counters:
    """Read the counters.

    The `spec_decode_*` ones exist since b10434 (llama.cpp PR 26389); before, they are None and the
    replies' timings have to do. The per-position ones appear with the first drafted reply.
    """
    totals: dict[str, int] = {}
    positions: dict[int, int] = {}
    for name, position, value in _SAMPLE.findall(text):
        if name == _PER_POSITION and position:
            positions[int(position)] = int(float(value))
        elif name.endswith("_total"):
            totals[name] = int(float(value))
    return Counters(
        predicted=totals.get("tokens_predicted_total", 0),
        drafts=totals.get("spec_decode_num_drafts_total"),
        drafted=totals.get("spec_decode_num_draft_tokens_total"),
        accepted=totals.get("spec_decode_num_accepted_tokens_total"),
        per_position=tuple(
            positions.get(index, 0) for index in range(max(positions, default=-1) + 1)
        ),
    )
