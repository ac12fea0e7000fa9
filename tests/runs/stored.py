"""Arms and replies for tests of what is stored."""

from __future__ import annotations

from tuirig.records import Arm, CardInfo, FileIdentity, Proof, Reading, Reply
from tuirig.runs.circumstances import Circumstances

CARD = CardInfo(kind="nvidia", name="NVIDIA GeForce RTX 3050", uuid="GPU-1", driver="615.78.08")
TARGET = FileIdentity(file="target.gguf", size=1000, sha256="a" * 64)
DRAFTER = FileIdentity(file="drafter.gguf", size=100, sha256="b" * 64)


def circumstances(setting: str = "none", **changes: object) -> Circumstances:
    drafted = setting != "none"
    values: dict[str, object] = {
        "argv": ("/bin/llama-server", "-m", "/m/target.gguf", "-c", "4096", "--port", "4321"),
        "env": {"LD_LIBRARY_PATH": "/opt"},
        "server_build": "0.1.0 (build 1, commit 7e4c0a9)",
        "program": "mark",
        "card": CARD,
        "target": TARGET,
        "drafter": DRAFTER if drafted else None,
        **changes,
    }
    return Circumstances(**values)  # type: ignore[arg-type]


def reply(
    tok_s: float,
    prompt: str = "code-1",
    *,
    kept: float | None = None,
    temperature: float = 0.0,
    text: str = "",
    energy_j: float | None = None,
    clock_mhz: float | None = None,
    throttle: tuple[str, ...] | None = None,
) -> Reply:
    """128 tokens. kept: of two drafted tokens a step. energy_j: spent over the reply."""
    drafts = None if kept is None else round(127 / (1 + 2 * kept))
    accepted = None if drafts is None or kept is None else round(2 * drafts * kept)
    before = Reading(at_s=1.0, energy_j=0.0, sm_clock_mhz=clock_mhz, throttle=throttle)
    return Reply(
        prompt_id=prompt,
        kind=prompt.rpartition("-")[0],
        text=text or f"reply to {prompt}",
        text_sha256=text or prompt,
        predicted_n=128,
        predicted_ms=127_000 / tok_s,
        tok_s=tok_s,
        temperature=temperature,
        token_limit=128,
        drafted=None if drafts is None else 2 * drafts,
        accepted=accepted,
        kept=kept,
        drafts=drafts,
        steps=drafts or 127,
        accepted_per_position=None if kept is None else (kept * 1.2, kept * 0.8),
        reading_before=before,
        reading_after=Reading(
            at_s=2.0, energy_j=energy_j, sm_clock_mhz=clock_mhz, throttle=throttle
        ),
    )


def arm(setting: str, replies: tuple[Reply, ...], memory_mib: float | None = None) -> Arm:
    asked = setting != "none"
    return Arm(
        rig="example",
        setting=setting,
        argv=circumstances(setting).argv,
        server_build="b1-7e4c0a9",
        started_at="2026-11-01T10:00:00+00:00",
        ready_s=1.5,
        card=CARD,
        replies=replies,
        proof=Proof(asked=asked, speculative=asked, drafted=100 if asked else None, proven=True),
        memory_mib=memory_mib,
    )
