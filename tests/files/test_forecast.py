"""The forecast beside the allocation lines of a real server, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.files import shapes
from tests.files.allocations import allocated
from tuirig.demo import smollm2
from tuirig.files.forecast import Forecast, differences, forecast, largest_context, total
from tuirig.files.gguf_model import Model, read_model
from tuirig.files.memory_flags import ALL_LAYERS, MemoryFlags, memory_flags
from tuirig.records import MemoryParts

_MIB = 1024 * 1024


def compare(
    program: Path,
    target: Path,
    args: str,
    *,
    drafter: Path | None = None,
    type: str = "",
    length: int = 0,
    slots: int = 1,
    idle_head_mib: float = 0.0,
) -> None:
    """Every part within 5 % or 32 MiB; weights and cache within 1 MiB."""
    words = args.split()
    argv = ["-m", str(target), *words, "-np", str(slots)]
    if drafter is not None:
        argv += ["-md", str(drafter), "-devd", "none"]
    if type:
        argv += ["--spec-type", type]
    if type.startswith("draft-"):
        argv += ["--spec-draft-n-max", str(length)]
    real = allocated(program, argv)
    guess = forecast(
        read_model(target),
        read_model(drafter) if drafter is not None else None,
        memory_flags(words, slots=slots),
        type=type,
        length=length,
        on_card=False,
    )
    assert guess.host is None
    for part, difference in differences(guess.card, real).items():
        size = getattr(real, f"{part}_mib")
        bound = 1 if part in ("target", "cache") else max(32, 0.05 * size)
        if part == "target" and difference > bound:
            difference -= idle_head_mib
        assert abs(difference) <= bound, (part, guess.card, real)
    assert (guess.card.drafter_mib is None) == (real.drafter_mib is None)
    assert guess.card.cache_mib == pytest.approx(
        guess.full_mib + guess.sliding_mib + guess.recurrent_mib, abs=0.01
    )
    assert total(guess.card) == pytest.approx(total(real), rel=0.05, abs=8)


@pytest.mark.parametrize("context", [2048, 8192])
@pytest.mark.parametrize("cache", ["f16", "q8_0"])
@pytest.mark.parametrize(("slots", "unified"), [(1, ""), (3, ""), (3, "-kvu")])
def test_contexts_cache_types_and_slots(
    demo_files: Path, server_program: Path, context: int, cache: str, slots: int, unified: str
) -> None:
    args = f"-c {context} -ctk {cache} -ctv {cache} -fa on {unified}"
    drafter = demo_files / "gemma4-q8_0.gguf"
    target = demo_files / "gemma4.gguf"
    compare(server_program, target, args, drafter=drafter, type="draft-mtp", length=3, slots=slots)


@pytest.mark.parametrize("format", ["f16", "q4_0"])
@pytest.mark.parametrize("flags", ["-fa on", "-fa off", "-fa on -ub 128", "-fa on --swa-full"])
def test_formats_and_flags(demo_files: Path, server_program: Path, format: str, flags: str) -> None:
    drafter = demo_files / f"gemma4-{format}.gguf"
    target = demo_files / "gemma4.gguf"
    args = f"-c 4096 {flags}"
    compare(server_program, target, args, drafter=drafter, type="draft-mtp", length=1)


@pytest.mark.parametrize(
    ("type", "length", "slots"),
    [("", 0, 1), ("draft-mtp", 1, 1), ("draft-mtp", 5, 2), ("ngram-map-k", 0, 1)],
)
def test_a_recurrent_target_with_its_head_inside(
    demo_files: Path, server_program: Path, type: str, length: int, slots: int
) -> None:
    """Its states are kept once more for every drafted token.

    Without drafting, builds before b10434 (b10068 was seen) load the head as well.
    """
    target = demo_files / "qwen35.gguf"
    head = sum(
        tensor.size or 0
        for name, tensor in read_model(target).tensors.items()
        if name.startswith("blk.4.")  # the last of five
    )
    loaded = 0 if type == "draft-mtp" else head / _MIB
    compare(
        server_program, target, "-c 4096 -fa on", type=type, length=length, slots=slots,
        idle_head_mib=loaded,
    )  # fmt: skip


def test_a_drafter_with_a_cache_of_its_own(smollm2_files: Path, server_program: Path) -> None:
    target = smollm2.in_wheel()
    assert target is not None
    drafter = smollm2_files / "smollm2-q4_0.gguf"
    args = "-c 8192 -fa on -ctkd q8_0 -ctvd q8_0"
    compare(server_program, target, args, drafter=drafter, type="draft-simple", length=4)


VOCABULARY = 32_000

#: As wide as the real ones, but with fewer layers and tokens and the smallest encoding: the server
#: asks the system to read the whole file ahead, holes too, and sorts every token.
SHAPES: dict[str, Callable[[Path], Path]] = {
    "Llama 3.1 8B": lambda path: shapes.llama(path, layers=4, vocabulary=VOCABULARY, kind="iq1_s"),
    "Qwen3 8B": lambda path: shapes.llama(
        path, architecture="qwen3", ff=12288, layers=4, vocabulary=VOCABULARY, kind="iq1_s"
    ),
    "Qwen3 30B A3B": lambda path: shapes.llama(
        path, architecture="qwen3moe", width=2048, ff=6144, layers=4, kv_heads=4,
        experts=(128, 8, 768), vocabulary=VOCABULARY, kind="iq1_s",
    ),
    "Gemma 4 E4B": lambda path: shapes.gemma4(
        path, layers=12, shared=6, vocabulary=VOCABULARY, kind="iq1_s"
    ),
    "Gemma 4 31B": lambda path: shapes.gemma4(
        path, width=5376, ff=21504, layers=6, heads=32, kv_heads=16, window=1024, shared=0,
        per_layer=0, vocabulary=VOCABULARY, kind="iq1_s",
    ),
    "Qwen3.5 9B": lambda path: shapes.qwen35(path, layers=4, vocabulary=VOCABULARY, kind="iq1_s"),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_of_real_models(name: str, tmp_path: Path, server_program: Path) -> None:
    target = SHAPES[name](tmp_path / "target.gguf")
    inside = name.startswith("Qwen3.5")
    compare(
        server_program, target, "-c 8192 -fa on",
        type="draft-mtp" if inside else "", length=3 if inside else 0,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["q4_0", "q4_k", "q6_k"])
def test_weights_that_are_kept_twice_on_a_cpu(
    kind: str, tmp_path: Path, server_program: Path
) -> None:
    target = shapes.gemma4(
        tmp_path / "target.gguf",
        width=512,
        ff=1024,
        layers=12,
        shared=6,
        per_layer=0,
        vocabulary=5000,
        kind=kind,
    )
    compare(server_program, target, "-c 1024 -fa on")
    compare(server_program, target, "-c 1024 -fa on --no-repack")


def test_the_assistant_of_a_real_shape(tmp_path: Path, server_program: Path) -> None:
    target = SHAPES["Gemma 4 E4B"](tmp_path / "target.gguf")
    drafter = shapes.gemma4_assistant(
        tmp_path / "drafter.gguf", vocabulary=VOCABULARY, kind="iq1_s"
    )
    compare(server_program, target, "-c 8192 -fa on", drafter=drafter, type="draft-mtp", length=2)


@pytest.fixture
def e4b(tmp_path: Path) -> Model:
    return read_model(shapes.gemma4(tmp_path / "e4b.gguf", kind="q4_0"))


def on_card(model: Model, args: str, **more: str | int) -> Forecast:
    return forecast(model, None, memory_flags(args.split()), **more)  # type: ignore[arg-type]


def test_on_a_card_the_tables_stay_beside_it(e4b: Model) -> None:
    """Per-layer embeddings are half of an E4B; the token table is the output as well."""
    found = on_card(e4b, "-ngl 99 -c 8192")
    sizes = {name: (tensor.size or 0) / _MIB for name, tensor in e4b.tensors.items()}
    tables = sizes["per_layer_token_embd.weight"] + sizes["token_embd.weight"]
    assert found.host is not None
    assert found.host.target_mib == pytest.approx(tables, abs=1)
    on_it = sum(sizes.values()) - sizes["per_layer_token_embd.weight"]
    assert found.card.target_mib == pytest.approx(on_it, abs=0.1)
    assert found.host.cache_mib is None
    assert found.total_mib == pytest.approx(total(found.card) + found.rest_mib)


def test_a_part_of_the_layers_on_the_card(tmp_path: Path) -> None:
    model = read_model(shapes.llama(tmp_path / "x.gguf"))
    whole, half, none = (on_card(model, f"-ngl {n} -c 8192") for n in (33, 17, 0))
    assert half.card.cache_mib == pytest.approx((whole.card.cache_mib or 0) / 2)
    assert half.host is not None
    assert half.host.cache_mib == half.card.cache_mib
    assert (half.card.target_mib or 0) < (whole.card.target_mib or 0) * 0.6
    assert (none.card, none.rest_mib > 0) == (MemoryParts(), True)
    aside = on_card(model, "-ngl 99 -c 8192 -nkvo")
    assert aside.card.cache_mib is None
    assert aside.host is not None
    assert aside.host.cache_mib == whole.card.cache_mib
    assert on_card(model, "-ngl 99 -c 8192 --device none").card == MemoryParts()


def test_experts_beside_the_card(tmp_path: Path) -> None:
    model = read_model(
        shapes.llama(
            tmp_path / "x.gguf", architecture="qwen3moe", width=2048, ff=6144, layers=48,
            kv_heads=4, vocabulary=151936, experts=(128, 8, 768),
        )
    )  # fmt: skip
    whole, some, none = (
        on_card(model, f"-ngl 99 -c 4096 {flag}").card.target_mib or 0
        for flag in ("", "-ncmoe 24", "--cpu-moe")
    )
    assert none < 2000 < some < whole
    assert some == pytest.approx((whole + none) / 2, rel=0.01)


def test_the_drafter_costs_what_was_published(tmp_path: Path) -> None:
    """E4B's exact Q4_0 drafter took 84 MiB at -c 8192 on an RTX 3050 (4,499 - 4,415)."""
    target = read_model(shapes.gemma4(tmp_path / "t.gguf"))
    drafter = read_model(shapes.gemma4_assistant(tmp_path / "d.gguf", kind="q4_0"))
    flags = memory_flags(("-c", "8192", "-ngl", "99"))
    found = forecast(target, drafter, flags, type="draft-mtp", length=2)
    assert found.card.drafter_mib == pytest.approx(84, abs=32)


def test_the_largest_context_that_fits(e4b: Model) -> None:
    flags = memory_flags(["-ngl", "99", "-c", "131072"])
    free = on_card(e4b, "-ngl 99 -c 20480").total_mib + 0.01
    assert on_card(e4b, "-ngl 99 -c 131072").total_mib > free
    found = largest_context(e4b, None, flags, free)
    assert found is not None
    assert 20480 <= found < 20480 + 256
    assert on_card(e4b, f"-ngl 99 -c {found}").total_mib <= free
    assert on_card(e4b, f"-ngl 99 -c {found + 256}").total_mib > free
    assert largest_context(e4b, None, flags, 100) is None
    assert largest_context(e4b, None, flags, 1e9) == 131072


def test_a_forecast_says_why_it_may_be_off(tmp_path: Path, e4b: Model) -> None:
    assert on_card(e4b, "-c 4096").rough == ()
    assert on_card(e4b, "-c 4096 --mmproj x.gguf -ot exps=CPU").rough == (
        "what --mmproj moves is not counted",
        "what -ot moves is not counted",
    )
    odd = read_model(
        shapes.write(tmp_path / "x.gguf", "brand-new", {"block_count": 1}, [("a", (32,), "f16")])
    )
    assert on_card(odd, "-c 4096").rough == ("brand-new was never compared",)


def test_the_difference_to_the_real_lines() -> None:
    guess = MemoryParts(target_mib=100.0, cache_mib=10.0)
    real = MemoryParts(target_mib=101.5, cache_mib=9.0, buffers_mib=3.0)
    assert differences(guess, real) == {"target": 1.5, "cache": -1.0, "buffers": 3.0}


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ("", MemoryFlags()),
        ("-c 4096 --ctx-size 8192", MemoryFlags(context=8192)),
        ("-ngl 12 -ngld all", MemoryFlags(layers=12)),
        ("-ngl all --n-gpu-layers-draft 3", MemoryFlags(drafter_layers=3)),
        ("-ctk Q8_0 -ctv q4_0", MemoryFlags(keys="q8_0", values="q4_0")),
        ("-ctkd q8_0 --cache-type-v-draft q8_0",
         MemoryFlags(drafter_keys="q8_0", drafter_values="q8_0")),
        ("-fa off", MemoryFlags(flash_attention=False)),
        ("-fa 0 -fa auto", MemoryFlags()),
        ("-kvu --swa-full -nkvo -nr", MemoryFlags(
            unified=True, full_sliding=True, cache_on_card=False, repack=False)),
        ("-b 512 -ub 256 -ncmoe 7", MemoryFlags(batch=512, micro_batch=256, expert_layers=7)),
        ("--cpu-moe", MemoryFlags(expert_layers=ALL_LAYERS)),
        ("-dev none -ngl 99", MemoryFlags(layers=0)),
        ("-ngl 99 -dev CUDA0 -devd none", MemoryFlags(layers=99, drafter_layers=0)),
        ("-c nonsense -ctk nonsense -c", MemoryFlags()),
    ],
)  # fmt: skip
def test_flags_of_llama_server(args: str, expected: MemoryFlags) -> None:
    assert memory_flags(args.split()) == expected
