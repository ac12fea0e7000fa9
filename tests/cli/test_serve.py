from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import httpx2
import msgspec
import psutil
import pytest

from tests.cli.support import Commands, pid_file, read_until, running, save_rig
from tests.processes import is_alive
from tuirig import locations
from tuirig.errors import ExitCode
from tuirig.hosts import ports
from tuirig.rigs.schema import Rig

SIGNALS = [
    (signal.SIGINT, ExitCode.INTERRUPTED),
    (signal.SIGTERM, ExitCode.TERMINATED),
    (signal.SIGHUP, ExitCode.HANGUP),
]
LONG = ("--prompts", "36", "--tokens", "2000")


def value(lines: list[str], before: str) -> str:
    """What follows a text in the lines told."""
    (line,) = [line for line in lines if before in line]
    return line.partition(before)[2]


def models(url: str, key: str) -> int:
    """The status of a question that needs the key."""
    headers = {"Authorization": f"Bearer {key}"}
    return httpx2.get(f"{url}/props", headers=headers, trust_env=False).status_code


def server_pid() -> int:
    server = pid_file()
    assert server is not None
    assert is_alive(server.pid)
    return server.pid


def wait_gone(pid: int) -> None:
    deadline = time.monotonic() + 20
    while is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} outlived tuirig"
        time.sleep(0.02)


@pytest.fixture
def rig(tiny_gemma4_rig: Rig) -> Rig:
    """The tiny rig, saved in the rigs folder."""
    save_rig(tiny_gemma4_rig)
    return tiny_gemma4_rig


@pytest.mark.parametrize(("number", "code"), SIGNALS, ids=lambda value: value.name)
def test_serve_ends_in_order_with_a_signal(
    rig: Rig, number: signal.Signals, code: ExitCode
) -> None:
    with running("serve", rig.name, "--setting", "q4_0:2") as process:
        lines = read_until(process, "ends it")
        pid = server_pid()
        url, key = value(lines, "serving q4_0:2 at "), value(lines, "API key: ")
        assert models(url.removesuffix("/v1"), key) == 200
        assert models(url.removesuffix("/v1"), "another") == 401
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == code
    assert not is_alive(pid)
    assert pid_file() is None
    assert stdout == ""
    assert stderr.splitlines() == ["q4_0:2: stopped", f"tuirig: ended by {number.name}, in order"]
    assert key not in " ".join(lines[:1])


@pytest.mark.parametrize(("number", "code"), SIGNALS, ids=lambda value: value.name)
def test_measure_ends_in_order_with_a_signal(
    rig: Rig, number: signal.Signals, code: ExitCode
) -> None:
    with running("measure", rig.name, "--setting", "q4_0:2", *LONG, "--json") as process:
        read_until(process, "ready after")
        pid = server_pid()
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == code
    assert not is_alive(pid)
    assert (stdout, pid_file()) == ("", None)
    assert stderr.endswith(f"tuirig: ended by {number.name}, in order\n")


@pytest.mark.parametrize(
    "words",
    [("serve", "--setting", "none"), ("measure", "--setting", "none", *LONG)],
    ids=lambda words: words[0],
)
def test_a_killed_tuirig_leaves_no_server(rig: Rig, words: tuple[str, ...]) -> None:
    with running(words[0], rig.name, *words[1:]) as process:
        read_until(process, "ready after")
        pid = server_pid()
        process.kill()
        wait_gone(pid)


def test_a_signal_while_the_server_starts(rig: Rig) -> None:
    with running("serve", rig.name, "--setting", "none") as process:
        read_until(process, "starting")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == ExitCode.TERMINATED
    assert pid_file() is None


def test_further_signals_change_nothing(rig: Rig) -> None:
    """Somebody's open stream delays the server's end: time for an impatient person."""
    with running("serve", rig.name, "--setting", "none") as process:
        lines = read_until(process, "ends it")
        pid = server_pid()
        url, key = value(lines, "serving none at "), value(lines, "API key: ")
        body = {"prompt": "Once", "n_predict": 1500, "stream": True, "ignore_eos": True}
        with httpx2.stream(
            "POST",
            f"{url.removesuffix('/v1')}/completion",
            json=body,
            headers={"Authorization": f"Bearer {key}"},
            trust_env=False,
        ) as stream:
            next(stream.iter_lines())
            process.send_signal(signal.SIGINT)
            while process.poll() is None:
                process.send_signal(signal.SIGINT)
                time.sleep(0.005)
    assert process.returncode == ExitCode.INTERRUPTED
    assert not is_alive(pid)


def test_the_key_may_come_from_a_file_or_the_environment(rig: Rig, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from-a-file\nanother line\n")
    words = ("serve", rig.name, "--setting", "none")
    for more, env, key, source in [
        (
            ("--api-key-file", str(file)),
            {"TUIRIG_API_KEY": "not this one"},
            "from-a-file",
            str(file),
        ),
        ((), {"TUIRIG_API_KEY": "from-the-environment"}, "from-the-environment", "TUIRIG_API_KEY"),
    ]:
        with running(*words, *more, env=env) as process:
            lines = read_until(process, "ends it")
            url = value(lines, "serving none at ").removesuffix("/v1")
            assert (models(url, key), models(url, "not this one")) == (200, 401)
            told = "\n".join(lines)
            assert source in told
            assert key not in told
            assert key not in " ".join(psutil.Process(server_pid()).cmdline())
            process.terminate()
            process.wait(timeout=30)


def test_a_port_in_use_is_named_and_left_alone(run: Commands, rig: Rig) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        ran = run("serve", rig.name, "--setting", "none", "--port", str(port))
        assert ran.code == ExitCode.IN_USE
        assert f"port {port} is in use by" in ran.stderr


def test_the_port_is_the_one_asked_for(rig: Rig) -> None:
    port = ports.free_port()
    with running("serve", rig.name, "--setting", "none", "--port", str(port)) as process:
        lines = read_until(process, "ends it")
        assert value(lines, "serving none at ") == f"http://127.0.0.1:{port}/v1"
        process.terminate()
        process.wait(timeout=30)


def test_a_server_that_dies_ends_serve_with_the_reason(rig: Rig) -> None:
    with running("serve", rig.name, "--setting", "none") as process:
        read_until(process, "ends it")
        psutil.Process(server_pid()).kill()
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == ExitCode.SERVER
    assert "the server died" in stderr
    assert "SIGKILL" in stderr


def test_without_a_setting_the_saved_profile_decides(run: Commands, rig: Rig) -> None:
    ran = run("serve", rig.name)
    assert ran.code == ExitCode.MISSING
    assert "no profile is saved for gemma4.gguf" in ran.stderr
    saved = run(
        "measure", rig.name, "--setting", "q8_0:1", "--prompts", "1", "--tokens", "16", "--save",
    )  # fmt: skip
    assert saved.code == ExitCode.OK, saved.stderr
    (path,) = locations.profiles_folder().glob("*/*.toml")
    for words in ((), ("--profile", str(path))):
        with running("serve", rig.name, *words) as process:
            lines = read_until(process, "ends it")
            assert any("serving q8_0:1 at" in line for line in lines)
            process.terminate()
            process.wait(timeout=30)


def test_a_profile_of_another_model_is_refused(run: Commands, rig: Rig) -> None:
    (profile, *_) = run("profiles", "--json").json["profiles"]
    ran = run("serve", rig.name, "--profile", profile["name"])
    assert ran.code == ExitCode.USAGE
    assert "rig tiny-gemma4 has gemma4.gguf" in ran.stderr


def test_a_closed_terminal_ends_serve_and_its_server(rig: Rig) -> None:
    from tests.cli.support import TUIRIG
    from tests.terminal import Terminal

    with Terminal([*TUIRIG, "serve", rig.name, "--setting", "none"]) as terminal:
        terminal.wait_for("ends it")
        pid = server_pid()
        terminal.hang_up()
        try:
            code = terminal.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            raise AssertionError("serve outlived its terminal") from None
    assert code == ExitCode.HANGUP
    assert not is_alive(pid)


@pytest.mark.parametrize("command", ["serve", "measure"])
def test_a_drafter_that_does_not_fit_is_refused_before_a_start(
    run: Commands, tiny_gemma4_rig: Rig, command: str
) -> None:
    first = msgspec.structs.replace(tiny_gemma4_rig.drafter[0], type="draft-simple")
    rig = msgspec.structs.replace(tiny_gemma4_rig, drafter=(first,))
    save_rig(rig)
    ran = run(command, rig.name, "--setting", f"{first.row}:1")
    assert ran.code == ExitCode.BAD_FILE
    assert f"{first.row}:1 can't run: " in ran.stderr
    assert "next: its type is draft-mtp" in ran.stderr
    assert pid_file() is None
    assert not locations.log_path(rig.name).exists()
