"""Compares libraries that read documents: `python bench/document_formats.py FOLDER`.

The folder has a folder of files for each format (`pdf`, `docx`, …). Libraries that are not installed
are left out. Consensus: how often a word, or a pair of words in this order, occurs by the median of
the libraries. `words` and `order` are the shares of it that a library returns.
"""
# mypy: ignore-errors
# ruff: noqa

import html
import importlib.util
import re
import sys
import time
import zipfile
from collections import Counter
from pathlib import Path
from statistics import median
from xml.etree import ElementTree

from winnow.documents.document import BlockKind
from winnow.documents.formats import registry


def winnow(path):
    document = registry.convert(path.name, path.read_bytes())
    return document.text, sum(each.kind is BlockKind.HEADING for each in document.blocks)


def stripped(page):
    page = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL | re.IGNORECASE)
    headings = len(re.findall(r"<h[1-6][\s>]", page))
    return html.unescape(re.sub(r"<[^>]*>", " ", page)), headings


def pypdfium2(path):
    import pypdfium2

    pdf = pypdfium2.PdfDocument(path.read_bytes())
    return "\n".join(page.get_textpage().get_text_range() for page in pdf), 0


def pypdf(path):
    import pypdf

    return "\n".join(page.extract_text() for page in pypdf.PdfReader(path).pages), 0


def pdfminer(path):
    from pdfminer.high_level import extract_text

    return extract_text(path), 0


def python_docx(path):
    import docx

    parts, headings = [], 0
    pending = [docx.Document(path)]
    while pending:
        for item in pending.pop().iter_inner_content():
            if hasattr(item, "rows"):
                pending += [cell for row in item.rows for cell in row.cells]
            else:
                parts.append(item.text)
                headings += (item.style.name or "").startswith("Heading")
    return "\n".join(parts), headings


def mammoth(path):
    import mammoth

    no_image = mammoth.images.img_element(lambda _: {"src": ""})
    with path.open("rb") as file:
        return stripped(mammoth.convert_to_html(file, convert_image=no_image).value)


def docx2python(path):
    from docx2python import docx2python

    with docx2python(path) as read:
        return read.text, 0


def python_pptx(path):
    import pptx

    parts, headings = [], 0
    for slide in pptx.Presentation(path).slides:
        pending = list(slide.shapes)
        while pending:
            shape = pending.pop(0)
            pending = [*getattr(shape, "shapes", ()), *pending]
            if shape.has_text_frame:
                parts.append(shape.text_frame.text)
            if shape.has_table:
                parts += [cell.text for row in shape.table.rows for cell in row.cells]
        headings += slide.shapes.title is not None
        parts += [slide.notes_slide.notes_text_frame.text] if slide.has_notes_slide else []
    return "\n".join(parts), headings


def raw_xml(path):
    """Returns the text of all paragraphs."""
    archive = zipfile.ZipFile(path)
    parts = []
    for name in archive.namelist():
        if re.fullmatch(
            r"word/(document|(foot|end)notes)\.xml|ppt/(slides|notesSlides)/\w+\.xml", name
        ):
            for each in ElementTree.fromstring(archive.read(name)).iter():
                if each.tag.endswith("}p"):
                    parts.append("".join(t.text or "" for t in each.iter() if t.tag.endswith("}t")))
    return "\n".join(parts), 0


def lxml(path):
    import lxml.html

    root = lxml.html.fromstring(path.read_bytes())
    for each in root.xpath("//script|//style"):
        each.drop_tree()
    return " ".join(root.itertext()), len(root.xpath("//h1|//h2|//h3|//h4|//h5|//h6"))


def beautifulsoup4(path):
    import bs4

    soup = bs4.BeautifulSoup(path.read_bytes(), "html.parser")
    for each in soup(["script", "style"]):
        each.decompose()
    return soup.get_text(" "), len(soup(["h1", "h2", "h3", "h4", "h5", "h6"]))


def trafilatura(path):
    import trafilatura

    page = trafilatura.extract(path.read_bytes(), output_format="html", include_tables=True)
    return stripped(page or "")


def mistune(path):
    import mistune

    return stripped(mistune.create_markdown(plugins=["table"])(path.read_text()))


def markdown(path):
    import markdown

    return stripped(markdown.markdown(path.read_text(), extensions=["tables", "fenced_code"]))


def docutils(path):
    """Without the markup of Sphinx, which Winnow adds."""
    from docutils.core import publish_parts

    settings = {"report_level": 5, "halt_level": 5, "warning_stream": False, "raw_enabled": False}
    settings["file_insertion_enabled"] = False
    return stripped(
        publish_parts(path.read_text(), writer="html5", settings_overrides=settings)["body"]
    )


def raw_text(path):
    return path.read_text(errors="replace"), 0


LIBRARIES = {  # by folder
    "pdf": [winnow, pypdfium2, pypdf, pdfminer],
    "docx": [winnow, python_docx, mammoth, docx2python, raw_xml],
    "pptx": [winnow, python_pptx, raw_xml],
    "html": [winnow, lxml, beautifulsoup4, trafilatura],
    "md": [winnow, mistune, markdown],
    "rst": [winnow, docutils, raw_text],
    "txt": [winnow, raw_text],
    "epub": [winnow],
}


def main(folder):
    for kind, libraries in LIBRARIES.items():
        files = sorted((folder / kind).iterdir())
        modules = {"python_docx": "docx", "python_pptx": "pptx", "beautifulsoup4": "bs4"}
        ours = (winnow, raw_xml, raw_text)
        installed = [
            each
            for each in libraries
            if each in ours or importlib.util.find_spec(modules.get(each.__name__, each.__name__))
        ]
        show(kind, files, installed)


def show(kind, files, libraries):
    totals = {each: Counter() for each in libraries}
    for path in files:
        texts = {each: timed(each, path, totals[each]) for each in libraries}
        texts = {each: text for each, text in texts.items() if text is not None}
        for measure, counted in (("words", words), ("order", pairs)):
            counts = {each: counted(text) for each, text in texts.items()}
            terms = {term for count in counts.values() for term in count}
            agreed = {t: median(count[t] for count in counts.values()) for t in terms}
            size = sum(agreed.values())
            for each, count in counts.items():
                if size:
                    totals[each][f"{measure} files"] += 1
                    totals[each][measure] += sum(min(count[t], agreed[t]) for t in terms) / size
    print(
        f"\n{kind}: {len(files)} files\n| library | words | order | headings | ms a file | failed |"
    )
    for each, total in totals.items():
        shares = [f"{100 * total[m] / max(1, total[f'{m} files']):.1f}" for m in ("words", "order")]
        speed = f"{1000 * total['seconds'] / len(files):.0f}"
        print(
            "|",
            " | ".join(
                [each.__name__, *shares, str(total["headings"]), speed, str(total["failed"])]
            ),
            "|",
        )


def timed(library, path, total):
    started = time.perf_counter()
    try:
        text, headings = library(path)
    except Exception as error:  # noqa: BLE001 - any error is a failure
        print(f"{library.__name__}: {path.name}: {str(error)[:80]!r}", file=sys.stderr)
        total["failed"] += 1
        return None
    finally:
        total["seconds"] += time.perf_counter() - started
    total["headings"] += headings
    return text


def words(text):
    return Counter(re.findall(r"\w+", text))


def pairs(text):
    found = re.findall(r"\w+", text)
    return Counter(zip(found, found[1:], strict=False))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
