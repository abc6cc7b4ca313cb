"""What a source recorded and what it did not, with the reason: the table that `import` prints."""

from goldentrace.report.page import Page, table
from goldentrace.sources.coverage import Coverage


def render_coverage(coverage: Coverage, path: str, format_name: str, *, width: int = 80, color: bool = False) -> str:
    """Return the table of one imported trace. path: of the source; format_name: what it was read as."""
    page = Page(width, color=color)
    tail = f"  read as {format_name}"
    page.line((page.fit(path, len(tail)), "bold"), tail)
    for name, value in table([list(row) for row in coverage.rows()]):
        is_absent = value.startswith("no:")
        page.wrapped(value, indent=len(name) + 4, style="warning" if is_absent else "", first=f"  {name}  ")
    return page.text()
