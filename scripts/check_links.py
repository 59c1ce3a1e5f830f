"""Find dead links in a site, a part of ``make docs``: ``python scripts/check_links.py docs/_build/html``.

Every relative link has to lead to a file and, where it has one, to an anchor in it. Pages of source code are
linked to and not read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LINKS = {"a": "href", "img": "src", "link": "href", "script": "src"}
"""Elements that lead somewhere, and by which attribute."""


class Page(HTMLParser):
    """Collect the links and the anchors of a page, and its pictures without alternative text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.mute: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element offers."""
        found = dict(attrs)
        self.anchors |= {found[key] or "" for key in ("id", "name") if key in found}
        target = found.get(LINKS.get(tag, ""))
        if target:
            self.links.append(target)
        if tag == "img" and not found.get("alt"):
            self.mute.append(target or "?")


def complaints(site: Path) -> Iterator[str]:
    """Yield one line for each dead link and each picture without alternative text."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        if path.is_relative_to(site / "_modules"):
            continue
        name = path.relative_to(site)
        for picture in page.mute:
            yield f"{name}: {picture} has no alternative text"
        for link in dict.fromkeys(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{name}: {link} leads nowhere"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{name}: {link} has no such anchor"


def main(arguments: list[str]) -> int:
    """Print what is wrong; 1 if anything is."""
    found = list(complaints(Path(arguments[0]).resolve()))
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
