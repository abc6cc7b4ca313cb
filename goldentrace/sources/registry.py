"""The table of formats, and the way from a file, or each file of an archive, to its traces.

Modules are imported when they are needed: reading a native trace imports none of the others. Detection goes by content,
never by suffix, and needs exactly one match. Must not know what any format looks like.
"""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from goldentrace.errors import ConfigError, InputError, NoTraceError, Where
from goldentrace.model.trace import Trace
from goldentrace.sources.bytestream import Progress
from goldentrace.sources.document import MAX_BYTES, MEMBER_MARK, Document, open_document
from goldentrace.sources.head import WIDE_HEAD_BYTES, Head
from goldentrace.sources.source import Source

__all__ = ["MODULES", "Source", "detect", "document_traces", "find_source", "read_traces", "sources", "trace_name"]

MODULES: Final = (
    "native",
    "ai_sdk",
    "anthropic_managed_agents",
    "anthropic_messages",
    "atif",
    "claude_code",
    "claude_stream",
    "clew",
    "codex",
    "codex_exec",
    "gemini_cli",
    "har",
    "inspect_log",
    "langchain",
    "langfuse",
    "langsmith",
    "mcp",
    "mini_swe_agent",
    "offtrack",
    "openai_agents",
    "openai_chat",
    "openai_responses",
    "openhands",
    "openinference",
    "otel_genai",
    "pydantic_ai",
    "swe_agent",
    "tau2_bench",
    "tau_bench",
    "toolathlon",
    "tracelint",
    "trail",
    "vcr",
    "vercel_ui",
)
"""One module under goldentrace/sources per line; each has SOURCE, or SOURCES where it reads several formats."""


def sources() -> tuple[Source, ...]:
    """Return every format, in the order of the table."""
    found: list[Source] = []
    for name in MODULES:
        found += _sources_of(name)
    return tuple(found)


def find_source(name: str) -> Source:
    """Return the format of that name. Raises: ConfigError that lists the names."""
    known = {source.name: source for source in sources()}
    if name in known:
        return known[name]
    import difflib

    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise ConfigError(f"no format {name!r}", next_step=f"{hint}known are {', '.join(known)}")


def detect(document: Document) -> Source:
    """Return the one format that matches the first bytes.

    Raises: NoTraceError where none matches, InputError where several do; it names the candidates and `--format`.
    """
    native = _sources_of("native")[0]
    if native.matches(document.head):
        return native
    matching = _matching(document.head)
    where = Where(document.name)
    if not matching and document.head.archive is not None:
        raise _nested(document)
    if not matching and not document.head.is_whole:
        matching = _matching(document.read_head(WIDE_HEAD_BYTES))
    if len(matching) == 1:
        return matching[0]
    if not matching:
        names = ", ".join(source.name for source in sources())
        raise NoTraceError("no known format", where=where, next_step=f"name it with --format NAME, one of {names}")
    names = " or ".join(source.name for source in matching)
    raise InputError(f"more than one format matches: {names}", where=where, next_step="name it with --format NAME")


def read_traces(
    path: str | Path, format_name: str | None = None, *, max_bytes: int = MAX_BYTES, on_progress: Progress | None = None
) -> Iterator[Trace]:
    """Yield every trace of a file, `-` for standard input.

    format_name: the name of the format, None to detect it; max_bytes: limit on the (decompressed) size of the file.
    Raises: InputError for a file that cannot be read or holds no trace, ConfigError for an unknown format.
    """
    yield from document_traces(open_document(path, max_bytes=max_bytes, on_progress=on_progress), format_name)


def document_traces(document: Document, format_name: str | None = None) -> Iterator[Trace]:
    """Yield every trace of a document, of an archive those of its members. Raises: as read_traces."""
    named = None if format_name is None else find_source(format_name)
    if document.head.archive is None or (_matching(document.head) if named is None else _fits(named, document)):
        yield from _traces(document, named or detect(document))
        return
    from goldentrace.sources.archive import members  # what reads archives is slow to import

    has_trace = False
    for member in members(document):
        try:
            for trace in _traces(member, _source_of_member(member, named)):
                has_trace = True
                yield trace
        except NoTraceError:
            document.left_out.append(member.name.removeprefix(document.name + MEMBER_MARK))
    if not has_trace:
        raise NoTraceError(
            "the archive holds no trace" + ("" if named is None else f" of the format {named.name}"),
            where=Where(document.name), next_step="give an archive of files that `goldentrace formats` lists",
        )  # fmt: skip


def _source_of_member(member: Document, named: Source | None) -> Source:
    """The format of a member. One that is named is that of the members it fits: not every file is a run of it."""
    if named is None or _sources_of("native")[0].matches(member.head):
        return detect(member)
    if _fits(named, member):
        return named
    if member.head.archive is not None and not _matching(member.head):
        raise _nested(member)
    raise NoTraceError(f"not of the format {named.name}", where=Where(member.name))


def _nested(member: Document) -> InputError:
    return InputError("an archive within an archive", where=Where(member.name), next_step="unpack the outer one first")


def _fits(source: Source, document: Document) -> bool:
    return source.matches(document.head) or (source.may_match is not None and source.may_match(document.head))


def _traces(document: Document, source: Source) -> Iterator[Trace]:
    count = 0
    try:
        for trace in source.read(document):
            count += 1
            yield trace
    except RecursionError:
        raise InputError(
            "nested too deeply", where=Where(document.name), next_step="flatten what it embeds, or export it as text"
        ) from None
    if not count:
        raise NoTraceError(
            f"no trace in it (read as {source.name})", where=Where(document.name),
            next_step="name another format with --format NAME",
        )  # fmt: skip


def trace_name(trace: Trace) -> str:
    """Return the short name of a trace: what its source calls it, else its id, else `trace`."""
    start = trace.start
    name = (start.attributes or {}).get("name")
    return name if isinstance(name, str) and name else (start.trace_id or "trace")


def _matching(head: Head) -> list[Source]:
    known = sources()
    return [source for source in known if source.matches(head)] or [
        source for source in known if source.may_match is not None and source.may_match(head)
    ]


def _sources_of(name: str) -> tuple[Source, ...]:
    module = importlib.import_module(f"goldentrace.sources.{name}")
    found = getattr(module, "SOURCES", None)
    return tuple(found) if found is not None else (module.SOURCE,)
