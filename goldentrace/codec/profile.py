"""Profiles: YAML to `Profile`, `extends` merged, and the digest of what alters normalization.

The shipped `default@1` is all defaults; its file is known by its checksum, so that the common run loads no YAML. A file
that says anything else is read. This module must not look for files: texts are passed in.
"""

import hashlib
from collections.abc import Callable
from typing import Any, Final

import msgspec

from goldentrace.codec.canonical import LEAF_DIGITS, canonical, digest
from goldentrace.codec.yaml_document import YamlDocument, merged, read_yaml, suggest
from goldentrace.errors import ConfigError
from goldentrace.model.profile import Profile

MAX_ANCESTORS: Final = 10
KNOWN_FILES: Final[dict[str, Profile]] = {
    "79e30a514ff478393604c5b1116fcda04b865da64422a0cf0dacf16e23ed8a77": Profile(name="default@1"),
}
"""SHA-256 of a shipped file -> what it says. Tested against the files."""

Finder = Callable[[str], tuple[bytes, str] | None]
"""A profile's name -> the bytes and the path of its file, None where there is none."""


def read_profile(data: bytes, path: str, find: Finder | None = None) -> Profile:
    """Return the profile that a file holds, merged with those that it extends.

    find: gives the file of a profile that `extends` names. Mappings are merged key by key, lists and plain values
    replace. Raises: ConfigError naming file, line and pointer for an unknown key (with the nearest one) and a wrong
    value; where `extends` names nothing, or leads back to itself.
    """
    known = KNOWN_FILES.get(hashlib.sha256(data).hexdigest())
    if known is not None:
        return known
    document = read_yaml(data, path)
    own: Profile = document.convert(Profile)
    if own.extends is None:
        return own
    whole = _extended(document, own, find, (own.name,))
    return msgspec.convert(whole, Profile)


def _extended(document: YamlDocument, own: Profile, find: Finder | None, seen: tuple[str, ...]) -> dict[str, Any]:
    name = own.extends
    values: dict[str, Any] = document.value
    if name is None:
        return values
    if name in seen or len(seen) > MAX_ANCESTORS:
        chain = " → ".join((*seen, name))
        raise document.error("/extends", f"profiles extend one another in a circle: {chain}", "name another profile")
    found = find(name) if find is not None else None
    if found is None:
        raise document.error("/extends", f"no profile {name!r}", "name a profile of normalizers/, or a shipped one")
    parent = read_yaml(*found)
    base = _extended(parent, parent.convert(Profile), find, (*seen, name))
    return merged(base, values)


def profile_hash(profile: Profile) -> str:
    """Return the digest that goldens carry: over what alters normalization, not over severities, tolerances or
    rules."""
    return digest(canonical(profile.normalizing()), LEAF_DIGITS)


def unknown_profile(name: str, known: list[str]) -> ConfigError:
    """Return the error for a profile that nobody has, to be raised."""
    return ConfigError(f"no profile {name!r}", next_step=suggest(name, known) if known else "add it under normalizers/")
