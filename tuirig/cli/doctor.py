"""`tuirig doctor`."""

from __future__ import annotations

import argparse

from tuirig.cli import signals
from tuirig.cli.output import answer, answer_json
from tuirig.errors import ExitCode


def run(options: argparse.Namespace) -> int:
    """Print every finding; MISSING if one fails."""
    return signals.run(_doctor(options.json))


async def _doctor(as_json: bool) -> int:
    from tuirig.runs.doctor import Health, examine

    findings = await examine()
    failed = any(finding.health is Health.FAIL for finding in findings)
    if as_json:
        answer_json({"ok": not failed, "findings": findings})
    else:
        width = max(len(finding.what) for finding in findings)
        lines = []
        for finding in findings:
            lines.append(f"{finding.health:<5} {finding.what:<{width}}  {finding.found}")
            if finding.next:
                lines.append(f"{'':<5} {'':<{width}}  next: {finding.next}")
        answer("\n".join(lines))
    return ExitCode.MISSING if failed else ExitCode.OK
