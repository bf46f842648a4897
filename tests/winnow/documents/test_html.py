"""Tests of the conversion of HTML."""

import time

from shown_blocks import shown

from winnow.documents.formats.html import convert, convert_text


def test_headings_paragraphs_lists_and_code_are_blocks() -> None:
    page = """<title>Archive</title><h1>The <b>archive</b></h1>Loose text<p>One<br>line</p>
        <ul><li>first<ul><li>inner</li></ul></li><li><p>second</p><p>more</p></li></ul>
        <ol start=3><li>third<li>fourth</ol><pre>  a\n    b</pre>"""
    document = convert_text(page)
    assert document.title == "Archive"
    assert shown(document) == [
        "# The archive",
        "Loose text",
        "One line",
        "- first",
        "-- inner",
        "- second",
        "- more",
        "- 3. third",
        "- 4. fourth",
        "$ a\n    b",
    ]


def test_text_around_the_document_is_left_out() -> None:
    page = """<body><nav>Home</nav><div class=sphinxsidebar>Search</div><main>
        <h2>Areas<a class=headerlink href=#areas>¶</a></h2><p>There are
        three.<sup><a href=#fn1>1</a></sup><script>x()</script><span hidden>no</span></p></main>
        <p>Previous page</p><footer>Made by hand</footer></body>"""
    assert shown(convert_text(page)) == ["## Areas", "There are three."]


def test_terms_stand_before_their_definitions() -> None:
    page = "<dl><dt>-a<dt>-b<dd>Both.<dd>Again<dt>c:<dd><p>Third</p><p>More</p></dl>"
    assert shown(convert_text(page)) == ["- -a, -b: Both.", "- Again", "- c: Third", "- More"]


def test_cells_of_a_row_are_named_by_their_column() -> None:
    page = """<table><caption>Suites</caption><tr><th>Suite<th>Release<th>Until</tr>
        <tr><td rowspan=2>stable<td>12<td>2028<tr><td>12.1<td><tr><td colspan=2>sid<td>-</table>"""
    assert shown(convert_text(page)) == [
        "Suites",
        "| Suite: stable; Release: 12; Until: 2028",
        "| Suite: stable; Release: 12.1",
        "| Suite: sid; Until: -",
    ]


def test_a_table_that_arranges_a_page_is_not_data() -> None:
    page = "<table><tr><td><h1>Left</h1><p>One</p></td><td>Right</td></tr></table>"
    assert shown(convert_text(page)) == ["# Left", "One", "Right"]


def test_the_declared_encoding_is_used() -> None:
    page = "<meta charset=windows-1251><p>Привет".encode("cp1251")
    assert shown(convert(page)) == ["Привет"]


def test_deeply_nested_elements_are_converted() -> None:
    started = time.thread_time()
    assert shown(convert_text("<b>" * 5_000 + "deep")) == ["deep"]
    assert time.thread_time() - started < 60
