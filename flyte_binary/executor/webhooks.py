"""Tells the outside that a condition waits: one POST to the address that the task chose.

At least once: the row says that it is owed until it was accepted or given up.
"""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request

import structlog
from flyteidl2.workflow import run_definition_pb2
from google.protobuf.json_format import MessageToDict

from flyte_binary.domain.callbacks import CallbackAddresses, with_callback
from flyte_binary.domain.ids import ActionId

log = structlog.get_logger(__name__)

TIMEOUT_SECONDS = 10
TRIES = 8
LONGEST_PAUSE_SECONDS = 60.0


class Webhooks:
    def __init__(self, addresses: CallbackAddresses) -> None:
        self._addresses = addresses

    async def send(self, condition: ActionId, webhook: run_definition_pb2.ConditionWebhook) -> str:
        """An empty text once it was accepted, else what went wrong."""
        address = self._addresses.address_of(condition)
        payload = with_callback(MessageToDict(webhook.payload), address) if webhook.HasField("payload") else None
        body = json.dumps(payload or {"callback_uri": address, "condition": str(condition)}).encode()
        problem = await asyncio.to_thread(_post, webhook.url, body)
        if problem:
            log.warning("the webhook of a condition was not accepted", condition=str(condition), problem=problem)
        return problem


def pause_after(failures: int) -> float | None:
    """Seconds before the next try, None to give up."""
    return min(2.0**failures, LONGEST_PAUSE_SECONDS) if failures < TRIES else None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_args: object, **_kwargs: object) -> None:
        """A redirected POST becomes a GET of something else: let it be an error."""
        return


def _post(url: str, body: bytes) -> str:
    if not url.startswith(("http://", "https://")):
        return f"{url!r} is neither http nor https"
    request = urllib.request.Request(url, data=body, headers={"content-type": "application/json"}, method="POST")
    opener = urllib.request.build_opener(_NoRedirect)
    try:
        with opener.open(request, timeout=TIMEOUT_SECONDS):
            return ""
    except (urllib.error.URLError, OSError, ValueError) as error:
        return str(error)
