"""What somebody may have meant by a name that is not there."""

import difflib


def suggestion(word, known):
    """What the writer may have meant."""
    known = sorted(map(str, known))
    near = difflib.get_close_matches(str(word), known, n=1, cutoff=0.6)
    if near:
        return "did you mean %r?" % near[0]
    return "known: %s" % (", ".join(known[:12]) + (", …" if len(known) > 12 else "") if known else "none")
