"""Tests of the conversion of Markdown."""

from shown_blocks import shown

from winnow.documents.formats.markdown import convert


def test_markdown_becomes_blocks() -> None:
    text = """# Policy

Text over
two *lines*.

* item
  1. inner

```
x = 1
```

| Area | Free |
|------|------|
| main | yes  |
"""
    document = convert(text.encode())
    assert document.title == "Policy"
    assert shown(document) == [
        "# Policy",
        "Text over two lines.",
        "- item",
        "-- 1. inner",
        "$ x = 1",
        "| Area: main; Free: yes",
    ]


def test_html_inside_is_text_too() -> None:
    assert shown(convert(b"<h1 align=center>Name</h1>\n\nA <kbd>key</kbd>.")) == [
        "# Name",
        "A key.",
    ]


def test_front_matter_gives_the_title_and_is_left_out() -> None:
    document = convert(b'---\ntitle: "The Policy"\ntags: [a]\n---\n\nText.\n')
    assert (document.title, shown(document)) == ("The Policy", ["Text."])
