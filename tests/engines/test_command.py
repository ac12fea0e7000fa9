from __future__ import annotations

from typing import Any

import pytest

from tests.engines.builds import BUILDS, capabilities
from tuirig.engines.llamacpp.command import build_command
from tuirig.errors import ExitCode, MissingError, TuirigError
from tuirig.rigs.schema import Drafter, ModelFile, Rig, Server
from tuirig.rigs.settings import parse_setting

PATHS = {"target": "/m/target.gguf", "q4_0": "/m/q4_0.gguf", "small": "/m/small.gguf"}
DRAFTERS = (
    Drafter(format="q4_0", type="draft-mtp", path="q4_0.gguf"),
    Drafter(format="inside", type="draft-mtp"),
    Drafter(format="small", type="draft-simple", path="small.gguf"),
    Drafter(format="simple", type="ngram-simple"),
    Drafter(format="mod", type="ngram-mod"),
    Drafter(format="cache", type="ngram-cache"),
    Drafter(format="both", type="ngram-mod,draft-mtp"),
)
ARGS = ("-ngl", "99", "-c", "8192")


def command(
    setting: str = "none",
    build: str = "b10434",
    *,
    args: tuple[str, ...] = ARGS,
    drafters: tuple[Drafter, ...] = DRAFTERS,
    port: int = 18080,
    **options: Any,
) -> list[str]:
    rig = Rig(
        name="mine",
        card="cpu",
        target=ModelFile(path="target.gguf"),
        drafter=drafters,
        server=Server(args=args),
    )
    made = build_command(
        capabilities(build),
        "/opt/llama-server",
        rig,
        parse_setting(setting),
        port=port,
        **{"paths": PATHS, **options},
    )
    assert made.port == port
    return list(made.argv)


def refused(*arguments: Any, **options: Any) -> TuirigError:
    with pytest.raises(TuirigError) as raised:
        command(*arguments, **options)
    return raised.value


MANAGED = {
    "2025-05": ["-np", "1", "--metrics", "--slots", "--no-webui"],
    "2026-03": [
        *("-np", "1", "--metrics", "-fit", "off", "--cache-ram", "0", "--no-webui"),
        *("--log-colors", "off"),
    ],
    "b10434": [
        *("-np", "1", "--metrics", "-fit", "off", "--cache-ram", "0", "--no-ui", "-lv", "4"),
        *("--log-colors", "off"),
    ],
}
MANAGED["b11434"] = MANAGED["b10434"]


@pytest.mark.parametrize("build", BUILDS)
def test_without_a_drafter(build: str) -> None:
    assert command("none", build) == [
        *("/opt/llama-server", "-m", "/m/target.gguf", "-ngl", "99", "-c", "8192"),
        *("--host", "127.0.0.1", "--port", "18080"),
        *MANAGED[build],
    ]


def test_several_slots_share_one_cache() -> None:
    argv = command("none", slots=8)
    at = argv.index("-np")
    assert argv[at : at + 4] == ["-np", "8", "-kvu", "--metrics"]
    assert "no cache that slots share" in refused("none", "2025-05", slots=8).message


@pytest.mark.parametrize(
    ("build", "setting", "drafting"),
    [
        (
            "b10434",
            "q4_0:2",
            "-md /m/q4_0.gguf --spec-type draft-mtp -ngld all --spec-draft-n-max 2",
        ),
        ("b11434", "inside:5", "--spec-type draft-mtp --spec-draft-n-max 5"),
        (
            "b10434",
            "inside:5,p_min=0.3,n_min=2",
            "--spec-type draft-mtp --spec-draft-n-max 5 --spec-draft-n-min 2"
            " --spec-draft-p-min 0.3",
        ),
        ("b10434", "simple:12", "--spec-type ngram-simple --spec-ngram-simple-size-m 12"),
        ("b10434", "mod:9", "--spec-type ngram-mod --spec-ngram-mod-n-max 9"),
        ("b10434", "cache", "--spec-type ngram-cache"),
        ("b10434", "both:3", "--spec-type ngram-mod,draft-mtp --spec-draft-n-max 3"),
        ("2025-05", "small:4", "-md /m/small.gguf -ngld 99 --draft-max 4"),
        ("2026-03", "small:4,p_min=0.5", "-md /m/small.gguf -ngld all --draft-max 4"
         " --draft-p-min 0.5"),
        ("2026-03", "simple:4", "--spec-type ngram-simple --spec-ngram-size-m 4"),
        ("2026-03", "mod:4", "--spec-type ngram-mod --draft-max 4"),
    ],
)  # fmt: skip
def test_the_drafter_comes_last_in_the_spelling_of_the_build(
    build: str, setting: str, drafting: str
) -> None:
    assert command(setting, build) == [*command("none", build), *drafting.split()]


def test_a_drafters_own_args_come_last_and_win() -> None:
    drafter = Drafter(
        format="q4_0", type="draft-mtp", path="q", args=("-ngld", "0", "-ctkd", "q8_0")
    )
    argv = command("q4_0:1", drafters=(drafter,))
    assert argv[-7:] == ["draft-mtp", "--spec-draft-n-max", "1", "-ngld", "0", "-ctkd", "q8_0"]
    assert argv.count("-ngld") == 1


def test_layers_for_the_drafter_may_stand_in_the_rigs_args() -> None:
    argv = command("q4_0:1", args=(*ARGS, "--n-gpu-layers-draft", "3"))
    assert "-ngld" not in argv


@pytest.mark.parametrize(("devices", "drafters"), [("CUDA1", "CUDA1"), ("CUDA0,CUDA1", "CUDA1")])
def test_a_drafter_goes_to_the_device_of_the_targets_last_layers(
    devices: str, drafters: str
) -> None:
    args = (*ARGS, "--device", devices)
    argv = command("q4_0:1", args=args)
    assert argv[argv.index("-devd") + 1] == drafters
    assert "-devd" not in command("none", args=args)
    assert "-devd" not in command("q4_0:1")


@pytest.mark.parametrize(
    ("build", "written", "used"),
    [
        ("b10434", ["-fa", "on"], ["-fa", "on"]),
        ("b10434", ["-fa", "1"], ["-fa", "on"]),
        ("b10434", ["-fa"], ["-fa", "on"]),
        ("b10434", ["--flash-attn", "false"], ["--flash-attn", "off"]),
        ("b10434", ["-fa", "auto"], ["-fa", "auto"]),
        ("2025-05", ["-fa"], ["-fa"]),
        ("2025-05", ["-fa", "on"], ["-fa"]),
        ("2025-05", ["-fa", "off"], []),
        ("2025-05", ["-fa", "auto"], []),
    ],
)
def test_flash_attention_in_either_syntax(build: str, written: list[str], used: list[str]) -> None:
    argv = command("none", build, args=(*written, *ARGS))
    assert argv[3 : argv.index("-ngl")] == used


@pytest.mark.parametrize(
    ("args", "message", "hint"),
    [
        (("--spec-draft-n-maxx", "3"), "has no flag --spec-draft-n-maxx", "--spec-draft-n-max"),
        (("--draft-max", "3"), "--draft-max was removed", "use --spec-draft-n-max"),
        (("-ctk", "q9_0"), "-ctk does not take 'q9_0'", "q8_0"),
        (("-fa", "yes"), "-fa does not take 'yes'", "on, off, auto"),
        (("--ctx-size=8192",), "--ctx-size=8192", '"--ctx-size", "8192"'),
        (("stray",), "'stray' is no flag", ""),
        (("-t",), "-t needs a value (N)", ""),
    ],
)
def test_args_that_the_build_does_not_have(args: tuple[str, ...], message: str, hint: str) -> None:
    error = refused(args=(*ARGS, *args))
    assert "rig mine, server.args" in error.message
    assert message in error.message and hint in error.hint
    assert error.exit_code is ExitCode.BAD_FILE


def test_a_drafters_args_are_checked_when_it_is_used() -> None:
    drafters = (Drafter(format="inside", type="draft-mtp", args=("--nope",)),)
    assert "drafter inside, args" in refused("inside:1", drafters=drafters).message
    command("none", drafters=drafters)


def test_negative_values_are_values() -> None:
    assert "-1" in command(args=(*ARGS, "-t", "-1"))


@pytest.mark.parametrize(
    ("build", "setting", "message", "hint"),
    [
        ("2026-03", "inside:2", "no type draft-mtp", "ngram-mod"),
        ("2025-05", "simple:2", "no type ngram-simple", "draft-simple"),
    ],
)
def test_settings_that_the_build_can_not_run(
    build: str, setting: str, message: str, hint: str
) -> None:
    error = refused(setting, build)
    assert message in error.message and hint in error.hint


def test_a_build_that_takes_one_type_at_a_time() -> None:
    drafters = (Drafter(format="two", type="ngram-mod,ngram-simple"),)
    assert "one type at a time" in refused("two:2", "2026-03", drafters=drafters).message


def test_an_unknown_drafter_and_a_missing_file() -> None:
    error = refused("q8_0:2")
    assert "q8_0" in error.message and error.exit_code is ExitCode.USAGE
    with pytest.raises(MissingError, match="q4_0"):
        command("q4_0:2", paths={"target": "/m/target.gguf"})


@pytest.mark.parametrize("port", [0, -1, 65536, 70000])
def test_ports_that_llama_server_would_wrap(port: int) -> None:
    assert str(port) in refused(port=port).message


def test_the_environment_holds_only_what_the_rig_adds() -> None:
    rig = Rig(
        name="mine",
        card="cpu",
        target=ModelFile(path="t"),
        server=Server(args=ARGS, env={"GGML_VK_VISIBLE_DEVICES": "0"}),
    )
    made = build_command(
        capabilities("b10434"), "s", rig, parse_setting("none"), port=1, paths=PATHS
    )
    assert made.env == {"GGML_VK_VISIBLE_DEVICES": "0"}
    assert "api" not in made.shell()
