"""One run of pydantic-ai: its messages, its spans as OTLP, and the same spans as OpenTelemetry's SDK prints them."""

from pathlib import Path

from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings
from scene import FAILURE, PROMPT, Ledger, Script


async def make_pydantic_ai(folder: Path) -> None:
    """Write messages.json, otlp.jsonl and console.txt."""
    script = Script()

    def respond(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        given = script.next()
        calls = [ToolCallPart(call.tool_name, call.args, call.call_id) for call in given.calls]
        return ModelResponse(parts=[*([TextPart(given.text)] if given.text else []), *calls])

    provider = TracerProvider()
    (folder / "otlp.jsonl").unlink(missing_ok=True)
    provider.add_span_processor(SimpleSpanProcessor(FileSpanExporter(folder / "otlp.jsonl")))
    with (folder / "console.txt").open("w", encoding="utf-8") as console:
        provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=console)))
        settings = InstrumentationSettings(tracer_provider=provider, include_model_request_parameters=False)
        agent = Agent(
            FunctionModel(respond, model_name="scripted"),
            tools=Ledger(ModelRetry(FAILURE)).tools,
            capabilities=[Instrumentation(settings)],
        )
        result = await agent.run(PROMPT)
        provider.shutdown()
    (folder / "messages.json").write_bytes(result.all_messages_json())
