import hashlib
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "third_party"


def test_every_third_party_file_is_what_it_says():
    """Each file stands in the table with version, licence, origin and checksum, and has its licence beside it."""
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \| `([0-9a-f]{64})` \|$", (FOLDER / "README.md").read_text(), re.M)
    listed = {row[0]: row for row in rows}
    licences = {re.search(r"`([^`]+)`", row[2])[1] for row in rows}
    found = {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*") if path.is_file() and path.name != "README.md"}
    assert found == set(listed) | licences
    for name, version, _, origin, checksum in rows:
        assert re.match(r"\d+\.\d+", version) and origin.strip()
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == checksum, name


def test_katex_comes_whole_from_its_package():
    """What the build takes from djangocms-katex: renderer, style sheet, fonts, licence."""
    from macros import katex

    folder = katex.assets()
    assert 'version:"0.16' in (folder / "katex.min.js").read_text()
    assert "Khan Academy" in (folder / "LICENSE").read_text()
    assert len(list((folder / "fonts").glob("*.woff2"))) == 20


def test_the_lock_names_no_index():
    """Versions and hashes only: where they come from is the machine's affair."""
    for name in ("requirements.lock", "requirements-build.lock"):
        text = (FOLDER.parent / name).read_text()
        assert "://" not in text and "--index" not in text and "--find-links" not in text
        stanzas = re.split(r"\n(?=[a-z])", text.strip())
        assert stanzas and all("==" in stanza and "--hash=sha256:" in stanza for stanza in stanzas)
