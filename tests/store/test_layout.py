"""Where files lie, and that nothing is written outside the project."""

from pathlib import Path

import pytest

from goldentrace.errors import ConfigError, InfrastructureError
from goldentrace.store.layout import Layout


def test_places(tmp_path: Path) -> None:
    layout = Layout(tmp_path, "golden")
    assert layout.golden("a", None) == tmp_path / "golden/a.jsonl"
    assert layout.golden("a", "s") == tmp_path / "golden/s/a.jsonl"
    assert layout.candidate("a", "s") == tmp_path / ".goldentrace/runs/s/a.jsonl"
    assert layout.log("a.b", None) == tmp_path / ".goldentrace/runs/a.b.log"
    assert layout.pending("a", None) == tmp_path / ".goldentrace/pending/a.jsonl"


def test_artifacts_take_what_is_made_but_not_what_is_remembered(tmp_path: Path) -> None:
    layout = Layout(tmp_path, artifacts=tmp_path / "out")
    assert layout.candidate("a", None) == tmp_path / "out/runs/a.jsonl"
    assert layout.pending("a", None) == tmp_path / "out/pending/a.jsonl"
    assert layout.golden("a", None) == tmp_path / "goldens/a.jsonl"
    assert layout.values == tmp_path / ".goldentrace/values"


def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    for name, suite in (("../a", None), ("a", ".."), ("a", "b/c"), ("", None)):
        with pytest.raises(ConfigError):
            Layout(tmp_path).golden(name, suite or None)


def test_the_local_folder_ignores_itself(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.make_room(layout.candidate("a", "s"))
    assert (tmp_path / ".goldentrace/runs/s").is_dir()
    assert (tmp_path / ".goldentrace/.gitignore").read_text().splitlines()[-1] == "*"


def test_a_link_out_of_the_project_is_refused(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / ".goldentrace").symlink_to(outside)
    layout = Layout(inside)
    with pytest.raises(ConfigError, match="out of the project"):
        layout.make_room(layout.candidate("a", None))
    assert list(outside.iterdir()) == []


def test_a_project_that_is_itself_behind_a_link_is_fine(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    layout = Layout(tmp_path / "link")
    assert layout.make_room(layout.golden("a", None)).parent.is_dir()


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "goldens").write_text("a file")
    layout = Layout(tmp_path)
    with pytest.raises(InfrastructureError, match="cannot make the folder"):
        layout.make_room(layout.golden("a", "s"))


def test_shown_paths_are_relative_to_where_one_stands(tmp_path: Path) -> None:
    layout = Layout(tmp_path, base=tmp_path)
    assert layout.shown(layout.golden("a", None)) == "goldens/a.jsonl"
    assert layout.shown(Path("x/y")) == "x/y"
    assert Layout(tmp_path, base=tmp_path / "sub").shown(tmp_path / "goldens/a") == "../goldens/a"
    assert Layout(tmp_path, base=tmp_path / "a/b/c/d").shown(tmp_path / "x") == str(tmp_path / "x")
