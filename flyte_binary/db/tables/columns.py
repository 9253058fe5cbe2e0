"""What all tables share: the metadata and the kinds of columns.

Times are microseconds since the epoch (UTC) in BIGINT columns: the same arithmetic, order and
equality on SQLite and PostgreSQL. Text is compared bytewise on both (`COLLATE "C"`).
"""

from __future__ import annotations

from sqlalchemy import Column, Integer, MetaData, String, Text

metadata = MetaData()

BytewiseText = Text().with_variant(Text(collation="C"), "postgresql")
BytewiseString = String(512).with_variant(String(512, collation="C"), "postgresql")


def identifier(name: str) -> Column[str]:
    return Column(name, BytewiseText, nullable=False)


def text_column(name: str) -> Column[str]:
    return Column(name, BytewiseText, nullable=False, server_default="")


def number(name: str, default: int = 0) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=str(default))
