"""Frozen records that travel through the whole program and into its JSON.

None means unknown, never zero. Shares (kept, accepted_per_position) run from 0 to 1.
"""

from __future__ import annotations

import msgspec


class CardInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a card is. kind is "nvidia" or "cpu"; memory_mib is the card's, or the machine's RAM.

    pcie_generation: the highest of card and slot (an idle card runs at less); pcie_lanes: in use.
    """

    kind: str
    name: str
    index: int | None = None
    uuid: str | None = None
    pci_address: str | None = None
    memory_mib: float | None = None
    driver: str | None = None
    pcie_generation: int | None = None
    pcie_lanes: int | None = None


class CardProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that holds memory of a card."""

    pid: int
    name: str
    memory_mib: float | None = None


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """One look at the card.

    at_s: monotonic clock. process_memory_source says where process_memory_mib comes from:
    "nvml process", "card delta", "resident memory" or "" when there is none.
    throttle: reasons in words, () for none, None for unknown. load: runnable tasks, CPU only.
    """

    at_s: float
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    process_memory_mib: float | None = None
    process_memory_source: str = ""
    temperature_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_clock_mhz: float | None = None
    utilization: float | None = None
    energy_j: float | None = None
    throttle: tuple[str, ...] | None = None
    load: float | None = None


class Cooling(msgspec.Struct, frozen=True, kw_only=True):
    """The wait before a server start. start_c, end_c: the card's temperature before and after.

    target_c: the card was to be no warmer; None without a gate (no GPU, no temperature).
    reached: it was within the time limit.
    """

    seconds: float = 0.0
    start_c: float | None = None
    end_c: float | None = None
    target_c: float | None = None
    reached: bool = True


class MemoryParts(msgspec.Struct, frozen=True, kw_only=True):
    """The server's memory by purpose in MiB, from its own allocation lines."""

    target_mib: float | None = None
    drafter_mib: float | None = None
    cache_mib: float | None = None
    buffers_mib: float | None = None


class FileIdentity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model file as it was measured. sha256 is None while it is not known."""

    file: str
    size: int | None = None
    sha256: str | None = None


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One measured generation.

    tok_s = (predicted_n - 1) * 1000 / predicted_ms, from the server's timings. ttft_ms is the
    client's clock from sending the request to the first generated text. drafted and accepted are
    None where the server reported no drafts. steps: the target's passes after the prompt; drafts:
    those of them that drafted something, None where the build does not count them.
    accepted_per_position[i]: share of drafts whose token i was accepted, as many as the draft
    length; mean_accepted_length: 1 + their sum, the target's own token included (formulas:
    measure/acceptance.py).
    clock_differs: the client's duration and the server's differ by more than 3 % and 20 ms.
    ended_by_itself: the model stopped before the token limit, so acceptance is understated.
    """

    prompt_id: str
    kind: str
    order: int = 0
    text: str = ""
    text_sha256: str = ""
    finish_reason: str = ""
    ended_by_itself: bool = False
    token_limit: int = 0
    temperature: float = 0.0
    seed: int = 0
    prompt_n: int = 0
    prompt_ms: float = 0.0
    predicted_n: int = 0
    predicted_ms: float = 0.0
    tok_s: float | None = None
    ttft_ms: float | None = None
    client_ms: float | None = None
    clock_differs: bool = False
    drafted: int | None = None
    accepted: int | None = None
    kept: float | None = None
    steps: int | None = None
    drafts: int | None = None
    accepted_per_position: tuple[float, ...] | None = None
    mean_accepted_length: float | None = None
    speculative: bool | None = None
    reading_before: Reading | None = None
    reading_after: Reading | None = None


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the server drafted exactly when it was asked to (method: "One reply").

    asked: the setting has a drafter. speculative: what /slots said. drafted: tokens drafted over
    all replies. reason: why it is not proven, empty when it is.
    """

    asked: bool
    speculative: bool | None
    drafted: int | None
    proven: bool
    reason: str = ""


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """One setting measured in one server start."""

    rig: str
    setting: str
    argv: tuple[str, ...]
    server_build: str
    started_at: str
    ready_s: float | None
    card: CardInfo
    replies: tuple[Reply, ...]
    proof: Proof
    warm_up: Reply | None = None
    memory_mib: float | None = None
    memory_source: str = ""
    memory_parts: MemoryParts | None = None
    target: FileIdentity | None = None
    drafter: FileIdentity | None = None
