from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from tuirig.hosts.ports import free_port, port_holder


@pytest.fixture(params=["127.0.0.1", "0.0.0.0"])
def listener(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    with socket.create_server((request.param, 0)) as server:
        yield server


def test_a_free_port_is_held_by_nobody() -> None:
    port = free_port()
    assert port_holder(port) is None
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_a_listener_is_named(listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    holder = port_holder(port)
    assert holder is not None
    assert (holder.port, holder.pid) == (port, os.getpid())
    assert holder.name and "pytest" in holder.command


def test_old_connections_hold_no_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            accepted, _ = server.accept()
            accepted.close()  # first, so that this side is left in TIME_WAIT
    assert port_holder(port) is None
