"""Is this a run of continuous integration? Then nothing under goldens is written. Must not know any command."""

import os
from collections.abc import Mapping
from typing import Final

import msgspec

from goldentrace.errors import ConfigError

VARIABLES: Final = ("GITHUB_ACTIONS", "TF_BUILD", "CI", "JENKINS_URL", "TEAMCITY_VERSION", "CODEBUILD_BUILD_ID")
"""Most services set CI; Azure Pipelines sets TF_BUILD instead, and Jenkins, TeamCity and CodeBuild only their own."""

_NO: Final = frozenset({"", "0", "false", "no", "off"})


class Ci(msgspec.Struct, frozen=True):
    """reason: why this counts as CI, None where it does not; may_write: goldens are written all the same."""

    reason: str | None
    may_write: bool = False

    def guard(self, what: str) -> None:
        """Refuse to write under goldens in CI. what: what was to be done. Raises: ConfigError."""
        if self.reason is not None and not self.may_write:
            raise ConfigError(
                f"not written: {self.reason} ({what} in CI)",
                next_step="--write-in-ci writes all the same; better: do it on your machine and commit the result",
            )


def find_ci(*, is_forced: bool = False, may_write: bool = False, environ: Mapping[str, str] | None = None) -> Ci:
    """Return whether this is CI, by the option or by the known variables."""
    environ = os.environ if environ is None else environ
    if is_forced:
        return Ci("--ci is given", may_write)
    for name in VARIABLES:
        if environ.get(name, "").strip().lower() not in _NO:
            return Ci(f"{name} is set", may_write)
    return Ci(None, may_write)
