"""Structured logs on stderr: readable at a terminal, JSON elsewhere."""

from __future__ import annotations

import logging
import sys

import structlog

from flyte_binary.config.model import LogFormat, Logger


def configure_logging(settings: Logger) -> None:
    """One line an event; exceptions as text in the line's `exception` field."""
    level = logging.getLevelNamesMapping().get(settings.level.name, logging.INFO)
    text = settings.formatter.type is LogFormat.TEXT or (
        settings.formatter.type is LogFormat.AUTO and sys.stderr.isatty()
    )
    renderers: list[structlog.typing.Processor] = (
        [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
        if text
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *renderers,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(
        level=max(level, logging.WARNING), stream=sys.stderr, format="%(levelname)s %(name)s %(message)s"
    )
