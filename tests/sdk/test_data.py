"""Values of all sizes and kinds, in and out."""

from __future__ import annotations

from pathlib import Path

from pyarrow import parquet

from tests.sdk.sdk import Sdk
from tests.sdk.stores import Store

MEGABYTE = 1024 * 1024


def test_a_file_goes_in_through_two_tasks_and_out(sdk: Sdk, store: Store, tmp_path: Path) -> None:
    text = tmp_path / "größe.txt"
    text.write_text("flyte\n" * 1000, encoding="utf-8")
    run = sdk.run("data.both_ways", text={"$file": str(text)})

    assert store.fetched(run.result()["$file"], tmp_path).read_text(encoding="utf-8") == "FLYTE\n" * 1000


def test_a_folder_goes_in_and_out(sdk: Sdk, store: Store, tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "deep/deeper/c.txt"):
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    run = sdk.run("data.sorted_names", folder={"$dir": str(tmp_path / "tree")})

    result = store.fetched(run.result()["$dir"], tmp_path)
    assert [str(path.relative_to(result)) for path in result.rglob("*") if path.is_file()] == ["deep/names"]
    assert (result / "deep/names").read_text(encoding="utf-8") == "a.txt\nb.txt\nc.txt"


def test_a_table_goes_in_through_two_tasks_and_out(sdk: Sdk, store: Store, tmp_path: Path) -> None:
    run = sdk.run("tables.two_degrees", table={"$csv": "city,celsius\nOslo,1.5\nQuito,20.0\n"})

    table = parquet.read_table(store.fetched(run.result()["$parquet"], tmp_path))
    assert table.to_pydict() == {"city": ["Oslo", "Quito"], "celsius": [3.5, 22.0]}


def test_inputs_of_twelve_megabytes_arrive(sdk: Sdk) -> None:
    assert sdk.run("data.length", text="x" * 12 * MEGABYTE).result() == 12 * MEGABYTE


def test_results_of_several_megabytes_come_back(sdk: Sdk) -> None:
    text = "0123456789abcdef" * (5 * MEGABYTE // 16)
    assert sdk.run("data.echo", text=text).result() == text


def test_a_report_is_what_the_task_wrote(sdk: Sdk) -> None:
    run = sdk.run("data.reports", steps=3)

    report = sdk.call("report", run=run.run)
    assert "<h1>Steps</h1>" in report
    assert "<p>step 0 ✓</p>" in report and "<p>step 2 ✓</p>" in report


def test_raw_data_goes_where_the_run_says(sdk: Sdk, store: Store, tmp_path: Path) -> None:
    elsewhere = f"{store.base_uri.removesuffix('/flyte').removesuffix('/store')}/raw"
    default = sdk.run("data.raw_path").result()
    chosen = sdk.run("data.raw_path", options={"raw_data_path": elsewhere}).result()

    for uri in (default, chosen):
        assert store.fetched(uri, tmp_path).read_bytes() == b"raw"
    assert default.startswith(f"{store.base_uri}/")
    assert chosen.startswith(f"{elsewhere}/")


def test_a_file_that_a_task_makes_in_its_own_folder_outlives_it(sdk: Sdk, store: Store, tmp_path: Path) -> None:
    uri = sdk.run("data.makes_a_file").result()["$file"]

    assert store.fetched(uri, tmp_path).read_text(encoding="utf-8") == "made here"
    assert uri.startswith(f"{store.base_uri}/")


def test_a_file_that_a_task_makes_in_a_temporary_folder_outlives_that(sdk: Sdk) -> None:
    assert sdk.run("data.reads_a_temporary_file").result() == "made there"
