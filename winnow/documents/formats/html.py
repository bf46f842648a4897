"""Converts HTML. Markdown, Word files and EPUB chapters are converted by way of HTML, too."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from winnow.documents.document import BlockKind, Document, DocumentBuilder
from winnow.documents.formats.decoding import decode
from winnow.documents.formats.html_tables import is_data_table, table_rows

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

TEXT = "-text"
"""Tag of a node of text."""
_HEADING = re.compile(r"h[1-6]")
_HIDDEN = frozenset(
    [
        "-comment",
        "script",
        "style",
        "template",
        "noscript",
        "head",
        "title",
        "iframe",
        "object",
        "svg",
        "canvas",
        "audio",
        "video",
        "map",
        "button",
        "select",
        "option",
        "datalist",
        "input",
        "textarea",
        "dialog",
        "rt",
        "rp",
        "nav",
        "footer",
    ]
)
"""Elements whose content is no text of the document."""
_NO_CONTENT_ROLES = frozenset(
    ["navigation", "banner", "contentinfo", "search", "doc-toc", "doc-pagebreak", "dialog"]
)
_NO_CONTENT_CLASSES = frozenset(
    [
        "headerlink",
        "sphinxsidebar",
        "sphinxsidebarwrapper",
        "related",
        "navheader",
        "navfooter",
        "toc",
        "toctree-wrapper",
        "contents",
        "breadcrumb",
        "breadcrumbs",
        "skip-link",
        "sr-only",
        "visually-hidden",
        "mw-editsection",
        "noprint",
    ]
)
"""Classes that generators such as Sphinx, DocBook and MediaWiki give to links around the text."""
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "center",
        "dd",
        "details",
        "dir",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hgroup",
        "hr",
        "html",
        "legend",
        "li",
        "main",
        "menu",
        "ol",
        "optgroup",
        "p",
        "pre",
        "search",
        "section",
        "summary",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "tr",
        "ul",
        "caption",
    ]
)
_INNER_BLOCKS = frozenset(["p", "div", "dl", "section"])
_EMPTY_ELEMENT = re.compile(r"<([A-Za-z][\w:-]*)((?:\s[^<>]*)?)/>")
_VOID = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "source",
        "track",
        "wbr",
    ]
)
"""Elements that have no end tag in HTML."""
_MIN_MAIN_SHARE = 0.2
"""Share of the text from which an element marked as the main one is taken to be the document."""
_MAX_MENU_DEPTH = 10
"""Number of lists in each other up to which a list may be a menu."""
_PERMALINKS = frozenset(["", "¶", "#", "§", "🔗"])


def convert(data: bytes) -> Document:
    """Converts a page."""
    text = decode(data, declares=True)
    return convert_text(from_xhtml(text) if text.lstrip().startswith("<?xml") else text)


def convert_text(text: str, *, title: str = "") -> Document:
    """Converts the text of a page. The title is `title`, else that of the page."""
    builder = DocumentBuilder()
    found = add_blocks(builder, text)
    return builder.build(title or found)


def from_xhtml(text: str) -> str:
    """Returns a page of XHTML as HTML, in which `<title/>` does not end the element."""
    return _EMPTY_ELEMENT.sub(_with_end_tag, text)


def _with_end_tag(match: re.Match[str]) -> str:
    name = match[1]
    return match[0] if name.lower() in _VOID else f"<{name}{match[2]}></{name}>"


def add_blocks(builder: DocumentBuilder, text: str, *, page: int | None = None) -> str:
    """Adds the blocks of a page to a document, and returns the page's title."""
    from selectolax.lexbor import LexborHTMLParser  # noqa: PLC0415 - of the extra `documents`

    tree = LexborHTMLParser(text)
    walk = _Walk(builder, page)
    root = _root(tree)
    if root is not None:
        walk.run(root)
    titles = tree.css("head > title")
    return (titles[0].text() if titles else "").strip() or walk.first_heading


def _root(tree: "LexborHTMLParser") -> "LexborNode | None":
    """Returns the element with the text of the document."""
    body = tree.body
    if body is None:
        return tree.root
    for selector in ("main, [role=main]", "div.body, div.document", "article"):
        found = tree.css(selector)
        if found and len(found[0].text()) > _MIN_MAIN_SHARE * len(body.text()):
            # several articles are the parts of a page
            return found[0] if selector != "article" or len(found) == 1 else body
    return body


def walk_nodes(root: "LexborNode") -> Iterator[tuple["LexborNode", bool]]:
    """Yields each node on entering it (True) and leaving it (False), without hidden elements.

    Does not recurse, since pages may be nested to any depth.
    """
    # nodes compare by their source, which takes long
    node, entering, last = root, True, root.mem_id
    while True:
        if entering:
            hidden = node.mem_id != last and _is_hidden(node)
            if not hidden:
                yield node, True
                if node.child is not None:
                    node = node.child
                    continue
                yield node, False
        else:
            yield node, False
        if node.mem_id == last:
            return
        following = node.next
        entering = following is not None
        node = following or node.parent or root


def inner_text(root: "LexborNode") -> str:
    """Returns the visible text of an element, with a space where a block begins or ends."""
    parts: list[str] = []
    for node, entering in walk_nodes(root):
        if node.tag == TEXT and entering:
            parts.append(node.text_content or "")
        elif node.tag in _BLOCKS or node.tag == "br":
            parts.append(" ")
    return " ".join("".join(parts).split())


def _is_hidden(node: "LexborNode") -> bool:
    tag = node.tag or ""
    if tag.startswith("-"):
        return tag != TEXT
    attributes = node.attributes
    return tag in _HIDDEN or (
        bool(attributes)
        and (
            "hidden" in attributes
            or attributes.get("aria-hidden") == "true"
            or attributes.get("role") in _NO_CONTENT_ROLES
            or "display:none" in (attributes.get("style") or "").replace(" ", "")
            or not _NO_CONTENT_CLASSES.isdisjoint((attributes.get("class") or "").split())
        )
    )


def _is_menu(node: "LexborNode") -> bool:
    """Returns whether a list has only links, as menus have."""
    items = node.css("li")
    return bool(items) and all(_is_link(item) for item in items)


def _is_link(item: "LexborNode") -> bool:
    linked = "".join(link.text() for link in item.css("a"))
    return len(linked.split()) >= len(item.text().split())


def _is_reference(node: "LexborNode") -> bool:
    """Returns whether an element is only a link beside the text: to a footnote or to itself."""
    if node.tag == "sup":
        links = node.css("a")
        return len(links) == 1 and links[0].text().strip() == node.text().strip()
    if node.tag != "a":
        return False
    attributes = node.attributes
    return (
        attributes.get("role") == "doc-noteref"
        or attributes.get("epub:type") == "noteref"
        or "footnote-reference" in (attributes.get("class") or "").split()
        or (node.text().strip() in _PERMALINKS and node.css_first("img") is None)
    )


class _Walk:
    """Turns the elements of a page into blocks."""

    def __init__(self, builder: DocumentBuilder, page: int | None) -> None:
        self._builder = builder
        self._page = page
        self._inline: list[str] = []
        self._lists: list[int | None] = []  # number of the last item of each open list
        self._leads = False  # whether the collected text is a term, title or number of what follows
        self._heading = 0
        self._code = 0
        self._skipped: LexborNode | None = None  # the element whose inner walk_nodes are ignored
        self.first_heading = ""

    def run(self, root: "LexborNode") -> None:
        for node, entering in walk_nodes(root):
            if self._skipped is not None:
                if not entering and node.mem_id == self._skipped.mem_id:
                    self._skipped = None
            elif entering:
                self._enter(node)
            else:
                self._leave(node)
        self._flush()

    def _enter(self, node: "LexborNode") -> None:
        tag = node.tag or ""
        if tag == TEXT:
            self._leads = self._leads and not (node.text_content or "").strip()
            self._inline.append(node.text_content or "")
        elif tag == "br":
            self._inline.append("\n")
        elif tag == "table":
            self._table(node)
        elif tag == "dd":
            self._attach(":")
        elif tag == "dt":
            self._start_definition_term(node)
        elif (tag in ("a", "sup") and _is_reference(node)) or (
            tag in ("ul", "ol")
            and not self.first_heading
            and len(self._lists) < _MAX_MENU_DEPTH  # each look at a list takes in all inner ones
            and _is_menu(node)
        ):
            self._skipped = node
        elif tag in _BLOCKS:
            self._block(node, tag)

    def _leave(self, node: "LexborNode") -> None:
        tag = node.tag or ""
        if tag == TEXT:
            return
        kinds = (node.attributes.get("class") or "").split()
        if "admonition-title" in kinds:
            self._attach(":")
        elif tag == "span" and "label" in kinds:
            # the number of a footnote
            self._leads = True
        elif tag in _BLOCKS and tag != "dt":
            self._flush()
        if tag in ("ul", "ol", "dl", "dir", "menu") and self._lists:
            self._lists.pop()
        elif _HEADING.fullmatch(tag):
            self._heading = 0
        elif tag == "pre":
            self._code = 0

    def _block(self, node: "LexborNode", tag: str) -> None:
        # what follows a term or a number belongs to it
        if not (tag in _INNER_BLOCKS and self._leads):
            self._flush()
        if tag in ("ul", "dl", "dir", "menu"):
            self._lists.append(None)
        elif tag == "ol":
            self._lists.append(_start(node) - 1 if _is_numbered(node) else None)
        elif tag == "li" and self._lists and self._lists[-1] is not None:
            self._lists[-1] += 1
            self._inline.append(f"{self._lists[-1]}. ")
            self._leads = True
        elif _HEADING.fullmatch(tag):
            self._heading = int(tag[1])
        elif tag == "pre":
            self._code = 1

    def _start_definition_term(self, node: "LexborNode") -> None:
        previous = node.prev
        while previous is not None and previous.tag == TEXT:
            previous = previous.prev
        if previous is not None and previous.tag == "dt":
            self._attach(",")
        elif not self._leads:
            self._flush()

    def _attach(self, mark: str) -> None:
        """Appends a mark, such as `:`, to the text collected so far.

        Does nothing if the text is empty. Does not repeat a mark that ends the text.
        """
        text = "".join(self._inline).strip()
        if text:
            self._inline = [text.removesuffix(mark), f"{mark} "]
            self._leads = True

    def _table(self, node: "LexborNode") -> None:
        if not is_data_table(node):
            self._flush()
            return
        self._flush()
        for kind, text in table_rows(node, inner_text):
            self._builder.add(kind, text, page=self._page)
        self._skipped = node

    def _flush(self) -> None:
        text = "".join(self._inline)
        self._inline.clear()
        self._leads = False
        if not text.strip():
            return
        if self._heading:
            self.first_heading = self.first_heading or " ".join(text.split())
            self._add(BlockKind.HEADING, text, self._heading)
        elif self._code:
            self._add(BlockKind.CODE, text)
        elif self._lists:
            self._add(BlockKind.LIST_ITEM, text, len(self._lists))
        else:
            self._add(BlockKind.PARAGRAPH, text)

    def _add(self, kind: BlockKind, text: str, level: int = 0) -> None:
        self._builder.add(kind, text, level=level, page=self._page)


def _is_numbered(node: "LexborNode") -> bool:
    """Returns whether the items of a list have numbers, not letters."""
    return node.attributes.get("type") in (None, "1")


def _start(node: "LexborNode") -> int:
    start = node.attributes.get("start") or "1"
    return int(start) if re.fullmatch(r"\d{1,6}", start) else 1
