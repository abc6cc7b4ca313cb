"""Profiles on disk: the project's first, then the shipped ones, which are frozen; and the gate of a golden."""

import hashlib
from pathlib import Path

import pytest

from goldentrace.codec.profile import KNOWN_FILES
from goldentrace.codec.yaml_document import read_yaml
from goldentrace.errors import ConfigError, NotComparableError
from goldentrace.model.normal import Header
from goldentrace.model.profile import Profile
from goldentrace.store.profiles import Profiles, format_profile, shipped_folder

FROZEN = {"default@1": "h:bc58f7d766b0", "strict@1": "h:0fdc7b40edca", "lenient@1": "h:92c5b991d84b"}
"""The digests of the shipped profiles, which goldens out there carry. A changed profile is a new number, never a new digest."""


def shop(folder: Path, text: str = "name: shop@1\nextends: default@1\n", name: str = "shop@1") -> Path:
    (folder / "normalizers").mkdir(exist_ok=True)
    file = folder / f"normalizers/{name}.yaml"
    file.write_text(text)
    return file


@pytest.mark.parametrize(("name", "digest"), FROZEN.items())
def test_a_shipped_profile_is_frozen(name: str, digest: str) -> None:
    assert Profiles().load(name).hash == digest


def test_every_shipped_profile_is_pinned() -> None:
    assert sorted(FROZEN) == Profiles().names()


def test_the_known_file_says_what_its_text_says() -> None:
    """default@1 is not parsed where its file is known by its checksum; the text must say the same."""
    assert len(KNOWN_FILES) == 1
    data = (shipped_folder() / "default@1.yaml").read_bytes()
    assert KNOWN_FILES[hashlib.sha256(data).hexdigest()] == read_yaml(data, "default@1").convert(Profile)


def test_the_project_goes_before_what_is_shipped(tmp_path: Path) -> None:
    shop(tmp_path, "name: default@1\narguments: {equivalence: semantic}\n", "default@1")
    assert Profiles(tmp_path).load("default@1").profile.arguments.equivalence == "semantic"
    assert Profiles(tmp_path).load("strict@1").profile.arguments.equivalence == "semantic"  # it extends the project's


def test_a_name_without_a_number_is_the_newest(tmp_path: Path) -> None:
    for number in (1, 2, 10):
        shop(tmp_path, f"name: shop@{number}\n", f"shop@{number}")
    profiles = Profiles(tmp_path)
    assert profiles.newest("shop") == "shop@10"
    assert profiles.load("shop").profile.name == "shop@10"
    assert profiles.newest("default") == "default@1"


def test_a_profile_needs_no_number(tmp_path: Path) -> None:
    shop(tmp_path, "name: mine\n", "mine")
    assert Profiles(tmp_path).load("mine").profile.name == "mine"


@pytest.mark.parametrize("name", ["nope", "nope@1", "../x", "a/b", "", "a@b", "default@", "default@99", "DEFAULT"])
def test_a_profile_that_is_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError):
        Profiles(tmp_path).load(name)


def test_a_profile_is_named_like_its_file(tmp_path: Path) -> None:
    shop(tmp_path, "name: shop@2\n")
    with pytest.raises(ConfigError, match="is named 'shop@2', its file 'shop@1'"):
        Profiles(tmp_path).load("shop@1")


@pytest.mark.parametrize(
    ("text", "what", "pointer"),
    [
        ("backoff: {policy: opnai}", "policy", "$.backoff.policy"),
        ("tools: {t: {backoff: {polcy: openai}}}", "polcy", "$.tools.t.backoff.polcy"),
        ("compare: {severities: {GT9999: error}}", "GT9999", "$.compare.severities.GT9999"),
        ("redact: {rules: [{name: a, pattern: '('}]}", "regular expression", "$.redact.rules[0].pattern"),
        ("tools: {t: {error_patterns: ['[']}}", "regular expression", "$.tools.t.error_patterns[0]"),
    ],
)
def test_what_no_type_can_say_is_checked(tmp_path: Path, text: str, what: str, pointer: str) -> None:
    shop(tmp_path, f"name: shop@1\n{text}\n")
    with pytest.raises(ConfigError, match=what) as caught:
        Profiles(tmp_path).load("shop@1")
    assert caught.value.where is not None
    assert (caught.value.where.line, caught.value.where.pointer) == (2, pointer)


def test_a_rule_s_severity_can_be_set(tmp_path: Path) -> None:
    shop(tmp_path, "name: shop@1\ncompare: {severities: {GT1401: note}}\n")
    assert Profiles(tmp_path).load("shop@1").profile.compare.severities == {"GT1401": "note"}


def header(name: str, digest: str) -> Header:
    return Header(profile=name, profile_hash=digest)


def test_a_golden_whose_profile_holds(tmp_path: Path) -> None:
    found = Profiles(tmp_path).of_golden(
        header("default@1", FROZEN["default@1"]), "g.jsonl", record="goldentrace record x"
    )
    assert found.profile.name == "default@1"


def test_a_golden_whose_profile_is_gone(tmp_path: Path) -> None:
    with pytest.raises(NotComparableError, match="is gone") as caught:
        Profiles(tmp_path).of_golden(header("shop@1", "h:0"), "g.jsonl", record="goldentrace record x")
    assert "goldentrace record x" in caught.value.next_step


def test_a_golden_whose_profile_was_changed(tmp_path: Path) -> None:
    shop(tmp_path)
    before = Profiles(tmp_path).load("shop@1").hash
    shop(
        tmp_path, "name: shop@1\nextends: default@1\ncompare: {severities: {GT101: note}}\nbackoff: {policy: openai}\n"
    )
    Profiles(tmp_path).of_golden(header("shop@1", before), "g.jsonl", record="")  # tolerances alter no digest
    shop(tmp_path, "name: shop@1\nextends: default@1\nids: {keys: [token]}\n")
    with pytest.raises(NotComparableError, match="another shop@1"):
        Profiles(tmp_path).of_golden(header("shop@1", before), "g.jsonl", record="")


def test_a_broken_profile_of_a_golden_says_what_is_broken(tmp_path: Path) -> None:
    shop(tmp_path, "name: shop@1\nidz: {}\n")
    with pytest.raises(ConfigError, match="unknown key 'idz'"):
        Profiles(tmp_path).of_golden(header("shop@1", "h:0"), "g.jsonl", record="")


def test_a_key_of_digests_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop(tmp_path, "name: shop@1\narguments: {key_env: SHOP_KEY}\n")
    monkeypatch.delenv("SHOP_KEY", raising=False)
    with pytest.raises(ConfigError, match="SHOP_KEY is not set"):
        Profiles(tmp_path).load("shop@1")
    monkeypatch.setenv("SHOP_KEY", "k")
    assert Profiles(tmp_path).load("shop@1").key == b"k"


def test_formatting_a_profile_keeps_what_it_says(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbfname: shop@1   \r\nids:  # why\r\n  keys: [a]\r\n\r\n\r\n"
    canonical = format_profile(text, "shop@1.yaml")
    assert canonical == b"name: shop@1\nids:  # why\n  keys: [a]\n"
    assert format_profile(canonical, "shop@1.yaml") == canonical


@pytest.mark.parametrize("name", sorted(FROZEN))
def test_shipped_profiles_are_in_canonical_form(name: str) -> None:
    data = (shipped_folder() / f"{name}.yaml").read_bytes()
    assert format_profile(data, name) == data
