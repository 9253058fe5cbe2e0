"""What the settings must be together, beyond the type and the limits of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_address, ip_network

from flyte_binary.config.errors import Problem
from flyte_binary.config.model import Config
from flyte_binary.config.stores import (
    SIGNED_PUT_LIMITS,
    SIGNED_URL_LIFETIMES,
    WrongStorage,
    signing_config,
    store_choice,
)
from flyte_binary.config.units import format_duration, format_size

Found = Iterator[tuple[str, str]]
"""The paths of wrong settings, each with what is wrong."""


def check(config: Config, origins: Mapping[str, str]) -> list[Problem]:
    """All problems; `origins` tells where a setting was said."""
    checks: tuple[Callable[[Config], Found], ...] = (_address, _store, _domains, _peers, _environment, _upload_prefix)
    return [Problem(path, origins.get(path, ""), text) for each in checks for path, text in each(config)]


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a listener on `host`; a name other than `localhost` may resolve to anything."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _address(config: Config) -> Found:
    server = config.runs.server
    if is_loopback(server.host) or server.allow_unauthenticated:
        return
    yield (
        "runs.server.host",
        f'"{server.host}" can be reached by others, and this server asks nobody to log in, so whoever reaches it can '
        "run programs here; expected a loopback address such as 127.0.0.1, or runs.server.allowUnauthenticated: true, "
        "if that is meant",
    )


def _store(config: Config) -> Found:
    try:
        choice = store_choice(config)
        signing_config(config)
    except WrongStorage as error:
        yield error.path, str(error)
        return
    most = SIGNED_PUT_LIMITS.get(choice.kind)
    if most is not None and config.dataproxy.upload.max_size_bytes > most:
        yield (
            "dataproxy.upload.maxSize",
            f"is more than one PUT to a {choice.kind.scheme}:// store may have; expected {format_size(most)} or less",
        )
    longest = SIGNED_URL_LIFETIMES.get(choice.kind)
    lives = {"upload": config.dataproxy.upload.max_expires_in, "download": config.dataproxy.download.max_expires_in}
    for name, life in lives.items():
        if longest is not None and life > longest:
            yield (
                f"dataproxy.{name}.maxExpiresIn",
                f"is longer than a {choice.kind.scheme}:// store signs URLs for; expected {format_duration(longest)} "
                "or less",
            )


def _domains(config: Config) -> Found:
    ids = [domain.id for domain in config.runs.domains]
    if not ids:
        yield "runs.domains", "found an empty list; expected at least one domain"
    for twice in sorted({name for name in ids if ids.count(name) > 1}):
        yield "runs.domains", f'the domain "{twice}" is listed twice'


def _peers(config: Config) -> Found:
    for peer in config.runs.identity_headers.trusted_peers:
        try:
            ip_network(peer, strict=False)
        except ValueError:
            yield (
                "runs.identityHeaders.trustedPeers",
                f'found "{peer}"; expected an IP address, or a network such as "10.0.0.0/8"',
            )


def _environment(config: Config) -> Found:
    for path, names in (
        ("executor.environment", config.executor.environment),
        ("executor.passEnvironment", config.executor.pass_environment),
    ):
        for name in names:
            if not name or "=" in name or "\0" in name:
                yield path, f'found "{name}"; expected the name of an environment variable'


def _upload_prefix(config: Config) -> Found:
    prefix = config.dataproxy.upload.storage_prefix
    if any(part in ("", ".", "..") for part in prefix.split("/")):
        yield "dataproxy.upload.storagePrefix", f'found "{prefix}"; expected a relative path, such as "uploads"'
