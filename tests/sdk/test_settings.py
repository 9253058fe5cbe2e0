"""Settings by the command line, and what they do to runs."""

from __future__ import annotations

from pathlib import Path

from tests.sdk.command_line import Flyte
from tests.sdk.sdk import Sdk

SCOPE = ("--project", "flytesnacks", "--domain", "development")
NAMES = ["OF_SETTINGS", "OF_BOTH"]


def test_settings_are_edited_shown_and_in_force_for_runs(flyte: Flyte, sdk: Sdk, tmp_path: Path) -> None:
    edited, shown = tmp_path / "edited.yaml", tmp_path / "shown.yaml"
    edited.write_text("environment_variables: {OF_SETTINGS: settings, OF_BOTH: settings}\n")

    created = flyte("edit", "settings", *SCOPE, "--from-file", str(edited))
    read = flyte("get", "settings", *SCOPE, "--to-file", str(shown))
    run = sdk.run("surroundings.variables", options={"env_vars": {"OF_BOTH": "run"}}, names=NAMES)
    edited.write_text("{}\n")
    updated = flyte("edit", "settings", *SCOPE, "--from-file", str(edited))
    after = sdk.run("surroundings.variables", names=NAMES)

    assert created.code == 0, created.text
    assert read.code == 0 and "(v1)" in read.text, read.text
    assert "OF_SETTINGS: settings" in shown.read_text()
    assert run.result() == ["settings", "run"]
    assert updated.code == 0, updated.text
    assert after.result() == ["(unset)", "(unset)"]
