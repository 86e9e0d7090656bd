"""Writes byteledger/class_defaults.py: python scripts/class_defaults.py, where transformers 5.24.0 is importable.

For each model_type that we read and that has a configuration class there, of its text part where it is of more: the
default of every field that a rule in byteledger/families asks for. Only a whole number or a flag is kept; a field that
the class works out from others has none.
"""

import dataclasses
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from byteledger.families import FAMILIES  # noqa: E402
from byteledger.hf_config import ALIASES, TEXT_FAMILY  # noqa: E402

HEAD = '''"""What the configuration classes of transformers {version} take where a file leaves a field out.

A nested configuration is written as its difference from the class, and older files lack newer fields. Written by
scripts/class_defaults.py; nothing here is typed by hand.
"""

CLASS_DEFAULTS = {{
'''


def asked():
    """Every field that a rule names, and the canonical names."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "byteledger" / "families").glob("*.py")))
    return sorted(set(re.findall(r'"([a-z_][a-z_0-9]*)"', text)) | set(ALIASES) | {"tie_word_embeddings", "head_dim"})


def defaults(kind, keys):
    """{field: default} of a configuration class."""
    fields = {field.name: field.default for field in dataclasses.fields(kind)}
    found = {}
    for key in keys:
        value = fields.get(key, fields.get(kind.attribute_map.get(key)))
        if isinstance(value, int):
            found[key] = value
    return found


def main():
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    lines = [HEAD.format(version=transformers.__version__)]
    for name in sorted({*FAMILIES, *TEXT_FAMILY}):
        kind = CONFIG_MAPPING[name] if name in CONFIG_MAPPING else None
        kind = getattr(kind, "sub_configs", {}).get("text_config", kind)
        if kind is not None and kind is not transformers.AutoConfig:
            pairs = ", ".join('"%s": %r' % pair for pair in defaults(kind, asked()).items())
            lines.append('    "%s": {%s},  # fmt: skip\n' % (name, pairs))
    (ROOT / "byteledger" / "class_defaults.py").write_text("".join(lines) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
