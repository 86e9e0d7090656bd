"""Links never break: every id that was once published stands in both languages."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import anchors  # noqa: E402

from byteledger import catalog  # noqa: E402
from checkout import linked, replace_in  # noqa: E402

CURE = (
    "These ids were published and people cite them, but the site no longer has them in both languages:\n  %s\n"
    "Keep each alive: write <%%= anchor(\"the.old.id\") %%> on the same page, at the place where its content went, in both "
    "languages. If the whole page went, keep the page, with a link to where its content went. Do not edit tests/anchors.txt."
)


def gone(site):
    return sorted(set(anchors.listed()) - anchors.published(site))


def test_no_published_id_is_gone(site):
    missing = gone(site)
    assert not missing, CURE % "\n  ".join(missing)


def test_every_id_is_published(site):
    """A new id is a promise: `make anchors` adds it to the list."""
    new = sorted(anchors.published(site) - set(anchors.listed()))
    assert not new, "run `make anchors` to publish the new ids:\n  " + "\n  ".join(new)


def test_the_list_has_every_kind():
    """Headings, claims, tables, formulas, terms, sources and records have permanent ids."""
    listed = {anchor.split("#")[1] for anchor in anchors.listed()}
    data = catalog.load()
    assert set(data.claims) <= listed
    assert {"table." + id for id in data.tables} <= listed
    assert {"eq." + id for id in data.formulas} <= listed
    assert {"term." + id for id, term in data.terms.items() if term.kind == "glossary"} <= listed
    assert {"ref." + id for id in data.references} <= listed
    assert {"record.ledgers." + id for id in data.ledgers} <= listed


def test_a_renamed_id_is_missed_and_a_kept_one_is_not(site, tmp_path):
    """The check can fail, and the cure that it names works."""
    linked(site, tmp_path / "site")
    for root in (tmp_path / "site", tmp_path / "site" / "en"):
        replace_in(root / "ledger.html", 'id="ledger.baseline"', 'id="ledger.basis"')
    assert gone(tmp_path / "site") == ["ledger.html#ledger.baseline"]
    for root in (tmp_path / "site", tmp_path / "site" / "en"):
        replace_in(root / "ledger.html", "</article>", '<span id="ledger.baseline" class="kept-anchor"></span></article>')
    assert gone(tmp_path / "site") == []
