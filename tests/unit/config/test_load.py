"""From files, environment and flags to a configuration, or to everything that is wrong with them."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from flyte_binary.config.errors import ConfigError
from flyte_binary.config.load import Loaded, load_config
from flyte_binary.config.model import Config, Domain, LogFormat, LogLevel
from flyte_binary.config.stores import store_choice


def problems(**sources: object) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(**{"environ": {}, **sources})  # type: ignore[arg-type]
    return [str(problem) for problem in caught.value.problems]


def write(folder: Path, text: str, name: str = "flyte.yaml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def from_yaml(folder: Path, text: str) -> Config:
    return load_config(files=[write(folder, text)], environ={}).config


def test_nothing_need_be_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(tmp_path))

    config = load_config(environ={}).config

    assert (config.runs.server.host, config.runs.server.port) == ("127.0.0.1", 30080)
    assert config.data_dir == tmp_path / ".flyte-binary"
    assert config.sqlite_path == tmp_path / ".flyte-binary/flyte.db"
    assert store_choice(config).base_uri == str(tmp_path / ".flyte-binary/store")
    assert [domain.id for domain in config.runs.domains] == ["development", "production", "staging"]
    assert config.runs.seed_projects == ("flytesnacks",)


def test_a_file_sets_values_of_every_kind(tmp_path: Path):
    config = from_yaml(
        tmp_path,
        f"""
        dataDir: {tmp_path}/data
        runs:
          server: {{port: 8090, allowUnauthenticated: true, host: 0.0.0.0}}
          domains:
            - id: dev
            - {{id: prod, name: The real one}}
          seedProjects: [one, two]
        dataproxy: {{upload: {{maxSize: 5Mi, maxExpiresIn: 90s}}}}
        cache_service: {{maxReservationHeartbeat: 1m}}
        executor:
          cores: 1.5
          memory: 2Gi
          environment: {{HTTP_PROXY: "http://proxy:3128", lower: case}}
          stopGrace: 0
        logger: {{level: DEBUG, formatter: {{type: json}}}}
        """,
    )

    assert config.data_dir == tmp_path / "data"
    assert config.runs.server.port == 8090
    assert config.runs.server.host == "0.0.0.0"
    assert config.runs.domains == (Domain(id="dev"), Domain(id="prod", name="The real one"))
    assert config.runs.seed_projects == ("one", "two")
    assert config.dataproxy.upload.max_size_bytes == 5 * 2**20
    assert config.dataproxy.upload.max_expires_in == timedelta(seconds=90)
    assert config.cache_service.max_reservation_heartbeat == timedelta(minutes=1)
    assert config.executor.cores == 1.5
    assert config.executor.memory_bytes == 2 * 2**30
    assert config.executor.environment == {"HTTP_PROXY": "http://proxy:3128", "lower": "case"}
    assert config.logger.level is LogLevel.DEBUG
    assert config.logger.formatter.type is LogFormat.JSON


def test_flags_win_over_the_environment_and_that_over_files(tmp_path: Path):
    file = write(tmp_path, "runs: {server: {port: 1, host: 127.0.0.2}, seedProjects: [file]}")
    environ = {"FLYTE_BINARY__RUNS__SERVER__PORT": "2", "FLYTE_BINARY__RUNS__SEEDPROJECTS": "environment"}
    flags = {"--port": ("runs.server.port", "3"), "--host": ("runs.server.host", None)}

    loaded = load_config(files=[file], environ=environ, flags=flags)

    assert loaded.config.runs.server.port == 3
    assert loaded.config.runs.seed_projects == ("environment",)
    assert loaded.config.runs.server.host == "127.0.0.2"
    assert loaded.origins == {
        "runs.server.port": "--port",
        "runs.seedProjects": "FLYTE_BINARY__RUNS__SEEDPROJECTS",
        "runs.server.host": f"{file}:1",
    }


def test_later_files_are_merged_into_earlier_ones_and_lists_are_replaced(tmp_path: Path):
    first = write(
        tmp_path, "runs: {server: {port: 1}, seedProjects: [a, b]}\nexecutor: {environment: {A: 1st, B: x}}", "1"
    )
    second = write(tmp_path, "runs: {seedProjects: [c]}\nexecutor: {environment: {A: 2nd}}", "2")

    config = load_config(files=[first, second], environ={}).config

    assert config.runs.server.port == 1
    assert config.runs.seed_projects == ("c",)
    assert config.executor.environment == {"A": "2nd", "B": "x"}


def test_a_pattern_takes_its_files_in_the_order_of_their_names(tmp_path: Path):
    write(tmp_path, "runs: {server: {port: 2}}", "20.yaml")
    write(tmp_path, "runs: {server: {port: 1}}", "10.yaml")
    (tmp_path / "folder.yaml").mkdir()

    assert load_config(files=[f"{tmp_path}/*.yaml"], environ={}).config.runs.server.port == 2


@pytest.mark.parametrize(
    "name",
    [
        "FLYTE_BINARY__RUNS__SERVER__PORT",
        "FLYTE_BINARY__runs__server__port",
        "RUNS.SERVER.PORT",
    ],
)
def test_an_environment_variable_names_a_setting_by_its_path(name: str):
    assert load_config(environ={name: "8123"}).config.runs.server.port == 8123


def test_underscores_and_dashes_in_a_key_do_not_matter(tmp_path: Path):
    environ = {
        "FLYTE_BINARY__DATAPROXY__UPLOAD__MAX_EXPIRES_IN": "5m",
        "CACHE_SERVICE.MAXRESERVATIONHEARTBEAT": "7s",
    }
    config = load_config(files=[write(tmp_path, "executor: {fork-server: false}")], environ=environ).config

    assert config.dataproxy.upload.max_expires_in == timedelta(minutes=5)
    assert config.cache_service.max_reservation_heartbeat == timedelta(seconds=7)
    assert config.executor.fork_server is False


def test_the_prefixed_variable_wins_over_the_dotted_one():
    environ = {"RUNS.SERVER.PORT": "1", "FLYTE_BINARY__RUNS__SERVER__PORT": "2"}
    assert load_config(environ=environ).config.runs.server.port == 2


def test_other_programs_variables_are_left_alone():
    environ = {"npm.config.x": "1", "OTHER.THING": "2", "FLYTE_BINARY_CONFIG": "3", "RUNS": "4", "PATH": "/bin"}
    assert load_config(environ=environ) == Loaded(Config())


@pytest.mark.parametrize("text", ["a,b", " a , b ,", "[a, b]", '["a", "b"]'])
def test_a_list_in_a_variable_or_flag_is_written_with_commas_or_as_yaml(text: str):
    assert load_config(environ={}, assignments=[f"runs.seedProjects={text}"]).config.runs.seed_projects == ("a", "b")


def test_a_text_in_a_flag_stays_a_text_even_if_it_looks_like_a_number():
    config = load_config(environ={}, assignments=["executor.environment.TOKEN=0123", "runs.seedProjects=1"]).config

    assert config.executor.environment == {"TOKEN": "0123"}
    assert config.runs.seed_projects == ("1",)


def test_a_map_in_a_variable_keeps_the_case_of_its_names():
    environ = {"FLYTE_BINARY__EXECUTOR__ENVIRONMENT__My_Name": "x", "EXECUTOR.ENVIRONMENT.OTHER": "y"}
    config = load_config(environ=environ).config
    assert config.executor.environment == {"My_Name": "x", "OTHER": "y"}


def test_a_map_may_be_a_list_of_maps(tmp_path: Path):
    config = from_yaml(tmp_path, "executor:\n  environment:\n    - A: x\n    - {b: y}\n")
    assert config.executor.environment == {"A": "x", "b": "y"}


@pytest.mark.parametrize(("text", "level"), [("warn", LogLevel.WARNING), ("5", LogLevel.DEBUG), ("4", LogLevel.INFO)])
def test_the_reference_backends_log_levels_are_understood(text: str, level: LogLevel, tmp_path: Path):
    assert from_yaml(tmp_path, f"logger: {{level: {text}}}").logger.level is level


def test_a_file_address_of_the_store_becomes_a_plain_path(tmp_path: Path):
    assert store_choice(from_yaml(tmp_path, "runs: {storagePrefix: 'file:///data/flyte/'}")).base_uri == "/data/flyte"


def test_a_relative_or_home_path_becomes_an_absolute_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    assert from_yaml(tmp_path, "dataDir: here").data_dir == tmp_path / "here"
    assert from_yaml(tmp_path, "dataDir: ~/there").data_dir == tmp_path / "home/there"


def test_an_empty_file_and_an_empty_section_mean_the_defaults(tmp_path: Path):
    assert from_yaml(tmp_path, "# nothing\n") == Config()
    assert from_yaml(tmp_path, "runs:\n  server:\nexecutor:\n") == Config()


def test_everything_that_is_wrong_is_said_at_once_with_key_place_found_and_expected(tmp_path: Path):
    file = write(
        tmp_path,
        "runs:\n  server:\n    prot: 8090\n    port: eighty\ndataproxy:\n  upload: {maxExpiresIn: 60, maxSize: 100}\n",
    )
    found = problems(files=[file], environ={"FLYTE_BINARY__EXECUTOR__FORKSERVER": "maybe"}, assignments=["nonsense"])

    assert found == [
        '--set: found "nonsense"; expected path=value, such as runs.server.port=8090',
        f"runs.server.prot ({file}:3): no such key; did you mean runs.server.port?",
        f'runs.server.port ({file}:4): found "eighty"; expected a whole number',
        f"dataproxy.upload.maxSize ({file}:6): found the number 100; expected a size with its unit (B, Ki, Mi, Gi or "
        'kB, MB, GB), such as "100Mi" or "1Gi"; a bare number has no unit, write for instance "100Mi"',
        f"dataproxy.upload.maxExpiresIn ({file}:6): found the number 60; expected a duration with its unit (ms, s, m, "
        'h or d), such as "30s" or "1h30m"; a bare number has no unit, write for instance "60s"',
        'executor.forkServer (FLYTE_BINARY__EXECUTOR__FORKSERVER): found "maybe"; expected true or false',
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("runs.server.port=70000", 'runs.server.port (--set): found "70000"; expected between 0 and 65535'),
        ("runs.server.port=-1", "expected between 0 and 65535"),
        ("executor.cores=0", "expected at least 0.1"),
        ("executor.cores=nan", "expected a finite number"),
        ("executor.stopGrace=-1s", "expected a duration"),
        ("runs.server.shutdownTimeout=0s", "expected more than zero"),
        ("dataproxy.upload.maxSize=0", "expected more than zero"),
        ("runs.seedProjects=Upper", 'runs.seedProjects[0] (--set): found "Upper"; expected 1 to 63 lower-case letters'),
        ("runs.domains=[{name: x}]", "runs.domains[0] (--set): found keys; expected also id"),
        ("runs.domains=[{id: a, colour: red}]", "runs.domains[0].colour (--set): no such key; known here: id, name"),
        ("runs.domains=[{id: a}, {id: a}]", 'the domain "a" is listed twice'),
        ("runs.domains=[]", "expected at least one domain"),
        ("runs.domains=[", "not YAML"),
        ("runs.domains=a", "expected the keys id, name"),
        (
            "runs.server.cors.allowedOrigins=*",
            'expected the origin of a web page, such as "https://console.example.com"',
        ),
        ("runs.server.allowedHosts=https://x", "expected the name of a host without scheme"),
        ("runs.server.host=*", "expected an IP address or the name of a host"),
        ("runs.server.publicUrl=flyte.example.com", "expected a scheme and host"),
        ("runs.server.publicUrl=https://flyte.example.com/?x", "expected a scheme and host"),
        ("console.basePath=/v2/", "expected a path without a slash at its end"),
        ("console.basePath=v2", "expected a path without a slash at its end"),
        ("runs.identityHeaders.trustedPeers=10.0.0.0/33", "expected an IP address, or a network"),
        ("runs.identityHeaders.subjectHeader=a b", "expected the name of an HTTP header"),
        ("runs.storagePrefix=ftp://host/x", "expected an absolute path, or s3://, gs:// or abfs:// and a bucket"),
        ("runs.storagePrefix=relative", "expected an absolute path"),
        ("dataproxy.upload.storagePrefix=../x", "expected a relative path"),
        ("executor.passEnvironment=A=B", "expected the name of an environment variable"),
        ("executor.environment=A", "expected names with their texts"),
        ("logger.level=loud", "expected one of debug, info, warning, error"),
        ("dataDir=", "expected the path of a file or folder"),
        ("runs.server.port.x=1", "no such key; runs.server.port is a value and has no keys in it"),
        ("runs.server=1", "runs.server (--set): is a section; expected keys in it (host, port"),
        ("server.port=1", "server (--set): no such key; did you mean runs.server?"),
        ("forkServer=no", "forkServer (--set): no such key; did you mean executor.forkServer?"),
        ("zzz=1", "no such key; known here: dataDir, runs"),
        ("=1", "expected path=value"),
    ],
)
def test_a_wrong_setting_is_refused_with_what_was_expected(text: str, expected: str):
    (found,) = problems(assignments=[text])
    assert expected in found


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("runs: [1]", "runs ({file}:1): is a section"),
        ("- 1", "{file}: expected sections with keys"),
        ("runs: {", "{file}: not YAML: line 2"),
        ("runs: {server: {port: 1}}\nruns: {}", "{file}: line 2: the key runs is given twice"),
        ("runs: {seedProjects: [a], SeedProjects: [b]}", "given twice, also as seedProjects"),
        ("a: &a [*a]", "{file}: "),
        (
            "runs: {seedProjects: [1]}",
            "runs.seedProjects[0] ({file}:1): found the number 1; expected a text: put it in quotes",
        ),
        ("dataDir:", "dataDir ({file}:1): found nothing"),
        ("executor: {memory: true}", "executor.memory ({file}:1): found true; expected a size"),
        ("runs: {domains: 3}", "expected a list"),
        ("runs: {storagePrefix: 2026-01-01}", "found the date 2026-01-01; expected a text"),
    ],
)
def test_a_wrong_file_is_refused_with_the_line(yaml: str, expected: str, tmp_path: Path):
    file = write(tmp_path, yaml)
    (found,) = problems(files=[file])
    assert expected.format(file=file) in found


def test_a_file_that_is_not_there_or_no_file_is_refused(tmp_path: Path):
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")

    assert problems(files=[f"{tmp_path}/none.yaml"]) == [
        f"--config: cannot read {tmp_path}/none.yaml: No such file or directory"
    ]
    assert "found the folder" in problems(files=[str(tmp_path)])[0]
    assert "no file matches" in problems(files=[f"{tmp_path}/*.json"])[0]
    assert problems(files=[f"{tmp_path}/binary.yaml"]) == [f"{tmp_path}/binary.yaml: expected text in UTF-8"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "flyte.example.com"])
def test_an_address_that_others_reach_is_refused_unless_said_explicitly(host: str):
    (found,) = problems(assignments=[f"runs.server.host={host}"])
    assert found.startswith(f'runs.server.host (--set): "{host}" can be reached by others')
    assert "runs.server.allowUnauthenticated: true" in found

    both = [f"runs.server.host={host}", "runs.server.allowUnauthenticated=true"]
    assert load_config(environ={}, assignments=both).config.runs.server.host == host


def test_allowed_hosts_may_stand_for_all_names_of_a_domain():
    config = load_config(environ={}, assignments=["runs.server.allowedHosts=a.example.com,*.example.com"]).config
    assert config.runs.server.allowed_hosts == ("a.example.com", "*.example.com")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "[::1]", "localhost"])
def test_a_loopback_address_needs_nothing_more(host: str):
    assert load_config(environ={}, assignments=[f"runs.server.host={host}"]).config.runs.server.host == host
