"""Tracks a parcel. Plain httpx; knows both forms of Retry-After."""

import os
import time
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from goldentrace import Recorder

MAX_ATTEMPTS = 3
BACKOFF_S = 0.05
MARGIN_S = 0.1  # two clocks never agree: a little after the date is soon enough

http = httpx.Client(base_url=os.environ["GOLDENTRACE_TOOLS_URL"], timeout=5.0, trust_env=False)
rec = Recorder()


@rec.tool(access="read")
def track_parcel(number: str) -> Any:
    """Ask the carrier where a parcel is."""
    response = http.post("/tools/track_parcel", json={"number": number})
    response.raise_for_status()
    return response.json()


def owed_s(text: str | None) -> float:
    """Return the wait that a Retry-After asks for, in seconds or as a date; our own where it says neither."""
    if text is None:
        return BACKOFF_S
    if text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time()) + MARGIN_S
    except ValueError:
        return BACKOFF_S


def track(number: str) -> Any:
    """Ask; where the carrier is busy, wait as long as it says."""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            return track_parcel(number=number)
        except httpx.HTTPStatusError as error:
            if error.response.status_code != 429 or attempt == MAX_ATTEMPTS:
                raise
            rec.decision("retry", reason="rate_limited")
            time.sleep(owed_s(error.response.headers.get("Retry-After")))
    raise AssertionError("the last attempt returns or raises")


with rec:
    with rec.turn():
        parcel = track("PX-4711")
    with rec.turn():
        rec.message("assistant", f"Your parcel is {parcel['state']}")
    rec.end("success", "final_answer")
