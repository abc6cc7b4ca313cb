"""The documentation of codes, which `explain` prints: of changes from a page each, of rules from their docstrings.

A rule's docstring is its documentation, read from its source without running it. Nothing here knows what a code does.
"""

import ast
import difflib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from goldentrace.diff.codes import CODES
from goldentrace.errors import ConfigError
from goldentrace.report.cells import fit
from goldentrace.report.page import Page

CHANGE_SECTIONS: Final = ("What it finds", "Why it matters", "Example", "Not a change", "Options", "References")
"""What the page of every change code holds, in this order; a test sees to it."""
_PACKAGE: Final = Path(__file__).parent
_PAGES: Final = _PACKAGE / "explanations"
_RULES: Final = _PACKAGE.parent / "rules"
_RULE_MODULE: Final = re.compile(r"(gt\d{4})_(\w+)\.py")
_PLAIN_WORD: Final = re.compile(r"[a-z]+(?=[\s,;:.-]|$)")
_SECTION: Final = re.compile(r"([A-Z][a-z' ]{2,30}): ?(.*)")


def explain_code(code: str, *, width: int = 80, color: bool = False) -> str:
    """Return the documentation of a change code or a rule, fitted to `width` columns.

    code: `GT101`, in any case, or its name, `argument-changed`.
    Raises: ConfigError for what is neither, with the nearest one.
    """
    known = _names()
    wanted = code.strip()
    found = known.get(wanted.lower()) or (wanted.upper() if wanted.upper() in known.values() else None)
    page = markdown_of(found) if found is not None else None
    if page is None:
        everything = {*known, *(value.lower() for value in known.values())}
        near = difflib.get_close_matches(wanted.lower(), sorted(everything), n=1)
        hint = f"did you mean {near[0].upper() if near[0].startswith('gt') else near[0]}? " if near else ""
        raise ConfigError(f"no code {code!r}", next_step=f"{hint}`goldentrace rules` lists all codes")
    return _as_text(page, width, color=color)


def markdown_of(code: str) -> str | None:
    """Return the documentation of a code as Markdown, None where there is no such code."""
    if code in CODES:
        return (_PAGES / f"{code}.md").read_text("utf-8")
    path = _rule_files().get(code)
    return None if path is None else _page_of_rule(path)


def summary_of(code: str) -> str | None:
    """Return what a code finds in one clause: the line below the title of its page, without the full stop."""
    page = markdown_of(code)
    if page is None:
        return None
    lines = [line for line in page.split("\n")[1:] if line]
    return lines[0].rstrip(".") if lines and not lines[0].startswith("#") else None


def _names() -> dict[str, str]:
    """Name of a code, lower case -> code."""
    names = {entry.name: entry.code for entry in CODES.values()}
    names.update({entry.code.lower(): entry.code for entry in CODES.values()})
    for code, path in _rule_files().items():
        names[code.lower()] = code
        match = _RULE_MODULE.fullmatch(path.name)
        assert match is not None
        names[match[2].replace("_", "-")] = code
    return names


def _rule_files() -> dict[str, Path]:
    """Code of a rule -> its file: one rule, one file, named for it."""
    return {
        match[1].upper(): path
        for path in sorted(_RULES.glob("gt*.py"))
        if (match := _RULE_MODULE.fullmatch(path.name)) is not None
    }


def _page_of_rule(path: Path) -> str:
    """The docstring `GT1003 name: summary`, then sections `What it finds: …` with indented lines, as a page."""
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    head, _, body = docstring.partition("\n")
    title, _, summary = head.partition(": ")
    lines = [f"# {title}", "", _as_sentence(summary)]
    for line in body.split("\n"):
        match = _SECTION.fullmatch(line)
        if match is not None:
            lines += ["", f"## {match[1]}", "", _as_sentence(match[2])]
        else:
            lines.append(line.strip())
    code = title.partition(" ")[0]
    lines += [
        "", "## Where it is meant", "", "Add to the profile:", "", "```yaml",
        f"rules: {{suppressions: [{{code: {code}, tool: TOOL, reason: WHY}}]}}", "```", "",
        "`goldentrace record NAME --allow-defects` accepts it in the header of that golden alone.",
    ]  # fmt: skip
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def _as_sentence(text: str) -> str:
    """The text with a capital letter, unless it begins with a name: `get_order(…)`, `max_bytes (…)`."""
    return text[:1].upper() + text[1:] if _PLAIN_WORD.match(text) else text


def sections(page: str) -> dict[str, str]:
    """Return the sections of a page by their headings, without the title and the summary."""
    parts = re.split(r"^## (.+)$", page, flags=re.MULTILINE)
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def _as_text(markdown: str, width: int, *, color: bool) -> str:
    """Markdown for a terminal: headings without marks, examples indented and left as they are, the rest wrapped."""
    page = Page(width, color=color)
    for kind, text in _blocks(markdown):
        if kind == "title":
            page.line((text, "bold"))
        elif kind == "section":
            page.blank()
            page.line((text, "bold"))
        elif kind == "example":
            for line in text.split("\n"):
                page.line("    ", fit(line, page.width - 4))
        elif kind == "item":
            page.wrapped(text, indent=4, first="  - ")
        elif kind == "text":
            page.wrapped(text, indent=2)
    return page.text()


def _blocks(markdown: str) -> Iterator[tuple[str, str]]:
    """Yield (kind, text): title, section, example, item, text. A paragraph's lines are joined."""
    paragraph: list[str] = []
    kind = "text"
    example: list[str] | None = None
    for line in [*markdown.split("\n"), ""]:
        if line.startswith("```"):
            if example is not None:
                yield "example", "\n".join(example)
            example = [] if example is None else None
            continue
        if example is not None:
            example.append(line)
            continue
        is_new = not line.strip() or line.startswith(("#", "- "))
        if is_new and paragraph:
            yield kind, " ".join(paragraph)
            paragraph, kind = [], "text"
        if line.startswith("# "):
            yield "title", line[2:]
        elif line.startswith("## "):
            yield "section", line[3:]
        elif line.startswith("- "):
            paragraph, kind = [line[2:].strip()], "item"
        elif line.strip():
            paragraph.append(line.strip())
