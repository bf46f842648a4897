"""Parts of Office files that Word and PowerPoint share (ECMA-376, Office Open XML)."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from posixpath import normpath
from xml.etree.ElementTree import Element

from winnow.documents.formats.archive import DocumentArchive

_RELATIONSHIP = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
"""Attribute with the id of a relationship."""
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
ALTERNATIVES = f"{_COMPATIBILITY}AlternateContent"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
_STRICT = "http://purl.oclc.org/ooxml/"
_CORE = "docProps/core.xml"


def part(archive: DocumentArchive, name: str) -> Element:
    """Returns the root of a part, with the namespaces of the transitional form."""
    root = archive.xml(name)
    if _STRICT in root.tag:
        for element in root.iter():
            element.tag = _transitional(element.tag)
            for key in [key for key in element.attrib if _STRICT in key]:
                element.attrib[_transitional(key)] = element.attrib.pop(key)
    return root


def related(archive: DocumentArchive, name: str) -> Mapping[str, tuple[str, str]]:
    """Returns the relationships of a part: by id, the kind and the name of the other part."""
    path = PurePosixPath(name)
    relations = f"{path.parent}/_rels/{path.name}.rels"
    if relations not in archive:
        return {}
    return {
        each.get("Id", ""): (
            each.get("Type", "").rpartition("/")[2],
            normpath(path.parent / each.get("Target", "")).lstrip("/"),
        )
        for each in archive.xml(relations).iter(_RELATIONSHIP)
        if each.get("TargetMode") != "External"
    }


def title(archive: DocumentArchive) -> str:
    """Returns the title in the properties of a file; empty if it has none."""
    if _CORE not in archive:
        return ""
    return archive.xml(_CORE).findtext(_TITLE) or ""


def children(element: Element) -> Iterator[Element]:
    """Yields the children, with one of several alternatives in place of all."""
    for child in element:
        if child.tag == ALTERNATIVES:
            # the last one is what the oldest programs can show
            if len(child):
                yield from children(child[-1])
        else:
            yield child


def _transitional(name: str) -> str:
    """Returns the name in the namespace that all programs but strict ones write."""
    space, _, local = name.lstrip("{").partition("}")
    kind = space.removeprefix(_STRICT)
    if kind == space:
        return name
    domain = {
        "officeDocument/relationships": "officeDocument/2006/relationships",
    }.get(kind) or f"{kind.split('/')[0]}/2006/{'/'.join(kind.split('/')[1:])}"
    return f"{{http://schemas.openxmlformats.org/{domain}}}{local}"
