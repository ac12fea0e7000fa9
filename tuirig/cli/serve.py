"""`tuirig serve RIG`: one setting, in the foreground."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from tuirig.cli import signals
from tuirig.cli.measure import setting_of
from tuirig.cli.narration import Narrator
from tuirig.cli.output import say
from tuirig.errors import ExitCode, MissingError, TuirigError
from tuirig.rigs.schema import TARGET
from tuirig.rigs.settings import Setting
from tuirig.runs.catalog import FoundRig, find_rig
from tuirig.runs.session import Session

KEY_VARIABLE = "TUIRIG_API_KEY"


def run(options: argparse.Namespace) -> int:
    """Serve until a signal comes or the server ends."""
    found = find_rig(options.rig)
    setting = setting_of(options.setting, found.rig) if options.setting else None
    key, source = _key(options.api_key_file)
    return signals.run(_serve(options, found, setting, key, source))


def _key(path: Path | None) -> tuple[str, str]:
    """The key and where it is from; both empty for a random one."""
    if path is None:
        key = os.environ.get(KEY_VARIABLE, "")
        return key, f"the value of {KEY_VARIABLE}" if key else ""
    try:
        key = path.expanduser().read_text(encoding="utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise MissingError(f"--api-key-file {path} can't be read: {error}") from None
    if not key:
        raise TuirigError(
            f"--api-key-file {path}: its first line is empty", exit_code=ExitCode.USAGE
        )
    return key, f"the first line of {path}"


async def _serve(
    options: argparse.Namespace, found: FoundRig, setting: Setting | None, key: str, source: str
) -> int:
    import asyncio

    from tuirig.cli.company import tell_of_others
    from tuirig.runs.fitting import require_fit
    from tuirig.runs.opening import open_session

    narrator = Narrator()
    try:
        async with open_session(
            found, narrator, rate_hz=0, port=options.port, api_key=key
        ) as session:
            await tell_of_others(session.card)
            chosen = setting or await _profile_setting(session, options.profile)
            await asyncio.to_thread(require_fit, session.rig, session.files, chosen)
            say(session.command(chosen).shell())
            await session.restart(chosen)
            assert session.server is not None
            say(f"serving {chosen} at {session.server.url}/v1")
            say(f"API key: {source or session.server.api_key}")
            say("ctrl+c ends it")
            await session.wait_ended()
    finally:
        narrator.close()
    return ExitCode.OK


async def _profile_setting(session: Session, reference: str | None) -> Setting:
    """The setting of the named profile, or of the one for this card and model."""
    import asyncio

    from tuirig.files.hashes import identity
    from tuirig.files.profiles import find_profile, fits
    from tuirig.runs.serving import profile_for, setting_of
    from tuirig.runs.staleness import of_another_model

    target = await asyncio.to_thread(identity, session.files[TARGET], compute=False)
    if reference is None:
        profile = await asyncio.to_thread(profile_for, session.rig, session.card.info, target)
        say(f"profile {profile.file_name} ({profile.source}): {profile.setting}")
    else:
        profile = await asyncio.to_thread(find_profile, reference)
        fit = fits(profile, session.card.info)
        if fit != "this card":
            say(f"note: the profile was measured on {profile.card.name} ({fit})")
        other = of_another_model(profile, target)
        if other:
            say(f"note: the profile was measured with another file: {other}")
    return setting_of(profile, session.rig)
