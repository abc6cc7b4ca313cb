"""Tells how many of an article are in stock. Plain httpx: a read may be repeated, so a timeout is worth one more try."""

import os
import time
from typing import Any

import httpx

from goldentrace import Recorder

MAX_ATTEMPTS = 3
BACKOFF_S = 0.2

http = httpx.Client(base_url=os.environ["GOLDENTRACE_TOOLS_URL"], timeout=1.0, trust_env=False)
rec = Recorder()


@rec.tool(access="read")
def get_stock(article: str) -> Any:
    """Ask the warehouse for one article."""
    response = http.post("/tools/get_stock", json={"article": article})
    response.raise_for_status()
    return response.json()


def read_stock(article: str) -> Any:
    """Ask, and ask again where no answer came in time."""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            return get_stock(article=article)
        except httpx.TimeoutException:
            if attempt == MAX_ATTEMPTS:
                raise
            delay_s = BACKOFF_S * 2 ** (attempt - 1)
            rec.decision("retry", reason="timeout", delay_ms=delay_s * 1000)
            time.sleep(delay_s)
    raise AssertionError("the last attempt returns or raises")


with rec:
    with rec.turn():
        stock = read_stock("lamp-17")
    with rec.turn():
        rec.message("assistant", f"{stock['count']} in stock")
    rec.end("success", "final_answer")
