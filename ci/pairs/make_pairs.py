"""Runs three libraries offline through one scene and writes each run in every format that the library exports.

Models are scripts, and the service of LangSmith is a server on the loopback address. What the
libraries write is what tests/sources/test_pairs.py reads, but for the names of the machine's folders and system, which
tracebacks and metadata hold. Ids and times are those of the run, so they differ each time.
"""

import asyncio
import platform
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from langgraph_pair import make_langgraph
from openai_agents_pair import make_openai_agents, make_openai_agents_chat
from pydantic_ai_pair import make_pydantic_ai

MAKERS: dict[str, Callable[[Path], Coroutine[Any, Any, None]]] = {
    "pydantic_ai": make_pydantic_ai,
    "openai_agents": make_openai_agents,
    "openai_agents_chat": make_openai_agents_chat,
    "langgraph": make_langgraph,
}

OF_THIS_MACHINE: dict[str, str] = {
    sys.prefix: "/libraries",
    str(Path(__file__).resolve().parent): "/scene",
    sys.base_prefix: "/python",
    platform.platform(): "system",
}


def main() -> None:
    """Write one folder for each library below the folder that is named."""
    target = Path(sys.argv[1])
    for name, make in MAKERS.items():
        folder = target / name
        folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(make(folder))
        for path in folder.iterdir():
            path.write_text(without_machine(path.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"{name}: {', '.join(sorted(path.name for path in folder.iterdir()))}")


def without_machine(text: str) -> str:
    """Return the text without the names that only this machine has."""
    for name, plain in OF_THIS_MACHINE.items():
        text = text.replace(name, plain)
    return text


if __name__ == "__main__":
    main()
