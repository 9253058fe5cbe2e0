"""The command line: projects, its own configuration and folders, its reference."""

from __future__ import annotations

from pathlib import Path

from tests.sdk.command_line import Flyte
from tests.sdk.serving import Server


def test_a_project_is_changed_archived_and_brought_back(flyte: Flyte) -> None:
    assert flyte("create", "project", "--id", "changing", "--name", "Before").code == 0
    changed = flyte("update", "project", "changing", "--name", "After", "--description", "new words", "-l", "team=ml")
    assert changed.code == 0, changed.text
    (shown,) = flyte.all("get project changing")
    for word in ("name='After'", "description='new words'", "team: ml", "PROJECT_STATE_ACTIVE"):
        assert word in shown.text

    archived = flyte("update", "project", "changing", "--archive")
    assert archived.code == 0 and "archived" in archived.text, archived.text
    listed, hidden = flyte.all(
        "--output-format json-raw get project", "--output-format json-raw get project --archived"
    )
    assert "changing" not in [item["id"] for item in listed.json()]
    assert "changing" in [item["id"] for item in hidden.json()]

    assert flyte("update", "project", "changing", "--unarchive").code == 0
    (again,) = flyte.all("get project changing")
    assert "PROJECT_STATE_ACTIVE" in again.text and "name='After'" in again.text


def test_a_project_that_is_not_there_is_not_changed(flyte: Flyte) -> None:
    done = flyte("update", "project", "no-such-project", "--name", "x")

    assert done.code != 0
    assert "no-such-project" in done.text and "not found" in done.text.lower()


def test_the_command_makes_a_configuration_that_works(flyte: Flyte, server: Server, tmp_path: Path) -> None:
    made = tmp_path / "made.yaml"
    options = ("--insecure", "--project", "flytesnacks", "--domain", "development", "--output", str(made), "--force")
    done = flyte("create", "config", "--endpoint", f"localhost:{server.port}", *options)
    assert done.code == 0, done.text
    with_it = Flyte(made, tmp_path)
    config, projects = with_it.all("get config", "--output-format json-raw get project")

    assert f"dns:///localhost:{server.port}" in config.text
    assert "flytesnacks" in [item["id"] for item in projects.json()]


def test_the_configuration_of_the_devbox_means_our_default_address(flyte: Flyte, tmp_path: Path) -> None:
    made = tmp_path / "devbox.yaml"
    done = flyte("create", "config", "--devbox", "--output", str(made), "--force")

    assert done.code == 0, done.text
    written = made.read_text(encoding="utf-8")
    for line in ("endpoint: dns:///localhost:30080", "insecure: true", "project: flytesnacks", "domain: development"):
        assert line in written


def test_what_needs_no_server_works_beside_one(flyte: Flyte) -> None:
    config, cache, reference = flyte.all("get config", "delete local-cache", "gen docs --type markdown")

    assert "builder='remote'" in config.text
    assert cache.code == 0 and "Cleared local cache" in cache.text
    assert "flyte update project" in reference.text


def test_a_file_is_published_as_an_artifact_and_shown(flyte: Flyte, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("words")
    about = ("--description", "made by the CLI", "--attr", "team=ml", "--partition", "region=eu")
    made = flyte("create", "artifact", "of-cli", "--from-file", str(file), "--version", "v1", *about)
    assert made.code == 0 and "Published artifact of-cli@v1" in made.text, made.text
    table, one = flyte.all("get artifact", "--output-format json get artifact of-cli v1")

    assert "of-cli" in table.text and "made by the CLI" in table.text
    assert "notes.txt" in one.text and "'team': 'ml'" in one.text and "'staticValue': 'eu'" in one.text
