"""Reads an account. Plain httpx with a token that runs out: one fresh token, one more try, and no third."""

import os
from typing import Any

import httpx

from goldentrace import Recorder

http = httpx.Client(base_url=os.environ["GOLDENTRACE_TOOLS_URL"], timeout=5.0, trust_env=False)
http.headers["Authorization"] = "Bearer yesterday"
rec = Recorder()


def post(tool: str, **args: Any) -> Any:
    """Ask the bank for one tool call."""
    response = http.post(f"/tools/{tool}", json=args)
    response.raise_for_status()
    return response.json()


@rec.tool(access="read")
def get_account(account: str) -> Any:
    """Read one account."""
    return post("get_account", account=account)


@rec.tool(access="read")
def refresh_token() -> Any:
    """Ask for a fresh token."""
    return post("refresh_token")


def read_account(account: str) -> Any:
    """Read; where the token has run out, get a fresh one and read once more."""
    try:
        return get_account(account=account)
    except httpx.HTTPStatusError as error:
        if error.response.status_code != 401:
            raise
        rec.decision("retry", reason="auth")
        with rec.origin("harness"):
            fresh = refresh_token()
        http.headers["Authorization"] = f"Bearer {fresh['bearer']}"
    return get_account(account=account)


with rec:
    with rec.turn():
        found = read_account("savings")
    with rec.turn():
        rec.message("assistant", f"You have {found['balance_cents']} cents")
    rec.end("success", "final_answer")
