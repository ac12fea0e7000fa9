"""Rig + setting + capabilities -> the command line, checked against the build before it runs.

Left out on purpose: `--no-cache-prompt` (measured requests ask for it themselves, a server that
goes on serving should reuse a chat's beginning) and `--sse-ping-interval` (a short one would end a
stop with a foreign open stream sooner, but clients that know no comment lines break on pings; our
own streams are closed before the stop).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from tuirig.engines.base import Command
from tuirig.engines.llamacpp.capabilities import SYNONYMS, Capabilities, Flag
from tuirig.errors import ExitCode, MissingError, TuirigError
from tuirig.hosts.ports import LOOPBACK
from tuirig.rigs.drafting import length_flag
from tuirig.rigs.schema import TARGET, Drafter, Rig
from tuirig.rigs.settings import Setting

#: Older spellings of the flags behind the draft length and the knobs (`--help` of 2025-05 to
#: 2026-03 builds); the build's own list decides.
_OLDER: dict[str, tuple[str, ...]] = {
    "--spec-draft-n-max": ("--draft-max",),
    "--spec-draft-n-min": ("--draft-min",),
    "--spec-draft-p-min": ("--draft-p-min",),
    "--spec-ngram-mod-n-max": ("--draft-max",),
    "--spec-ngram-simple-size-m": ("--spec-ngram-size-m",),
    "--spec-ngram-map-k-size-m": ("--spec-ngram-size-m",),
    "--spec-ngram-map-k4v-size-m": ("--spec-ngram-size-m",),
}
_KNOB_FLAGS = {"p_min": "--spec-draft-p-min", "n_min": "--spec-draft-n-min"}
_FLASH_ATTENTION = ("-fa", "--flash-attn")
_DEVICES = ("-dev", "--device")
_DRAFTER_DEVICES = ("-devd", "--spec-draft-device", "--device-draft")
_DRAFTER_LAYERS = ("-ngld", "--spec-draft-ngl", "--gpu-layers-draft", "--n-gpu-layers-draft")


def build_command(
    capabilities: Capabilities,
    program: str,
    rig: Rig,
    setting: Setting,
    *,
    port: int,
    paths: Mapping[str, str],
    slots: int = 1,
) -> Command:
    """The command line of a setting; the API key is not in it.

    paths: resolved files, key "target" and one per drafter row that has a file. slots: requests
    at once; more than one share one cache, so that each step is one pass over all of them.
    Raises TuirigError naming the flag, type or value that this build does not have and what it
    offers instead; MissingError for a file that paths lacks.
    """
    if not 1 <= port <= 65535:
        # llama-server would take it and listen on another one.
        raise TuirigError(f"port {port}: a port is a number from 1 to 65535")
    try:
        drafter = rig.drafter_of(setting)
    except ValueError as error:
        raise TuirigError(str(error), exit_code=ExitCode.USAGE) from None
    args = _checked(capabilities, rig.server.args, f"rig {rig.name}, server.args")
    argv = [program, "-m", _file(paths, TARGET, rig), *args, *_managed(capabilities, port, slots)]
    if drafter is not None:
        argv += _drafting(capabilities, rig, drafter, setting, paths, args)
    return Command(argv=tuple(argv), env=dict(rig.server.env), port=port)


def _managed(capabilities: Capabilities, port: int, slots: int) -> Iterator[str]:
    """What every arm has in common, as far as the build has it."""
    yield from ("--host", LOOPBACK, "--port", str(port), *_slots(capabilities, slots))

    def listed(spelling: str) -> Flag | None:
        found = capabilities.spelling(spelling)
        return capabilities.find(found) if found else None

    if listed("--metrics"):
        yield "--metrics"
    slot_states = listed("--slots")
    if slot_states and slot_states.default == "disabled":
        yield "--slots"
    if listed("-fit"):
        yield from ("-fit", "off")
    if listed("--cache-ram"):
        yield from ("--cache-ram", "0")
    no_page = capabilities.spelling("--no-ui", "--no-webui")
    if no_page:
        yield no_page
    verbosity = listed("-lv")
    if verbosity and "4: trace" in verbosity.description:
        # Shows the buffer sizes; before this scale they were shown anyway and 4 meant a line per
        # token.
        yield from ("-lv", "4")
    colors = listed("--log-colors")
    if colors and colors.argument:
        yield from ("--log-colors", "off")


def _slots(capabilities: Capabilities, slots: int) -> Iterator[str]:
    yield from ("-np", str(slots))
    if slots > 1:
        unified = capabilities.spelling("-kvu", "--kv-unified")
        if unified is None:
            raise _unfit(
                f"this llama-server ({capabilities.build}) has no cache that slots share (-kvu)",
                "use a newer build",
            )
        yield unified


def _drafting(
    capabilities: Capabilities,
    rig: Rig,
    drafter: Drafter,
    setting: Setting,
    paths: Mapping[str, str],
    rig_args: Sequence[str],
) -> Iterator[str]:
    """The drafter's part: file, type, layers, device, length, knobs, its own args."""
    where = f"rig {rig.name}, drafter {drafter.row}"
    own = _checked(capabilities, drafter.args, f"{where}, args")
    given = {*rig_args, *own}
    if drafter.has_file:
        yield from ("-md", _file(paths, drafter.row, rig))
    yield from _type(capabilities, drafter, where)
    if drafter.has_file:
        if not given.intersection(_DRAFTER_LAYERS):
            yield from _drafter_layers(capabilities)
        if not given.intersection(_DRAFTER_DEVICES):
            yield from _drafter_device(capabilities, rig_args)
    flag = length_flag(drafter.types)
    if flag is not None and setting.length is not None:
        yield from (_known(capabilities, flag, where), str(setting.length))
    for knob, value in setting.knobs:
        yield from (_known(capabilities, _KNOB_FLAGS[knob], where), f"{value:g}")
    yield from own


def _type(capabilities: Capabilities, drafter: Drafter, where: str) -> Iterator[str]:
    names = [kind.name for kind in drafter.types]
    offered = capabilities.speculative_types
    for name in names:
        if name not in offered:
            raise _unfit(
                f"{where}: this llama-server ({capabilities.build}) has no type {name}",
                f"it has: {', '.join(offered) or 'none'}; or try another build",
            )
    if capabilities.drafts_without_type:
        names = [name for name in names if name != "draft-simple"]
    if len(names) > 1 and not capabilities.combines_types:
        raise _unfit(
            f"{where}: this llama-server ({capabilities.build}) takes one type at a time",
            f"it has: {', '.join(offered)}",
        )
    if names:
        yield from ("--spec-type", ",".join(names))


def _drafter_layers(capabilities: Capabilities) -> Iterator[str]:
    flag = capabilities.find("-ngld")
    if flag is not None and not flag.removed:
        yield from ("-ngld", "all" if "'all'" in flag.description else "99")


def _drafter_device(capabilities: Capabilities, rig_args: Sequence[str]) -> Iterator[str]:
    """The device of the target's last layers, which an MTP drafter shares.

    Without it a drafter whose target was given `--device` ends in "pre-allocated tensor cannot
    run" (llama.cpp issues 24366, 24492).
    """
    for flag, value in itertools.pairwise(rig_args):
        if flag in _DEVICES and capabilities.spelling("-devd"):
            yield from ("-devd", value.split(",")[-1])
            return


def _known(capabilities: Capabilities, flag: str, where: str) -> str:
    found = capabilities.spelling(flag, *_OLDER.get(flag, ()))
    if found is None:
        raise _unfit(
            f"{where}: this llama-server ({capabilities.build}) has no {flag}",
            "use another drafter or another build",
        )
    return found


def _checked(capabilities: Capabilities, args: Sequence[str], where: str) -> list[str]:
    """Arguments of a rig as this build wants them. Raises TuirigError for what it does not have."""
    checked: list[str] = []
    rest = list(args)
    while rest:
        spelling = rest.pop(0)
        flag = capabilities.find(spelling)
        if spelling in _FLASH_ATTENTION and flag is not None:
            checked += _flash_attention(capabilities, spelling, rest, where)
            continue
        if flag is None:
            raise _unknown(capabilities, spelling, where)
        if flag.removed:
            raise _unfit(
                f"{where}: {spelling} was removed from this llama-server ({capabilities.build})",
                flag.removed,
            )
        values = [rest.pop(0) for _ in range(min(flag.values, len(rest)))]
        if len(values) < flag.values:
            raise _unfit(f"{where}: {spelling} needs a value ({flag.argument})", "")
        for value in values:
            if not flag.takes(value):
                raise _unfit(
                    f"{where}: {spelling} does not take {value!r}",
                    f"it takes: {', '.join(flag.choices)}",
                )
        checked += [spelling, *values]
    return checked


def _flash_attention(
    capabilities: Capabilities, spelling: str, rest: list[str], where: str
) -> list[str]:
    """`-fa` in the build's syntax, whichever the rig uses. Takes its value from rest."""
    value = rest.pop(0) if rest and (rest[0] == "-1" or rest[0][:1] != "-") else "on"
    wanted = next((word for word, same in SYNONYMS.items() if value in same), None)
    if wanted is None:
        raise _unfit(f"{where}: {spelling} does not take {value!r}", "it takes: on, off, auto")
    if capabilities.flash_attention_takes_value:
        return [spelling, wanted]
    return [spelling] if wanted == "on" else []  # the old switch knows no auto; off is its default


def _unknown(capabilities: Capabilities, spelling: str, where: str) -> TuirigError:
    import difflib

    if not spelling.startswith("-"):
        return _unfit(f"{where}: {spelling!r} is no flag and belongs to none", "")
    if "=" in spelling:
        name, _, value = spelling.partition("=")
        return _unfit(
            f"{where}: llama-server does not know the form {spelling}",
            f'write it as two arguments: "{name}", "{value}"',
        )
    usable = [name for flag in capabilities.flags if not flag.removed for name in flag.spellings]
    close = difflib.get_close_matches(spelling, usable, n=3)
    return _unfit(
        f"{where}: this llama-server ({capabilities.build}) has no flag {spelling}",
        f"did you mean {' or '.join(close)}?" if close else "take it out or use another build",
    )


def _file(paths: Mapping[str, str], key: str, rig: Rig) -> str:
    try:
        return paths[key]
    except KeyError:
        raise MissingError(f"rig {rig.name}: the file of {key} is missing") from None


def _unfit(message: str, hint: str) -> TuirigError:
    """A rig that this build can't run."""
    return TuirigError(message, hint=hint, exit_code=ExitCode.BAD_FILE)
