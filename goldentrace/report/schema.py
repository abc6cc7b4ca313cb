"""The JSON Schemas that ship in the package, as `goldentrace schema NAME` prints them and editors use them.

Those of traces, goldens, configuration and profiles are made from the types that read the files, by
`ci/write_schemas.py`.
"""

from pathlib import Path
from typing import Final

from goldentrace.errors import ConfigError

_PACKAGE: Final = Path(__file__).parent.parent
SCHEMAS: Final[dict[str, str]] = {
    "trace": "report/schemas/trace.schema.json",
    "golden": "report/schemas/golden.schema.json",
    "config": "report/schemas/config.schema.json",
    "profile": "report/schemas/profile.schema.json",
    "report": "report/schemas/report.schema.json",
    "faults": "faults/plan.schema.json",
    "script": "replay/script.schema.json",
}
"""Name -> file below the package. `trace` and `golden` are of one line of a file."""


def schema_text(name: str) -> str:
    """Return the JSON Schema of a file format as text, ending in a newline.

    Raises: ConfigError for a name that is not in SCHEMAS.
    """
    path = SCHEMAS.get(name)
    if path is None:
        raise ConfigError(f"no schema {name!r}", next_step=f"one of: {', '.join(SCHEMAS)}")
    return (_PACKAGE / path).read_text("utf-8")
