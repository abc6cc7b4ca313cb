"""Secrets: found in any text or under a telling key, replaced by `<secret:n>`, equal ones by equal numbers.

The list `secrets/1` is small on purpose: what the known providers issue, tokens and keys of standard form, credentials
in URLs and headers. No kept detector library fits: those that exist scan files, cost milliseconds a value and need
entropy thresholds that mask ids. A literal prefilter comes first, because a record-time pattern run costs 17 us an
event and the prefilter under 1 us. This module must not decide what is compared.

Source of the shapes: each provider's own documentation of its key prefixes; RFC 7519 (JWT), RFC 7468 (PEM), RFC 6750
(Bearer), RFC 3986 section 3.2.1 (userinfo).
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from goldentrace.model.profile import Redact
from goldentrace.normalize.text import Segments, Token, split_by

PLACEHOLDER: Final = re.compile(r"<secret:\d+>")

_PATTERNS: Final[tuple[tuple[str, str], ...]] = (
    ("private-key", r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)"),
    ("provider-key", r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{20,}"),
    ("provider-key", r"(?<![A-Za-z0-9])[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    ("provider-key", r"(?<![A-Za-z0-9])gh[pousr]_[A-Za-z0-9]{30,}"),
    ("provider-key", r"(?<![A-Za-z0-9])github_pat_[A-Za-z0-9_]{22,}"),
    ("provider-key", r"(?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{20,}"),
    ("provider-key", r"(?<![A-Za-z0-9])A[KS]IA[0-9A-Z]{16}(?![0-9A-Za-z])"),
    ("provider-key", r"(?<![A-Za-z0-9])AIza[0-9A-Za-z_-]{35}"),
    ("provider-key", r"(?<![A-Za-z0-9])xox[abeprs]-[A-Za-z0-9-]{10,}"),
    ("provider-key", r"(?<![A-Za-z0-9])(?:hf|gsk|npm)_[A-Za-z0-9]{30,}"),
    ("provider-key", r"(?<![A-Za-z0-9])lsv2_(?:pt|sk)_[A-Za-z0-9_]{32,}"),
    ("provider-key", r"(?<![A-Za-z0-9])SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("provider-key", r"(?<![A-Za-z0-9])pypi-[A-Za-z0-9_-]{50,}"),
    ("jwt", r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]*"),
    ("bearer", r"(?i:\b(?:bearer|basic)\s+)(?P<bearer>(?=[A-Za-z._~+/-]*[0-9=])[A-Za-z0-9._~+/-]{16,}=*)"),
    ("cookie", r"(?i:\b(?:set-)?cookie:\s*)(?P<cookie>[^\r\n\"]+)"),
    ("auth-header", r"(?i:\b(?:authorization|x-api-key|api-key):\s*)(?P<header>[^\s\"]{8,}(?: [^\s\"]{8,})?)"),
    ("url-password", r"(?<=://)[^/\s:@\"]*:(?P<password>[^/\s@\"]+)(?=@)"),
)
_ANY: Final = re.compile("|".join(f"(?P<p{n}>{pattern})" for n, (_, pattern) in enumerate(_PATTERNS)))
_INNER_GROUPS: Final = ("bearer", "cookie", "header", "password")

_SECRET_KEYS: Final = frozenset(
    [
        "password",
        "passwd",
        "passphrase",
        "secret",
        "client_secret",
        "api_key",
        "apikey",
        "x_api_key",
        "access_token",
        "refresh_token",
        "id_token",
        "auth_token",
        "session_token",
        "bearer_token",
        "api_token",
        "accessjwt",
        "refreshjwt",
        "authorization",
        "proxy_authorization",
        "cookie",
        "set_cookie",
        "private_key",
        "secret_key",
        "access_key",
        "secret_access_key",
    ]
)
"""Names under which any string is a secret, dashes as underscores, case folded."""

_MARKS: Final = (
    "sk-", "_live_", "_test_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "akia", "asia", "aiza",
    "xox", "hf_", "gsk_", "npm_", "lsv2_", "sg.", "pypi-", "eyj", "-----begin", "bearer", "basic", "cookie",
    "authorization", "key", "://", "passw", "passphrase", "secret", "token", "jwt",
)  # fmt: skip
"""Lower-case literals of which a text with a secret holds at least one."""


class Redactor:
    """Finds secrets, by the built-in list and the user's rules.

    Numbers are given by the caller's `numbers` (secret text -> n), so that one run or one recorder keeps identity.
    """

    def __init__(self, settings: Redact | None = None) -> None:
        settings = settings or Redact()
        self._is_builtin = settings.builtin
        self._own = [(rule.name, re.compile(rule.pattern)) for rule in settings.rules if rule.pattern]
        self._allowed = [re.compile(rule.allow) for rule in settings.rules if rule.allow]

    def is_suspect(self, text: str) -> bool:
        """May this text, or a JSON document as text, hold a secret? False is certain."""
        if self._own:
            return True
        if not self._is_builtin:
            return False
        low = text.lower()
        return any(mark in low for mark in _MARKS)

    def marks_in(self, text: str) -> tuple[str, ...]:
        """Return the literals in a text, or a JSON document as text, of which a built-in secret holds at least one: a
        string of that document whose lower() holds none of them holds no secret, unless its key says so."""
        low = text.lower() if self._is_builtin else ""
        return tuple([mark for mark in _MARKS if mark in low])

    def find(self, text: str, key: str | None = None) -> list[tuple[int, int, Token]]:
        """Return the secrets in a text as spans, ascending. key: the name under which the text stands, if any."""
        whole = PLACEHOLDER.fullmatch(text)
        if whole is None and key is not None and self._is_builtin and text and is_secret_key(key):
            spans = [(0, len(text), "secret-key")]
        else:
            spans = sorted(self._spans(text))
        found: list[tuple[int, int, Token]] = []
        done = 0
        for start, end, rule in spans:
            secret = text[start:end]
            if start < done or any(allowed.fullmatch(secret) for allowed in self._allowed):
                continue
            found.append((start, end, Token("secret", secret, secret, f"redact/{rule}")))
            done = end
        return found

    def _spans(self, text: str) -> Iterable[tuple[int, int, str]]:
        for match in PLACEHOLDER.finditer(text):
            yield match.start(), match.end(), "already"
        for name, pattern in self._own:
            for match in pattern.finditer(text):
                if match.end() > match.start():
                    yield match.start(), match.end(), name
        if self._is_builtin and self.is_suspect(text):
            for match in _ANY.finditer(text):
                for group in _INNER_GROUPS:
                    if match[group] is not None:
                        if not PLACEHOLDER.match(match[group]):
                            yield match.start(group), match.end(group), _PATTERNS[_index(match)][0]
                        break
                else:
                    yield match.start(), match.end(), _PATTERNS[_index(match)][0]

    def split(self, segments: Segments, key: str | None = None) -> Segments:
        """Return the segments with secrets made tokens."""
        return split_by(segments, lambda text: self.find(text, key))

    def redact_text(self, text: str, numbers: dict[str, int], key: str | None = None) -> str:
        """Return the text with each secret as `<secret:n>`."""
        spans = self.find(text, key)
        if not spans:
            return text
        parts: list[str] = []
        done = 0
        for start, end, token in spans:
            parts.append(text[done:start])
            is_done = PLACEHOLDER.fullmatch(token.value) is not None
            parts.append(token.value if is_done else f"<secret:{numbers.setdefault(token.value, len(numbers) + 1)}>")
            done = end
        return "".join((*parts, text[done:]))

    def redact_value(self, value: Any, numbers: dict[str, int], key: str | None = None) -> Any:
        """Return a JSON value with each secret in its strings and keys as `<secret:n>`; the same object where none
        is."""
        if isinstance(value, str):
            return self.redact_text(value, numbers, key)
        if isinstance(value, dict):
            return {
                self.redact_text(name, numbers): self.redact_value(item, numbers, name) for name, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.redact_value(item, numbers, key) for item in value]
        return value


def _index(match: re.Match[str]) -> int:
    return next(n for n in range(len(_PATTERNS)) if match[f"p{n}"] is not None)


def is_secret_key(key: str) -> bool:
    """Is any string under this name a secret?"""
    folded = key.replace("-", "_").lower()
    return folded in _SECRET_KEYS
