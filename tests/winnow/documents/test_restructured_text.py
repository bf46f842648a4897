"""Tests of the conversion of reStructuredText."""

from pathlib import Path

from shown_blocks import shown

from winnow.documents.formats.restructured_text import convert


def test_structure_becomes_blocks() -> None:
    text = """
Archive
=======

.. _areas:

Areas
-----

There are *three*, see :ref:`the areas <areas>` and :py:class:`~a.b.Klass`. [#]_

#. main
#. contrib

   - inner

:License: free
-v  verbose

.. note:: Read this.

::

    code here

=====  =======
Suite  Version
=====  =======
sid    none
=====  =======

.. [#] A note.
"""
    document = convert(text.encode())
    assert document.title == "Archive"
    assert shown(document) == [
        "# Archive",
        "## Areas",
        "There are three, see the areas and Klass.",
        "- 1. main",
        "- 2. contrib",
        "-- inner",
        "- License: free",
        "- -v: verbose",
        "Note: Read this.",
        "$ code here",
        "| Suite: sid; Version: none",
        "[1] A note.",
    ]


def test_directives_of_sphinx_keep_their_text() -> None:
    text = """
.. toctree::
   :maxdepth: 2

   other

.. py:function:: run(path)
   :module: tools

   Runs a file.

.. versionadded:: 3.2
   With options.

.. only:: html

   Inner text.

.. setting:: DEBUG
"""
    assert shown(convert(text.encode())) == [
        "- run(path): Runs a file.",
        "Added in version 3.2: With options.",
        "Inner text.",
        "DEBUG",
    ]


def test_no_other_file_is_read_and_no_html_is_passed_on(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret", encoding="utf-8")
    text = f".. include:: {secret}\n\n.. raw:: html\n\n   <p>raw</p>\n\n.. csv-table::\n   :file: {secret}\n\nText"
    assert shown(convert(text.encode())) == ["Text"]
