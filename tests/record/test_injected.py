"""What a framework fills in is no argument of a call; what the model passed is, whatever its type."""

import subprocess
import sys
from collections.abc import Callable
from typing import Annotated, Any, Optional

import pytest

from goldentrace import Recorder
from goldentrace.errors import ConfigError
from goldentrace.record.injected import injected_parameters
from tests.record.conftest import Run
from tests.record.langchain_shapes import (
    CallbackManagerForToolRun,
    InjectedState,
    InjectedToolCallId,
    RunnableConfig,
    ToolRuntime,
)


class Mine:
    """A type of the agent's own, with a name that LangChain has too."""

    RunnableConfig = type("RunnableConfig", (dict,), {})


INJECTED: dict[str, Any] = {
    "a configuration": RunnableConfig,
    "a configuration or none": RunnableConfig | None,
    "a configuration, written as of old": Optional[RunnableConfig],  # noqa: UP045 - this form is meant
    "a mark that is an object": Annotated[dict[str, Any], InjectedState()],
    "a mark that is a class": Annotated[str, InjectedToolCallId],
    "a runtime": ToolRuntime,
    "a runtime of a context": ToolRuntime[str],
    "callbacks": CallbackManagerForToolRun | None,
    "text, as from __future__ has it": "RunnableConfig | None",
}
PASSED: dict[str, Any] = {
    "a plain type": str,
    "a type of the agent's own": Mine.RunnableConfig,
    "other marks": Annotated[str, "what the model reads"],
    "nothing said": None,
    "text of no type": "Unheard[of]",
}


def tool_with(annotation: Any) -> Callable[..., Any]:
    def look(ref: str, given: Any = None) -> str:
        return ref

    look.__annotations__["given"] = annotation
    return look


@pytest.mark.parametrize("annotation", INJECTED.values(), ids=INJECTED)
def test_a_parameter_that_the_framework_fills(annotation: Any) -> None:
    assert injected_parameters(tool_with(annotation)) == {"given"}


@pytest.mark.parametrize("annotation", PASSED.values(), ids=PASSED)
def test_a_parameter_that_the_model_fills(annotation: Any) -> None:
    assert injected_parameters(tool_with(annotation)) == frozenset()


def test_what_was_filled_in_is_not_recorded_and_reaches_the_tool(run: Run) -> None:
    seen = []

    def look(ref: str, config: RunnableConfig, *, state: Annotated[dict[str, Any], InjectedState()]) -> None:
        seen.append((config, state))

    with run.recorder() as recorder:
        recorder.tool(resource="thread:{config[thread]}")(look)("A-1", {"thread": "t1"}, state={"messages": [1]})
    assert seen == [({"thread": "t1"}, {"messages": [1]})]
    (call,) = run.events("tool_call")
    assert (call["args"], call["resource"]) == ({"ref": "A-1"}, "thread:t1"), "a template may still name it"


def test_what_the_author_says_is_no_argument(run: Run) -> None:
    def look(ref: str, session: object = None, **more: Any) -> None:
        pass

    with run.recorder() as recorder:
        decorated = recorder.tool(ignore=("session", "trace_id"))(look)
        decorated("A-1", object(), trace_id="x", page=2)
        recorder.wrap_tools([look], ignore=["session"])[0]("A-1", object(), trace_id="x")
        recorder.wrap_tools({"look": look}, ignore=["session"])["look"]("A-1", object())
    shown = [event["args"] for event in run.events("tool_call")]
    assert shown == [{"ref": "A-1", "page": 2}, {"ref": "A-1", "trace_id": "x"}, {"ref": "A-1"}]


def test_a_text_in_place_of_names_is_refused() -> None:
    with pytest.raises(ConfigError, match="ignore of tool 'look' is a text") as caught:
        Recorder().tool(ignore="config")(tool_with(str))
    assert caught.value.next_step == "write ignore=('config',)"


def test_no_framework_is_imported() -> None:
    code = "import sys; from goldentrace import Recorder; Recorder().tool()(lambda x: x); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not [name for name in done.stdout.split() if name.startswith(("langchain", "langgraph"))]
