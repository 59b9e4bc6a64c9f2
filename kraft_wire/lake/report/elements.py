"""Build HTML and SVG as trees, so that data is never taken for markup."""

from __future__ import annotations

from typing import Final
from xml.etree.ElementTree import Element, tostring

Child = Element | str | None
MAX_TEXT: Final = 300
"""The most characters of a text. Names come from the data and can have any length."""

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


def element(tag: str, *children: Child, **attributes: object) -> Element:
    """Return an element. ``class_`` is the attribute class, ``text_anchor`` text-anchor; None is left out."""
    made = Element(tag)
    for name, value in attributes.items():
        if value is not None:
            made.set(name.rstrip("_").replace("_", "-"), visible(str(value)))
    for child in children:
        _append(made, child)
    return made


def _append(parent: Element, child: Child) -> None:
    if isinstance(child, Element):
        parent.append(child)
    elif child:
        text = visible(child)
        if len(parent):
            parent[-1].tail = (parent[-1].tail or "") + text
        else:
            parent.text = (parent.text or "") + text


def visible(text: str) -> str:
    """Replace invisible characters, which could reorder the text around them, and shorten the text."""
    shown = text if text.isprintable() else "".join(c if c.isprintable() else _REPLACEMENT for c in text)
    return shorter(shown, MAX_TEXT)


def shorter(text: str, limit: int) -> str:
    """Return the text, cut to ``limit`` characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def document(title: str, style: str, *body: Child) -> str:
    """Return a page that loads nothing and runs nothing."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    sheet = Element("style")
    sheet.text = style
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width"),
        element("title", title),
        sheet,
    )
    page = element("html", head, element("body", *body), lang="en")
    return "<!doctype html>\n" + tostring(page, encoding="unicode", method="html") + "\n"
