"""What somebody may have meant by a name that is not there."""

import difflib


def nearest(word, known, most=4):
    """The few of known that are spelt most like a word, the nearest first; none where nothing is like it."""
    spelt = {str(one).lower(): str(one) for one in known}
    return [spelt[one] for one in difflib.get_close_matches(str(word).lower(), sorted(spelt), n=most, cutoff=0.6)]


def suggestion(word, known):
    """What the writer may have meant."""
    known = sorted(map(str, known))
    near = difflib.get_close_matches(str(word), known, n=1, cutoff=0.6)
    if near:
        return "did you mean %r?" % near[0]
    return "known: %s" % (", ".join(known[:12]) + (", …" if len(known) > 12 else "") if known else "none")
