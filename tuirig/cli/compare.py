"""`tuirig compare RUN RUN`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import msgspec

from tuirig.cli.output import answer, answer_json, columns
from tuirig.cli.running import interval
from tuirig.errors import ExitCode
from tuirig.runs.between_runs import RunComparison, compare_runs
from tuirig.runs.store import Store
from tuirig.tui.figures import gain, rate, share


def run(options: argparse.Namespace) -> int:
    """Print two stored runs side by side."""
    with Store() as store:
        found = compare_runs(store, options.a, options.b)
    if options.json:
        answer_json(msgspec.to_builtins(found))
    else:
        answer("\n".join(_report(found)))
    return ExitCode.OK


def _report(found: RunComparison) -> Iterator[str]:
    for name, one, best in (("A", found.a, found.a_best), ("B", found.b, found.b_best)):
        yield f"{name}  run {one.run}, {one.kind} of {one.rig} on {one.card.name}, best {best}"
    yield from (f"   changed: {change}" for change in found.changed)
    yield ""
    rows: list[tuple[str, ...]] = [
        ("SETTING", "A TOK/S", "GAIN", "KEPT", "B TOK/S", "GAIN", "KEPT", "B/A", "INTERVAL", "")
    ]
    for row in found.settings:
        ratio = "–" if row.ratio is None else f"{row.ratio:.3f}"
        between = interval(*(row.interval or (None, None)))
        verdict = row.verdict if row.ratio is not None else ""
        a = (rate(row.a_tok_s), gain(row.a_gain), share(row.a_kept))
        b = (rate(row.b_tok_s), gain(row.b_gain), share(row.b_kept))
        rows.append((row.setting, *a, *b, ratio, between, verdict))
    yield from columns(rows, right=(1, 2, 3, 4, 5, 6, 7))
    yield ""
    if found.a.tokens != found.b.tokens:
        yield "the replies have different lengths, so only the gains compare"
    else:
        yield "B/A is on the prompts of both; what changed between the runs' days is not noise"
