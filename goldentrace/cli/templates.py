"""The files that `goldentrace init` writes. Text only."""

from typing import Final

SCHEMA_FILE: Final = "goldentrace.schema.json"

CONFIG: Final = f"""\
# yaml-language-server: $schema=.goldentrace/{SCHEMA_FILE}
# What each key means: goldentrace schema config. What is in effect: goldentrace config --show-origin.
goldens: goldens
profile: default

limits:                    # enforced while a scenario runs; null is no limit, 0 allows none
  max_tool_calls: 20
  max_attempts: 3
  max_wall_ms: 30000

scenarios:
  example:
    description: looks an order up, waits out a rate limit, charges once
    command: python3 goldentrace_example.py
    seed: 7
"""

AGENT: Final = '''\
"""An example agent: no model and no network, so that it runs anywhere. Replace it with your own.

It records itself with `goldentrace.Recorder`; an agent in another language appends JSON lines to the file in
$GOLDENTRACE_TRACE (`goldentrace schema trace`).
"""

import time
import uuid

from goldentrace import Recorder

rec = Recorder()
orders = {"A-100": {"order_id": "A-100", "amount_cents": 4999, "charge_token": str(uuid.uuid4())}}
refused = [True]  # the payment service refuses the first attempt


class RateLimited(Exception):
    """What the payment service answers with status 429."""

    status_code = 429


@rec.tool(access="read", resource="order:{order_id}")
def get_order(order_id):
    return orders[order_id]


@rec.tool(access="write", idempotency_key="{token}")
def charge_card(amount_cents, token):
    if refused and refused.pop():
        raise RateLimited("try again in 0.2 s")
    return {"status": "charged", "amount_cents": amount_cents}


with rec:
    with rec.turn():
        order = get_order("A-100")
    with rec.turn():
        for wait_s in (0.2, None):
            try:
                charge_card(order["amount_cents"], order["charge_token"])
                break
            except RateLimited:
                if wait_s is None:
                    raise
                rec.decision("retry", reason="rate_limited", delay_ms=wait_s * 1000)
                time.sleep(wait_s)
    rec.end("success", "final_answer")
'''

ATTRIBUTES: Final = """\
# Goldens are compared and hashed as bytes: never with CRLF, never collapsed in a review.
{goldens}/**/*.jsonl text eol=lf linguist-generated=false
{goldens}/**/*.json  text eol=lf linguist-generated=false
"""

WORKFLOW: Final = """\
name: goldentrace
on: [pull_request]
permissions:
  contents: read
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "3.12"}
      - name: Install goldentrace
        # Say where goldentrace comes from: a checkout or a wheel in this repository, or a name in your package index.
        env: {GOLDENTRACE: ./vendor/goldentrace}
        run: python -m pip install "$GOLDENTRACE"
      - name: Install what the agent needs
        run: if [ -f requirements.txt ]; then python -m pip install -r requirements.txt; fi
      - name: Check
        run: goldentrace check --artifacts goldentrace-artifacts --report "markdown=$GITHUB_STEP_SUMMARY"
      - uses: actions/upload-artifact@v4
        if: always()
        with: {name: goldentrace, path: goldentrace-artifacts, include-hidden-files: true}
"""
