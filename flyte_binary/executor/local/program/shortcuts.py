"""Work that each start of the SDK does and that need not be done for each forked child.

All of it reaches into private parts, and all of it may be left out: a shortcut whose place is not
found is skipped and named in the fork server's notes. Times are of one leaf on the machine of `docs/adr`.
"""

from __future__ import annotations

import importlib
import inspect
import os
import ssl
import threading
from collections.abc import Callable
from typing import Any

_SESSION = "flyte.remote._client.auth._session"
_PACKAGE_RECORDS = (".dist-info", ".egg-info")


def take() -> list[str]:
    """In the fork server, once. Returns what had to be left out."""
    left_out: list[str] = []
    for shortcut in (
        _share_tls_context,
        _make_transports_at_need,
        _make_clients_at_need,
        _remember_entry_points,
        _look_for_git_first,
    ):
        try:
            shortcut()
        except (AttributeError, ImportError, TypeError) as error:
            left_out.append(f"{shortcut.__name__.strip('_')}: {error}")
    return left_out


def check_in_child() -> None:
    """In a child, in its working folder: what was remembered must be true here too."""
    if any(name.endswith(_PACKAGE_RECORDS) for name in os.listdir()):
        installed = importlib.import_module("flyte._utils.entry_points")._installed_entry_points
        installed.cache_clear()  # the bundle brings packages of its own


def _share_tls_context() -> None:
    """The SDK makes an httpx client per connection for logging in, and with each a TLS context from the
    system's certificates, also for plain HTTP (2 x 20 ms). One made before the fork serves for those that
    are like it; contexts that user code makes are its own."""
    session = importlib.import_module(_SESSION)
    original: Callable[..., Any] = session.get_async_session  # Any: httpx.AsyncClient
    if "verify" not in inspect.signature(original).parameters:
        raise AttributeError("get_async_session takes no `verify`")
    context: ssl.SSLContext = importlib.import_module("httpx").create_ssl_context()
    special = ("verify", "cert", "ca_cert_path", "ca_cert_file_path", "transport", "app")
    variables = {"SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE"}

    def get_async_session(*args: Any, **kwargs: Any) -> Any:  # Any: the original's own
        plain = not args and all(kwargs.get(name) is None for name in special)
        if plain and not os.environ.keys() & variables:
            kwargs["verify"] = context
        return original(*args, **kwargs)

    _replace(session, "get_async_session", get_async_session)


def _make_transports_at_need() -> None:
    """Building a transport loads the system's certificates and starts threads (12 + 4 ms); leaves never send."""
    session = importlib.import_module(_SESSION)
    original: Callable[..., Any] = session._build_pyqwest_client  # Any: pyqwest.Client

    def build(*args: Any, **kwargs: Any) -> Any:  # Any: the original's own
        return _AtNeed(lambda: original(*args, **kwargs))

    _replace(session, "_build_pyqwest_client", build)


class _AtNeed:
    """Becomes the real client at its first use, once."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:  # Any: whatever the client has
        if name.startswith("__"):
            raise AttributeError(name)
        with self._lock:
            client = self.__dict__.get("_client")
            if client is None:
                client = self.__dict__["_client"] = self._make()
        return getattr(client, name)


def _make_clients_at_need() -> None:
    """A `ClientSet` makes fifteen service clients (7 ms), which a leaf does not use. It stays that class and
    that object; it is only filled when something of it is asked for."""
    kind: Any = importlib.import_module("flyte.remote._client.controlplane").ClientSet  # Any: a private class
    if list(inspect.signature(kind.__init__).parameters) != ["self", "session_cfg"]:
        raise AttributeError("ClientSet takes other arguments")
    if hasattr(kind, "__getattr__"):
        raise AttributeError("ClientSet has a __getattr__ of its own")
    fill = kind.__init__
    lock = threading.RLock()

    def init(self: Any, session_cfg: Any) -> None:  # Any: as above
        self.__dict__["_unfilled"] = session_cfg

    def get(self: Any, name: str) -> Any:  # Any: as above
        if name.startswith("__"):
            raise AttributeError(name)
        with lock:
            if "_unfilled" in self.__dict__:
                fill(self, self.__dict__.pop("_unfilled"))
        return object.__getattribute__(self, name)

    kind.__init__ = init
    kind.__getattr__ = get


def _remember_entry_points() -> None:
    """The SDK reads the records of all installed packages for its plug-ins (10 ms and more) and remembers them
    for the life of the process. The fork server is replaced when packages change."""
    importlib.import_module("flyte._utils.entry_points")._installed_entry_points()


def _look_for_git_first() -> None:
    """For its own configuration the SDK runs `git` in each new process (4 ms). In an attempt's folder, below which
    `GIT_CEILING_DIRECTORIES` keeps it, there is a repository only if the bundle brought one."""
    reader = importlib.import_module("flyte.config._reader")
    original: Callable[[], Any] = reader._config_path_from_git_root  # Any: a path or None

    def config_path_from_git_root() -> Any:  # Any: as above
        below_ceiling = os.path.dirname(os.getcwd()) == os.environ.get("GIT_CEILING_DIRECTORIES")
        if below_ceiling and "GIT_DIR" not in os.environ and not os.path.lexists(".git"):
            return None
        return original()

    _replace(reader, "_config_path_from_git_root", config_path_from_git_root)


def _replace(module: Any, name: str, value: object) -> None:  # Any: a module
    """Raises `AttributeError` where there is nothing to replace."""
    getattr(module, name)
    setattr(module, name, value)
