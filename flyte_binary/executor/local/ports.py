"""On which TCP ports a process and its descendants listen. Blocking."""

from __future__ import annotations

import psutil


def listening_ports(pid: int) -> frozenset[int]:
    """Of those that still run, and that this user may look at."""
    try:
        root = psutil.Process(pid)
        processes = [root, *root.children(recursive=True)]
    except psutil.Error:
        return frozenset()
    return frozenset(port for process in processes for port in _ports(process))


def _ports(process: psutil.Process) -> list[int]:
    try:
        connections = process.net_connections(kind="tcp")
    except psutil.Error:
        return []
    return [connection.laddr.port for connection in connections if connection.status == psutil.CONN_LISTEN]
