"""Small PDF, Word, PowerPoint and EPUB files, written by hand."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_A = "http://schemas.openxmlformats.org/drawingml/2006/main"
_P = "http://schemas.openxmlformats.org/presentationml/2006/main"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


@dataclass(frozen=True)
class Typed:
    """Text at a place of a PDF page; y counts from the top."""

    text: str
    x: float
    y: float
    size: float = 10
    font: str = "F1"  # F1: Helvetica, F2: bold, F3: Courier


def pdf(
    pages: Sequence[Sequence[Typed]],
    title: str = "",
    outline: Sequence[tuple[str, int]] = (),
) -> bytes:
    """Returns a PDF file; `outline`: titles with the index of their page."""
    fonts = " ".join(f"/F{i} {i + 2} 0 R" for i in (1, 2, 3))
    objects = {3: "Helvetica", 4: "Helvetica-Bold", 5: "Courier"}
    bodies: dict[int, bytes] = {
        number: f"<</Type/Font/Subtype/Type1/BaseFont/{name}/Encoding/WinAnsiEncoding>>".encode()
        for number, name in objects.items()
    }
    kids = []
    for index, page in enumerate(pages):
        number = 10 + 2 * index
        kids.append(f"{number} 0 R")
        content = "\n".join(
            f"BT /{t.font} {t.size} Tf 1 0 0 1 {t.x} {800 - t.y} Tm ({_literal(t.text)}) Tj ET"
            for t in page
        ).encode("cp1252")
        bodies[number] = (
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents {number + 1} 0 R"
            f"/Resources<</Font<<{fonts}>>>>>>"
        ).encode()
        bodies[number + 1] = b"<</Length %d>>stream\n%s\nendstream" % (len(content), content)
    bodies[2] = f"<</Type/Pages/Count {len(kids)}/Kids[{' '.join(kids)}]>>".encode()
    first = 10 + 2 * len(pages)
    for place, (text, page_index) in enumerate(outline, first):
        following = f"/Next {place + 1} 0 R" if place < first + len(outline) - 1 else ""
        bodies[place] = (
            f"<</Title({_literal(text)})/Parent 6 0 R{following}"
            f"/Dest[{kids[page_index].split()[0]} 0 R/Fit]>>"
        ).encode("cp1252")
    outlines = ""
    if outline:
        outlines = "/Outlines 6 0 R"
        last = first + len(outline) - 1
        bodies[6] = f"<</First {first} 0 R/Last {last} 0 R/Count {len(outline)}>>".encode()
    bodies[1] = f"<</Type/Catalog/Pages 2 0 R{outlines}>>".encode()
    bodies[7] = f"<</Title({_literal(title)})>>".encode("cp1252")
    return _pdf_file(bodies)


def _pdf_file(bodies: Mapping[int, bytes]) -> bytes:
    data = b"%PDF-1.4\n"
    offsets = {}
    for number in sorted(bodies):
        offsets[number] = len(data)
        data += b"%d 0 obj\n%s\nendobj\n" % (number, bodies[number])
    size = max(bodies) + 1
    table = "".join(
        f"{offsets[n]:010} 00000 n \n" if n in offsets else "0000000000 65535 f \n"
        for n in range(size)
    )
    return (
        data
        + f"xref\n0 {size}\n{table}trailer<</Size {size}/Root 1 0 R/Info 7 0 R>>\n".encode()
        + b"startxref\n%d\n%%%%EOF\n" % len(data)
    )


def _literal(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def paragraph(text: str, style: str = "", properties: str = "") -> str:
    """Returns a paragraph of a Word file."""
    named = f'<w:pStyle w:val="{style}"/>' if style else ""
    run = f'<w:r><w:t xml:space="preserve">{escape(text)}</w:t></w:r>'
    return f"<w:p><w:pPr>{named}{properties}</w:pPr>{run}</w:p>"


STYLES = """
<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name w:val="Normal"/></w:style>
<w:style w:type="paragraph" w:styleId="Titel"><w:name w:val="Title"/></w:style>
<w:style w:type="paragraph" w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="Mine"><w:name w:val="Mine"/>
  <w:basedOn w:val="berschrift1"/><w:pPr><w:outlineLvl w:val="1"/></w:pPr></w:style>
<w:style w:type="paragraph" w:styleId="Aufz"><w:name w:val="List Bullet 2"/></w:style>
<w:style w:type="paragraph" w:styleId="Verz1"><w:name w:val="toc 1"/></w:style>
"""
NUMBERING = """
<w:abstractNum w:abstractNumId="0">
  <w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="%1."/></w:lvl>
  <w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="lowerLetter"/>
    <w:lvlText w:val="%1.%2)"/></w:lvl>
</w:abstractNum>
<w:abstractNum w:abstractNumId="1">
  <w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="-"/></w:lvl>
</w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>
<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="0"/>
  <w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride></w:num>
"""


def docx(body: str, title: str = "", footnotes: str = "") -> bytes:
    """Returns a Word file with the content of `w:body`."""
    members = {
        "word/document.xml": f'<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>',
        "word/styles.xml": f'<w:styles xmlns:w="{W}">{STYLES}</w:styles>',
        "word/numbering.xml": f'<w:numbering xmlns:w="{W}">{NUMBERING}</w:numbering>',
        "docProps/core.xml": _core(title),
    }
    if footnotes:
        members["word/footnotes.xml"] = f'<w:footnotes xmlns:w="{W}">{footnotes}</w:footnotes>'
    return zipped(members)


def _core(title: str) -> str:
    return (
        '<c:coreProperties xmlns:c="urn:core" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{escape(title)}</dc:title></c:coreProperties>"
    )


def shape(*paragraphs: str, kind: str | None = "", properties: str = "") -> str:
    """Returns a shape of a slide; `kind`: that of a placeholder, None for a text box."""
    placeholder = "" if kind is None else f'<p:ph type="{kind}"/>' if kind else '<p:ph idx="1"/>'
    texts = "".join(
        f"<a:p><a:pPr{properties}/><a:r><a:t>{escape(each)}</a:t></a:r></a:p>"
        for each in paragraphs
    )
    return (
        f"<p:sp><p:nvSpPr><p:cNvPr/><p:cNvSpPr/><p:nvPr>{placeholder}</p:nvPr></p:nvSpPr>"
        f"<p:txBody>{texts}</p:txBody></p:sp>"
    )


def pptx(slides: Sequence[str], notes: Mapping[int, str] | None = None) -> bytes:
    """Returns a PowerPoint file with the shapes of each slide; `notes`: shapes by slide index."""
    spaces = f'xmlns:p="{_P}" xmlns:a="{_A}" xmlns:r="{_R}"'
    ids = "".join(f'<p:sldId id="{300 + i}" r:id="rId{i}"/>' for i in range(len(slides)))
    members = {
        "ppt/presentation.xml": (
            f"<p:presentation {spaces}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>"
        ),
        "ppt/_rels/presentation.xml.rels": _relations(
            {f"rId{i}": ("slide", f"slides/slide{i}.xml") for i in range(len(slides))}
        ),
    }
    for index, shapes in enumerate(slides):
        members[f"ppt/slides/slide{index}.xml"] = _slide("sld", spaces, shapes)
    for index, shapes in (notes or {}).items():
        members[f"ppt/slides/_rels/slide{index}.xml.rels"] = _relations(
            {"rId1": ("notesSlide", "../notesSlides/notes.xml")}
        )
        members["ppt/notesSlides/notes.xml"] = _slide("notes", spaces, shapes)
    return zipped(members)


def _slide(kind: str, spaces: str, shapes: str) -> str:
    return f"<p:{kind} {spaces}><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:{kind}>"


def _relations(targets: Mapping[str, tuple[str, str]]) -> str:
    inner = "".join(
        f'<Relationship Id="{name}" Type="{_R}/{kind}" Target="{target}"/>'
        for name, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{_PACKAGE}">{inner}</Relationships>'


def epub(chapters: Mapping[str, str], *, title: str = "", spine: Sequence[str] = ()) -> bytes:
    """Returns a book; `spine`: the names of the chapters in reading order."""
    items = "".join(
        f'<item id="c{n}" href="{name}" media-type="application/xhtml+xml"/>'
        for n, name in enumerate(spine or chapters)
    )
    references = "".join(f'<itemref idref="c{n}"/>' for n in range(len(spine or chapters)))
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><metadata '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></metadata>'
        f"<manifest>{items}</manifest><spine>{references}</spine></package>"
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OPS/book.opf"/></rootfiles></container>'
    )
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            "OPS/book.opf": package,
            **{f"OPS/{name}": page for name, page in chapters.items()},
        }
    )
