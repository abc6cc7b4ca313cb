r"""Trace text is hostile to whatever shows it: one sanitiser per sink, so that no renderer invents its own.

What a sink would act upon becomes a visible escape (`\x1b`, `\u202e`) or the sink's own quoting; everything else stays
as it is, `<secret:1>` included. Patterns are texts that `re` compiles when they are first used: most reports need none.
This module must not shorten or redact anything.
"""

import re
from typing import Final

_UNSAFE: Final = (
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL and C1: ESC and CSI start terminal commands
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # invisible, turning text
    "\ud800-\udfff"  # lone surrogates: no encoding has them
    "\U000e0000-\U000e007f]"  # tags: invisible copies of ASCII
)
"""Controls, bidirectional controls (Unicode Standard Annex 9) and others that change how their neighbours show. The
joiners U+200C and U+200D stay: scripts and emoji need them."""

_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LOG_COMMAND: Final = r"##(?=[^\s\[\]]*\[)"
"""`##[error]`, `##vso[…]`, `##teamcity[…]`: what runners of CI services carry out wherever in a line it stands."""
_LINE_COMMAND: Final = r"^(\s*):(?=:)"
"""GitHub's runner carries out lines that begin with `::`, white space before it ignored."""


def terminal(text: str) -> str:
    """Return one line of text for a terminal or a CI log: no character moves, colours, hides or turns text around, and
    no runner takes it for a command. Idempotent."""
    safe = text if text.isascii() and text.isprintable() else re.sub(_UNSAFE, _escape, text)
    if "##" in safe:
        safe = re.sub(_LOG_COMMAND, r"\\x23#", safe)
    return re.sub(_LINE_COMMAND, r"\1\\x3a", safe) if safe.lstrip()[:2] == "::" else safe


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char in _SHORT:
        return _SHORT[char]
    point = ord(char)
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def github_data(text: str) -> str:
    """Return text as the message of a GitHub workflow command: `%`, CR and LF escaped as the runner reads them."""
    lines = "\n".join(terminal(line) for line in text.split("\n"))
    return lines.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def github_property(text: str) -> str:
    """Return text as a property of a GitHub workflow command: `:` and `,` escaped too."""
    return github_data(text).replace(":", "%3A").replace(",", "%2C")


_MARKDOWN: Final = r"[\\`*_{}\[\]()<>#+!|~$&@:.-]"
"""What starts markup, HTML, an entity, a mention, an automatic link or a formula in GitHub's or GitLab's Markdown."""


def markdown(text: str) -> str:
    """Return text as plain words inside a line of Markdown or a table cell: every character of markup as an entity.

    Entities rather than backslashes: a backslash neither stops a mention nor an automatic link.
    """
    safe = re.sub(_UNSAFE, _escape, text)
    return re.sub(_MARKDOWN, lambda match: f"&#{ord(match[0])};", safe)


_ACTIVE_HTML: Final = (
    r"<(?=/?(?:script|style|iframe|object|embed|link|meta|base|form|svg|math|img|video|audio|body|html|template|textarea)"
    r"(?![\w#:.-]))"
)
"""Where an element begins that does something in a page. A fence makes it text, but not to whoever shows the page
without reading the fences; a placeholder (`<img#1/id>`) is none."""


def markdown_block(text: str) -> str:
    """Return text as a fenced block of Markdown, with a fence longer than any run of backticks in it."""
    lines = "\n".join(re.sub(_UNSAFE, _escape, line) for line in text.split("\n"))
    lines = re.sub(_ACTIVE_HTML, r"\\x3c", lines, flags=re.IGNORECASE)
    longest = max((len(run) for run in re.findall(r"`+", lines)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}diff\n{lines}\n{fence}"


_NOT_XML: Final = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\ufdd0-\ufdef]"
"""Outside the characters of XML 1.0 (section 2.2), and the non-characters that it discourages."""
_KEPT_BY_XML: Final = {"\t", "\n", "\r"}


def xml(text: str) -> str:
    """Return text for an XML attribute or element.

    Characters that XML has no form for, and those that turn text around, become visible escapes; the rest is quoted.
    White space other than the blank is written as a reference, so that attributes keep it.
    """
    shown = re.sub(_UNSAFE, lambda match: match[0] if match[0] in _KEPT_BY_XML else _escape(match), text)
    safe = re.sub(_NOT_XML, _escape, shown)
    safe = safe.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    return safe.replace("\t", "&#9;").replace("\n", "&#10;").replace("\r", "&#13;")
