"""TCP ports of this machine."""

from __future__ import annotations

import errno
import socket

from tuirig.hosts.base import PortHolder

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A port on 127.0.0.1 that nobody uses now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port


def port_holder(port: int) -> PortHolder | None:
    """Who listens on a port, None if a server could bind it. Blocks while it looks (some ms)."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Connections of a server that is gone (TIME_WAIT) do not hold the port, a listener does.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        else:
            return None
    return _listener(port) or PortHolder(port, None, None, "")


def _listener(port: int) -> PortHolder | None:
    """The listening process, as far as the system tells (another user's stays without a pid)."""
    import psutil

    try:
        connections = psutil.net_connections("tcp")
    except psutil.AccessDenied:  # macOS without root
        return None
    for connection in connections:
        listens = connection.status == psutil.CONN_LISTEN
        if listens and connection.pid and getattr(connection.laddr, "port", None) == port:
            try:
                process = psutil.Process(connection.pid)
                return PortHolder(port, process.pid, process.name(), " ".join(process.cmdline()))
            except psutil.Error:
                return PortHolder(port, connection.pid, None, "")
    return None
