"""What an earlier run has measured: figures that the grid begins with."""

from __future__ import annotations

from collections.abc import Mapping

from tuirig.files import hashes
from tuirig.rigs.settings import NONE
from tuirig.runs.board import Earlier
from tuirig.runs.flags import greedy
from tuirig.runs.session import Session
from tuirig.runs.settings_table import counting_arms
from tuirig.runs.store import Store
from tuirig.runs.surroundings import Surroundings


def earlier_replies(session: Session) -> Mapping[str, Earlier]:
    """By setting, from the latest run of this rig on this card that has a measured `none`.

    One run alone, because days differ by more than settings do. Hashes are looked up, not computed.
    Blocks on the disk.
    """
    files = {row: hashes.identity(path, compute=False) for row, path in session.files.items()}
    now = Surroundings(session, session.engine.mark, files)
    known = {str(setting) for setting in session.rig.settings()}
    with Store() as store:
        for run in store.runs(rig=session.rig.name):
            arms = counting_arms(store.arms(run.id))
            here = [arm for arm in arms if arm.circumstances.card.name == session.card.info.name]
            if not any(arm.setting == str(NONE) for arm in here):
                continue
            found: dict[str, Earlier] = {}
            for arm in here:
                if arm.setting in known:
                    before = found[arm.setting].replies if arm.setting in found else ()
                    changes = now.changed_since(arm.setting, arm.circumstances)
                    replies = (*before, *greedy(arm))
                    found[arm.setting] = Earlier(run.id, arm.started_at[:10], replies, changes)
            return found
    return {}
