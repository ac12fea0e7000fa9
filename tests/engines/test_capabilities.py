from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.engines.builds import BUILDS, capabilities
from tuirig.engines.llamacpp.capabilities import (
    Capabilities,
    parse_help,
    parse_version,
    program_mark,
    read_capabilities,
)
from tuirig.errors import ExitCode, ServerError
from tuirig.hosts.base import Output
from tuirig.hosts.local import LocalHost


@pytest.mark.parametrize("build", BUILDS)
def test_every_build_names_the_flags_that_every_build_has(build: str) -> None:
    found = capabilities(build)
    for spelling in ("-m", "-c", "-ngl", "-np", "-fa", "-md", "-ngld", "--host", "--port"):
        assert found.spelling(spelling) == spelling


@pytest.mark.parametrize(
    ("build", "spelling", "spellings", "argument"),
    [
        ("b10434", "-c", ("-c", "--ctx-size"), "N"),
        ("b10434", "--no-ui", ("--ui", "--webui", "--no-ui", "--no-webui"), ""),
        (
            "b10434",
            "-ngld",
            ("--spec-draft-ngl", "-ngld", "--gpu-layers-draft", "--n-gpu-layers-draft"),
            "N",
        ),
        (
            "b10434",
            "-otd",
            ("--spec-draft-override-tensor", "-otd", "--override-tensor-draft"),
            "<tensor name pattern>=<buffer type>,...",
        ),
        ("b10434", "-fa", ("-fa", "--flash-attn"), "[on|off|auto]"),
        ("2025-05", "-fa", ("-fa", "--flash-attn"), ""),
    ],
)
def test_heads_are_read_beside_and_above_their_text(
    build: str, spelling: str, spellings: tuple[str, ...], argument: str
) -> None:
    flag = capabilities(build).find(spelling)
    assert flag is not None
    assert (flag.spellings, flag.argument) == (spellings, argument)


def test_underscores_are_read_like_llama_cpp_does() -> None:
    found = capabilities("b10434")
    assert found.find("--ctx_size") is found.find("--ctx-size")
    assert found.find("-no_such") is None


@pytest.mark.parametrize(
    ("spelling", "values"),
    [("-fa", 1), ("--metrics", 0), ("--control-vector-layer-range", 2), ("-otd", 1)],
)
def test_how_many_values_a_flag_takes(spelling: str, values: int) -> None:
    flag = capabilities("b11434").find(spelling)
    assert flag is not None and flag.values == values


@pytest.mark.parametrize(
    ("spelling", "value", "takes"),
    [
        ("-fa", "on", True),
        ("-fa", "1", True),
        ("-fa", "enabled", True),
        ("-fa", "yes", False),
        ("-fit", "auto", False),
        ("-fit", "-1", False),
        ("-sm", "layer", True),
        ("-sm", "rows", False),
        ("-ctk", "q8_0", True),
        ("-ctk", "q9_0", False),
        ("-dev", "CUDA0", True),
        ("-ngl", "auto", True),
    ],
)
def test_enumerated_values_and_free_ones(spelling: str, value: str, takes: bool) -> None:
    flag = capabilities("b10434").find(spelling)
    assert flag is not None and flag.takes(value) is takes


def test_removed_flags_are_listed_with_what_replaces_them() -> None:
    found = capabilities("b10434")
    flag = found.find("--draft-max")
    assert flag is not None
    assert flag.removed == "use --spec-draft-n-max or --spec-ngram-mod-n-max"
    assert found.spelling("--draft-max") is None
    assert found.spelling("--spec-draft-n-max", "--draft-max") == "--spec-draft-n-max"
    older = capabilities("2026-03")
    assert older.spelling("--spec-draft-n-max", "--draft-max") == "--draft-max"


def test_defaults() -> None:
    defaults = {
        name: flag.default
        for name in ("--spec-draft-n-max", "-np", "-fa", "--slots", "-kvu")
        if (flag := capabilities("b10434").find(name)) is not None
    }
    assert defaults == {
        "--spec-draft-n-max": "3",
        "-np": "-1",
        "-fa": "auto",
        "--slots": "enabled",
        "-kvu": "enabled",
    }


@pytest.mark.parametrize(
    ("build", "types", "alone", "combines"),
    [
        ("2025-05", ("draft-simple",), True, False),
        (
            "2026-03",
            (
                "draft-simple",
                "ngram-cache",
                "ngram-simple",
                "ngram-map-k",
                "ngram-map-k4v",
                "ngram-mod",
            ),
            True,
            False,
        ),
        (
            "b10434",
            (
                "draft-simple",
                "draft-eagle3",
                "draft-mtp",
                "draft-dflash",
                "draft-dspark",
                "ngram-simple",
                "ngram-map-k",
                "ngram-map-k4v",
                "ngram-mod",
                "ngram-cache",
            ),
            False,
            True,
        ),
    ],
)
def test_speculative_types(build: str, types: tuple[str, ...], alone: bool, combines: bool) -> None:
    found = capabilities(build)
    assert found.speculative_types == types
    assert found.drafts_without_type is alone
    assert found.combines_types is combines


@pytest.mark.parametrize(
    ("build", "takes_value"),
    [("2025-05", False), ("2026-03", True), ("b10434", True), ("b11434", True)],
)
def test_both_syntaxes_of_flash_attention(build: str, takes_value: bool) -> None:
    assert capabilities(build).flash_attention_takes_value is takes_value


def test_a_text_without_models_is_no_help_text() -> None:
    with pytest.raises(ValueError, match="--model"):
        parse_help("usage: something else\n  --flag  does things\n")


@pytest.mark.parametrize(
    ("output", "label"),
    [
        ("version: 4567 (7e4c0a9)\nbuilt with cc\n", "4567 (7e4c0a9)"),
        (
            "ggml_cuda_init: found 1 CUDA devices\nversion: 0.6.0-dev (build 0, commit unknown)\n",
            "0.6.0-dev (build 0, commit unknown)",
        ),
        ("", "unknown"),
    ],
)
def test_the_build_label(output: str, label: str) -> None:
    assert parse_version(output) == label


class CountingHost(LocalHost):
    def __init__(self) -> None:
        self.runs = 0

    async def run(
        self, argv: Sequence[str], env: Mapping[str, str], timeout_s: float = 20
    ) -> Output:
        self.runs += 1
        return await super().run(argv, env, timeout_s)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program that prints a help text and a version."""
    help_path = tmp_path / "help.txt"
    help_path.write_text("-m,    --model FNAME                    model path to load\n")
    path = tmp_path / "llama-server"
    path.write_text(
        f'#!/bin/sh\ncase "$1" in --help) cat {help_path};; *) echo "version: 7 (abc)" >&2;; esac\n'
    )
    path.chmod(0o755)
    return path


async def read_twice(program: Path) -> tuple[Capabilities, int]:
    host = CountingHost()
    first = await read_capabilities(host, program, {})
    assert await read_capabilities(host, program, {}) == first
    return first, host.runs


async def test_a_program_is_asked_once(program: Path) -> None:
    found, runs = await read_twice(program)
    assert found.build == "7 (abc)"
    assert runs == 2  # --help and --version


@pytest.mark.parametrize("changed", ["llama-server", "libllama-server-impl.so"])
async def test_a_changed_program_or_library_is_asked_again(program: Path, changed: str) -> None:
    library = program.with_name("libllama-server-impl.so")
    library.write_bytes(b"old")
    await read_twice(program)
    os.utime(program.with_name(changed), ns=(1, 1))
    assert (await read_twice(program))[1] == 2


@pytest.mark.parametrize("changed", ["llama-server", "libggml-cpu.so"])
def test_a_mark_tells_builds_of_one_label_apart(program: Path, changed: str) -> None:
    program.with_name("libggml-cpu.so").write_bytes(b"old")
    before = program_mark(program)
    assert program_mark(program) == before
    os.utime(program.with_name(changed), ns=(1, 1))
    assert program_mark(program) != before


async def test_a_broken_cache_is_written_anew(program: Path, home: Path) -> None:
    await read_twice(program)
    (cache,) = (home / "cache" / "capabilities").glob("*.json")
    cache.write_text("{")
    assert (await read_twice(program))[1] == 2


async def test_a_cache_that_can_not_be_written_is_done_without(program: Path, home: Path) -> None:
    home.mkdir()
    (home / "cache").write_text("no folder")
    assert (await read_capabilities(LocalHost(), program, {})).build == "7 (abc)"


async def test_another_program_is_named_with_what_it_said(tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_text("#!/bin/sh\necho 'other: what?' >&2\nexit 2\n")
    path.chmod(0o755)
    with pytest.raises(ServerError) as raised:
        await read_capabilities(LocalHost(), path, {})
    assert str(path) in raised.value.message and "exit code 2" in raised.value.message
    assert raised.value.evidence == ("other: what?",)
    assert raised.value.exit_code is ExitCode.SERVER


async def test_the_real_program(server_program: Path) -> None:
    found = await read_capabilities(LocalHost(), server_program, {})
    assert {"draft-mtp", "draft-simple", "ngram-mod"} <= set(found.speculative_types)
    assert found.spelling("--spec-draft-n-max") == "--spec-draft-n-max"
    assert found.build != "unknown"
