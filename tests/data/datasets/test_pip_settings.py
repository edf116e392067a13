"""The settings that this Python's pip prints, from variables and from a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from feelstream.data.datasets import commands, pip_settings
from feelstream.data.datasets.mirrors import MirrorError
from feelstream.data.datasets.pip_settings import Location, PipSettings, configured


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)  # which also keeps pip from reading the other files


def test_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pip.py").write_text("raise SystemExit('a file of the current folder was run')")
    monkeypatch.setenv("PIP_INDEX_URL", "https://me:p%40ss@index.test:8443/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "file:///some/simple https://user@other.test/simple/")
    monkeypatch.setenv("PIP_FIND_LINKS", "shelf http://pages.test/links.html")
    monkeypatch.setenv("PIP_CERT", "/some/certificates.pem")
    monkeypatch.setenv("PIP_CLIENT_CERT", "/some/client.pem")
    monkeypatch.setenv("PIP_PROXY", "http://proxy.test:3128")
    monkeypatch.setenv("PIP_TRUSTED_HOST", "other.test pages.test:81")
    settings = configured()
    assert settings == PipSettings(
        (
            Location("https://index.test:8443/simple", ("me", "p@ss")),
            Location("file:///some/simple"),
            Location("https://other.test/simple/", ("user", "")),
        ),
        (Location((tmp_path / "shelf").as_uri()), Location("http://pages.test/links.html")),
        "/some/certificates.pem",
        "/some/client.pem",
        "http://proxy.test:3128",
        ("other.test", "pages.test:81"),
    )
    index = settings.indexes[0]
    assert settings.connection("https://index.test:8443/files/x", index) == {
        "auth": ("me", "p@ss"),
        "verify": "/some/certificates.pem",
        "cert": "/some/client.pem",
        "proxies": dict.fromkeys(("http", "https"), "http://proxy.test:3128"),
    }
    for elsewhere in ("https://index.test/x", "http://index.test:8443/x", "https://index.test.evil.test:8443/x"):
        assert settings.connection(elsewhere, index)["auth"] is None
    for address, verify in (("https://other.test:7/x", False), ("https://pages.test:81/x", False)):
        assert settings.connection(address, index)["verify"] is verify
    assert settings.connection("https://pages.test/x", index)["verify"] == "/some/certificates.pem"


def test_a_file_and_what_overrides_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = https://global.test/simple\nextra-index-url =\n    https://a.test/simple\n"
        "    https://b.test/simple\n[download]\nindex-url = https://download.test/it's=so/simple\n"
        "[install]\nindex-url = https://install.test/simple\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    urls = [index.url for index in configured().indexes]
    assert urls == ["https://download.test/it's=so/simple", "https://a.test/simple", "https://b.test/simple"]
    monkeypatch.setenv("PIP_INDEX_URL", "https://variable.test/simple")
    assert configured().indexes[0].url == "https://variable.test/simple"


def test_the_default_index_is_what_pip_says(monkeypatch: pytest.MonkeyPatch) -> None:
    [index] = configured().indexes
    assert index.url.startswith("https://")
    assert index.url.endswith("/simple")
    monkeypatch.setenv("PIP_NO_INDEX", "true")
    assert configured() == PipSettings(())


@pytest.mark.parametrize(
    ("printed", "sentence"),
    [
        ("global.cert=<?>", "prints what cannot be read"),
        ("global.index-url='http://[nowhere'", "an address that cannot be read"),
        ("", "pip does not state its default index; set PIP_INDEX_URL"),
    ],
)
def test_a_pip_that_prints_something_else(monkeypatch: pytest.MonkeyPatch, printed: str, sentence: str) -> None:
    monkeypatch.setattr(commands, "run", lambda *rest, **options: printed)
    with pytest.raises(MirrorError, match=sentence):
        configured()


def test_without_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pip.py").write_text("raise SystemExit('No module named pip')")  # hides the real one
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(MirrorError, match=r"pip config failed \(No module named pip\)"):
        configured()
    monkeypatch.setattr(pip_settings, "ANSWER_S", 0.0)
    with pytest.raises(MirrorError, match=r"pip config failed \(TimeoutExpired\)"):
        configured()
