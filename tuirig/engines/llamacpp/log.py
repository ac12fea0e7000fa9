"""Reading llama-server's log: why it failed, why a drafter is silent, where the memory is.

Pure functions over lines. A line at level E alone is no failure: every good start of a Gemma 4 MTP
drafter may print one. The texts are those of llama.cpp builds of 2025-05 to 2026-10 (b10434 and
b11434 seen running); numbers may carry a decimal comma in old builds.
"""

from __future__ import annotations

import re
import signal
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tuirig.records import MemoryParts

_PREFIX = re.compile(r"^\d+\.\d+\.\d+\.\d+ [A-Z] (?:[a-z]{3,4} +)?(?:[\w()]+: +)?")
_ERROR = re.compile(r"^\d+\.\d+\.\d+\.\d+ E ")
_HARMLESS = re.compile(r"requires ctx_other|failed to measure the memory of the extra model")
_LAST_WORDS = re.compile(r"exiting due to|failed to load model|failed to create context")
_LINES_SHOWN = 4
_LINE_WIDTH = 300


@dataclass(frozen=True)
class Cause:
    """One sentence, the lines that show it and the next step (may be empty).

    known: the log says it. A llama-server that exits on a busy machine may lose its last lines
    (they are written by a thread of its own, which is not waited for).
    """

    message: str
    evidence: tuple[str, ...] = ()
    hint: str = ""
    port_in_use: bool = False
    known: bool = True
    out_of_memory: bool = False


@dataclass(frozen=True)
class _Sign:
    """A line that explains a failure. {0}, {1}: its groups; {file}: the file being loaded.

    names_file: its first group is a file.
    """

    pattern: str
    message: str
    hint: str = ""
    out_of_memory: bool = False
    names_file: bool = False


#: The first that stands in the log wins: from what can mean one thing only to the general.
_SIGNS = (
    _Sign(
        r"couldn't bind HTTP server socket.*port: (\d+)",
        "port {0} is in use",
        "end the other server or use another port",
    ),
    _Sign(
        r'error while handling environment variable "([^"]+)": (.+)',
        "the environment variable {0} is refused: {1}",
        "take it out of server.env",
    ),
    _Sign(
        r"unknown speculative type: (\S+)",
        "this build has no speculative type {0}",
        "use another type or another build",
    ),
    _Sign(
        r'error while handling argument "([^"]+)": the argument has been removed\.? ?(.*)',
        "{0} was removed from this build: {1}",
        "change the rig's args",
    ),
    _Sign(
        r"invalid device: (\S+)",
        "this build sees no device {0}",
        "llama-server --list-devices shows what it sees",
    ),
    _Sign(
        r'error while handling argument "([^"]+)": (?:error: )?(.+)',
        "{0} is refused: {1}",
        "change the rig's args",
    ),
    _Sign(r"error: invalid argument: (\S+)", "this build has no flag {0}", "change the rig's args"),
    _Sign(
        r"error while loading shared libraries: ([^:]+)",
        "the program needs the library {0}, which is not found",
        'add its folder to server.env, e.g. env = {{ LD_LIBRARY_PATH = "..." }}',
    ),
    _Sign(
        r"failed to open GGUF file '([^']+)' \(([^)]+)\)",
        "{file} can't be opened: {1}",
        "check the path in the rig",
        names_file=True,
    ),
    _Sign(
        r"invalid magic characters|failed to read magic|failed to read the magic",
        "{file} is no GGUF file",
        "download it again, or check the path in the rig",
    ),
    _Sign(
        r"tensor '[^']+' data is not within the file bounds",
        "{file} is cut short",
        "download it again",
    ),
    _Sign(
        r"unknown (?:model )?architecture: '([^']+)'",
        "this build does not know the architecture {0} of {file}",
        "use a newer build",
    ),
    _Sign(
        r"vector::_M_range_check|invalid vector subscript",
        "{file} does not load: it has tensors that this build can't place",
        "drafters with masked_embd_* tensors need them dropped; a target that is only partly on"
        ' the card does this too: try -ngl 99, or drafter args = ["-ngld", "0"]',
    ),
    _Sign(
        r"quantized V cache requires flash_attn",
        "a quantised V cache needs flash attention",
        'use "-fa", "on", or "-ctv", "f16"',
    ),
    _Sign(
        r"context type MTP requested but model doesn't contain MTP layers",
        "the target has no MTP layers inside",
        "draft-mtp needs a drafter file here, or a target with an MTP head",
    ),
    _Sign(
        r"cudaMalloc failed: out of memory|CUDA error: out of memory"
        r"|ErrorOutOf(?:Device|Host)Memory|Device memory allocation of size"
        r"|failed to allocate (?:CUDA|Vulkan|ROCm|SYCL|MTL)\S* buffer",
        "the card has not enough free memory",
        "use a smaller -c, a smaller file or a shorter draft length; see who else holds the card",
        out_of_memory=True,
    ),
    _Sign(
        r"ggml_aligned_malloc: insufficient memory|failed to allocate CPU\S* buffer"
        r"|failed to allocate buffer for|std::bad_alloc|unable to allocate (\S+) buffer",
        "there is not enough memory",
        "use a smaller -c or a smaller file",
        out_of_memory=True,
    ),
    _Sign(
        r"fattn[\w-]*\.(?:cu|cpp)",
        "flash attention failed on this card",
        'try "-fa", "off" in server.args, or another build',
    ),
    _Sign(
        r"pre-allocated tensor .*cannot run",
        "drafter and target are on different devices",
        'give the drafter args = ["-devd", "..."] with the device of the target\'s last layers',
    ),
    _Sign(
        r"GGML_ASSERT\(ggml_can_mul_mat",
        "an assertion failed: drafter and target do not fit together",
        "the drafter was made for a target of another size",
    ),
    _Sign(
        r"GGML_ASSERT\((target_layer_ids_n .*|n_layer_nextn .*)\) failed",
        "an assertion failed: the drafter is not of this type, or this build can't run it",
        "check the drafter's type; or try another build",
    ),
    _Sign(r"GGML_ASSERT\((.+)\) failed", "an assertion failed: {0}", "try another build"),
    _Sign(
        r"decode\(\) failed: failed to process speculative batch",
        "the drafter fails on every request: it is not a drafter of this type",
        "check the drafter's type (an MTP assistant is draft-mtp)",
    ),
    _Sign(r"((?:CUDA|ROCm|HIP|Vulkan|SYCL) error.*)", "{0}", "see the card's driver"),
    _Sign(
        r"failed to load draft model, '([^']+)'",
        "the drafter {0} does not load",
        "check the drafter's file and type",
    ),
)

_BY_SIGNAL = {
    -signal.SIGKILL: (
        "it was killed (SIGKILL); if nobody did it by hand, the machine ran out of memory",
        "dmesg shows the out-of-memory killer; use a smaller -c or a smaller file",
    ),
    -signal.SIGTERM: ("somebody ended it (SIGTERM)", ""),
    -signal.SIGHUP: ("somebody ended it (SIGHUP)", ""),
    -signal.SIGINT: ("somebody ended it (SIGINT)", ""),
    -signal.SIGILL: (
        "it was built for another processor (illegal instruction)",
        "use a build for this machine",
    ),
    -signal.SIGSEGV: ("it crashed (segmentation fault)", "try another build"),
    -signal.SIGABRT: ("it gave up (abort)", "try another build"),
}


def failure_cause(lines: Sequence[str], returncode: int | None) -> Cause:
    """Why a server failed to start, died or answers with errors.

    returncode: negative for a signal; None while it still runs.
    """
    for sign in _SIGNS:
        for line in reversed(lines):
            found = re.search(sign.pattern, line)
            if found:
                groups = [(group or "").strip() for group in found.groups()]
                file = _file(lines) or (groups[0] if sign.names_file else "a model file")
                return Cause(
                    sign.message.format(*groups, file=file),
                    _shown([line]),
                    sign.hint.format(*groups, file=file),
                    port_in_use="couldn't bind" in line,
                    out_of_memory=sign.out_of_memory,
                )
    if returncode == -signal.SIGSEGV and any("gemma4-assistant" in line for line in lines):
        return Cause(
            "it crashed (segmentation fault) while it loaded a gemma4-assistant drafter",
            _shown(_tail(lines)),
            "such a drafter fits a gemma4 target only; with a quantised draft cache try f16",
        )
    if returncode in _BY_SIGNAL:
        message, hint = _BY_SIGNAL[returncode]
        shown = _shown(_errors(lines)[:_LINES_SHOWN] or _tail(lines))
        return Cause(message, shown, hint, out_of_memory=returncode == -signal.SIGKILL)
    errors = _errors(lines)
    if errors:
        telling = [line for line in errors if not _LAST_WORDS.search(line)] or errors
        return Cause(plain(telling[0]), _shown(errors[:_LINES_SHOWN]), "")
    return Cause(
        "the log does not say why",
        _shown(_tail(lines)),
        "start it again (on a busy machine the last lines get lost), or run the command by hand",
        known=False,
    )


def silent_drafter(lines: Iterable[str]) -> tuple[str, ...]:
    """Lines of a server that is up but will not draft, the one that says it best last; () if none.

    Not an incompatible vocabulary whose tokens are translated (builds of 2025 did that and
    drafted).
    """
    found = [
        line
        for line in lines
        if re.search(r"failed to initialize speculative decoding context", line)
        or ("draft vocabs are not compatible" in line and "translated" not in line)
        or re.search(r"draft model .*(not compatible|must match)", line)
    ]
    return tuple(dict.fromkeys(plain(line) for line in found))


_BUFFER = re.compile(
    r"(\S+) +(?P<kind>model|KV|RS|compute|output) *buffer size = *(?P<size>[\d.,]+) MiB"
)
_DRAFTER_BEGINS = re.compile(r"loading draft model|creating MTP draft context")
_HOST_BUFFER = re.compile(r"^(CPU|AMX|BLAS|ACCEL)|_Host$")


def memory_parts(lines: Iterable[str]) -> MemoryParts:
    """Memory by purpose in MiB from the buffer lines; None for what the log does not name.

    target: the target's weights. cache: its KV and recurrent state. buffers: its compute and
    output buffers. drafter: everything that came with the drafter, weights, cache and buffers (for
    an MTP head inside the target only the latter two); None without a drafter model.
    Where a card holds anything, only its buffers count, else the machine's. A drafter's cache that
    is shared with the target has a `size =` line but no buffer line, and costs nothing.
    """
    target: dict[tuple[str, str], list[float]] = defaultdict(list)
    drafter: dict[tuple[str, str], list[float]] = defaultdict(list)
    section = target
    for line in lines:
        if _DRAFTER_BEGINS.search(line):
            section = drafter
        found = _BUFFER.search(line)
        if found:
            size = float(found["size"].replace(",", "."))
            section[found["kind"], found[1]].append(size)
    on_card = any(not _HOST_BUFFER.search(device) for _, device in (*target, *drafter))

    def total(buffers: dict[tuple[str, str], list[float]], *kinds: str) -> float | None:
        sizes = [
            # A context that reserves again reports the same buffer again.
            max(sizes) if kind in ("compute", "output") else sum(sizes)
            for (kind, device), sizes in buffers.items()
            if kind in kinds and (not on_card or not _HOST_BUFFER.search(device))
        ]
        return round(sum(sizes), 2) if sizes else None

    return MemoryParts(
        target_mib=total(target, "model"),
        drafter_mib=total(drafter, "model", "KV", "RS", "compute", "output"),
        cache_mib=total(target, "KV", "RS"),
        buffers_mib=total(target, "compute", "output"),
    )


def plain(line: str) -> str:
    """What a line says: without time, level and the names of component and function."""
    return " ".join(_PREFIX.sub("", line).split())[:_LINE_WIDTH]


def loading_line(lines: Sequence[str]) -> str:
    """What a loading server is at: its last line that says something."""
    for line in reversed(lines):
        text = plain(line)
        if text:
            return text
    return ""


def _file(lines: Sequence[str]) -> str:
    """The model file that failed to load, with its part; empty if the log names none."""
    for line in reversed(lines):
        drafter = re.search(r"failed to load draft model, '([^']+)'", line)
        if drafter:
            return f"the drafter {drafter[1]}"
        target = re.search(r"failed to load model,? '([^']+)'", line)
        if target:
            return f"the target {target[1]}"
    return ""


def _errors(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if _ERROR.match(line) and not _HARMLESS.search(line)]


def _tail(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.strip()][-2:]


def _shown(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(line.strip()[:_LINE_WIDTH] for line in lines)
