"""Servers for the tests of faults. One process serves them in turn; a test that needs options gets its own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from goldentrace.faults import FaultsHandle
from tests.faults.serving import Client, served


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultsHandle]:
    """Return a server whose plan each test replaces."""
    with served(tmp_path_factory.mktemp("faults"), "plan: none yet\ntools: {a: {}}\n") as server:
        yield server


@pytest.fixture
def serve(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., FaultsHandle]]:
    """Return a function that serves the text of a plan; the next call of it may end what the last one served."""
    with ExitStack() as stack:

        def start(plan: str, **options: Any) -> FaultsHandle:
            if options:
                return stack.enter_context(served(tmp_path, plan, **options))
            shared: FaultsHandle = request.getfixturevalue("shared_server")
            shared.load(plan.encode())
            return shared

        yield start


@pytest.fixture
def client() -> Iterator[Callable[[FaultsHandle], Client]]:
    """Return a function that opens a client of a server, closed when the test ends."""
    with ExitStack() as stack:

        def open_client(server: FaultsHandle, **options: Any) -> Client:
            made = Client(server, **options)
            stack.callback(made.close)
            return made

        yield open_client
