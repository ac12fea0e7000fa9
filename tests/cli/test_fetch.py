from __future__ import annotations

import hashlib
import signal
from pathlib import Path

import msgspec
import pytest

from tests.cli.support import Commands, read_until, running, save_rig
from tests.files.hub_server import COMMIT, Fault, HubServer
from tuirig.errors import ExitCode
from tuirig.files.models import hub_folder, missing
from tuirig.files.rigs import load_rig
from tuirig.rigs.schema import Drafter, ModelFile, Rig, Server

REPO, FILE = "org/name-GGUF", "x.gguf"
CONTENT = b"GGUF" + bytes(range(256)) * 400
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def rig(hub_server: HubServer) -> Rig:
    hub_server.add(REPO, FILE, CONTENT)
    url = hub_server.add_plain("d.gguf", CONTENT)
    return Rig(
        name="box",
        card="cpu",
        target=ModelFile(repo=REPO, file=FILE),
        drafter=(
            Drafter(format="q4_0", type="draft-mtp", path="d.gguf", url=url),
            Drafter(format="ngram", type="ngram-simple"),
        ),
        server=Server(args=("-c", "512", "-ngl", "0")),
    )


def test_a_rig_without_pins(run: Commands, rig: Rig, hub_server: HubServer) -> None:
    path = save_rig(rig)
    assert [item.next_step for item in missing(rig, path.parent)] == ["tuirig fetch box"] * 2
    ran = run("fetch", "box")
    assert ran.code == ExitCode.OK
    assert ran.stdout.splitlines()[2:] == [
        "",
        "to pin these files, put into the rig:",
        "",
        "[target]",
        f'revision = "{COMMIT}"',
        f'sha256 = "{SHA256}"',
        "",
        "[[drafter]]  # q4_0",
        f'sha256 = "{SHA256}"',
    ]
    assert [line.split()[:1] for line in ran.stdout.splitlines()[:2]] == [["target"], ["q4_0"]]
    told = [line.removesuffix(": done") for line in ran.stderr.splitlines()]
    assert list(dict.fromkeys(told)) == ["fetching x.gguf", "fetching d.gguf"]
    assert missing(load_rig("box"), path.parent) == ()


def test_pasted_pins_are_all_that_is_missing(
    run: Commands, rig: Rig, hub_server: HubServer
) -> None:
    save_rig(rig)
    document = run("fetch", "box", "--json").json
    assert document["rig"] == "box"
    files = document["files"]
    assert [(file["row"], file["fetched"]) for file in files] == [("target", True), ("q4_0", True)]
    assert files[0]["pin"] == {"revision": COMMIT, "sha256": SHA256}
    target = msgspec.structs.replace(rig.target, **files[0]["pin"])
    drafter = msgspec.structs.replace(rig.drafter[0], **files[1]["pin"])
    save_rig(msgspec.structs.replace(rig, target=target, drafter=(drafter, rig.drafter[1])))
    asked = len(hub_server.asked_hub), len(hub_server.asked_store)
    files = run("fetch", "box", "--json").json["files"]
    assert [(file["fetched"], file["pin"]) for file in files] == [(False, {}), (False, {})]
    assert (len(hub_server.asked_hub), len(hub_server.asked_store)) == asked


def test_a_failure_is_told_and_ends_it(run: Commands, rig: Rig, hub_server: HubServer) -> None:
    path = save_rig(rig)
    hub_server.store_faults.extend([Fault(), Fault(), Fault(status=404)])
    hub_server.repositories[REPO].gated = True
    ran = run("fetch", "box")
    assert ran.code == ExitCode.MISSING
    assert "is gated, and no token is set" in ran.stderr
    assert ran.stdout == ""
    hub_server.repositories[REPO].gated = False
    hub_server.store_faults.popleft()
    ran = run("fetch", str(path))
    assert ran.code == ExitCode.MISSING
    assert "d.gguf: no such file (404)" in ran.stderr


def test_ctrl_c_keeps_what_came(rig: Rig, hub_server: HubServer) -> None:
    path = save_rig(rig)
    hub_server.store_faults.extend([Fault(cut=50_000), *[Fault(cut=0)] * 10])
    with running("fetch", str(path)) as process:
        read_until(process, "next try in")
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=20)
    assert process.returncode == ExitCode.INTERRUPTED
    assert stdout == ""
    assert stderr.endswith("tuirig: ended by SIGINT, in order\n")
    part = hub_folder(REPO) / "blobs" / f"{SHA256}.part"
    assert part.read_bytes() == CONTENT[:50_000]


def test_files_of_ones_own_get_no_pin(run: Commands, rig: Rig, tmp_path: Path) -> None:
    (tmp_path / "t.gguf").write_bytes(CONTENT)
    own = ModelFile(path=str(tmp_path / "t.gguf"))
    save_rig(msgspec.structs.replace(rig, target=own, drafter=rig.drafter[1:]))
    ran = run("fetch", "box")
    assert ran.code == ExitCode.OK
    assert "was there" in ran.stdout
    assert "pin" not in ran.stdout


def test_an_unknown_rig(run: Commands) -> None:
    assert run("fetch", "nothing").code == ExitCode.MISSING
