"""Text flows: a fenced block that reads in a terminal and is drawn on the page.

    ``` {.flow #flow.activations.plain}
    Plain path
    input / embedding
    -> attention intermediates
    -> MLP intermediates
    ```

The first line is the title; each further line is a step, with an arrow before all but the first.
"""

from .text import escape


def render(source, language, css_class, options, md, classes=None, id_value="", attrs=None, **_):
    """pymdownx.superfences' custom fence: the flow as a figure with an ordered list."""
    lines = [line.strip() for line in source.strip().splitlines() if line.strip()]
    title, steps = lines[0], [line.removeprefix("->").strip() for line in lines[1:]]
    items = "".join("<li>%s</li>" % escape(step) for step in steps)
    anchor = ' id="%s"' % escape(id_value) if id_value else ""
    return '<figure class="flow"%s><figcaption>%s</figcaption><ol>%s</ol></figure>' % (anchor, escape(title), items)
