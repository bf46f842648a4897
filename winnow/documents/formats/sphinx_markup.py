"""Converts markup of reStructuredText that docutils does not know, such as that of Sphinx.

docutils leaves out the content of unknown directives. Here they become text.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives, roles
from docutils.parsers.rst.languages import en

_DIRECTIVE = re.compile(r"^\s*\.\. (?:\|[^|\n]+\| )?([A-Za-z][\w:.+-]*)::", re.MULTILINE)
_ROLE = re.compile(r":([A-Za-z][\w:.+-]*):`")
_TARGET = re.compile(r"(.+?)\s*<[^<>]*>", re.DOTALL)
"""A reference: its shown text, then its target in angle brackets."""
_SILENT = re.compile(
    r"(?:\w+:)?(?:toctree|index|highlight|module|currentmodule|default-domain|program|auto\w+"
    r"|tabularcolumns|sectionauthor|codeauthor|literalinclude|graphviz|digraph|plot|testsetup"
    r"|testcleanup|namespace|currentlibrary|audio|video|youtube)"
)
"""Directives without text of their own."""
_CODE = frozenset(["testcode", "testoutput", "doctest", "prompt", "productionlist", "ipython"])
_CONDITIONS = frozenset(["only", "ifconfig", "seealso", "glossary", "hlist", "centered"])
"""Directives whose argument is not text to read."""
_VERSIONS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "versionremoved": "Removed in version",
    "deprecated": "Deprecated since version",
}


def register_unknown_markup(text: str) -> None:
    """Tells docutils what to do with the unknown directives and roles of a text."""
    for name in {each.lower() for each in _DIRECTIVE.findall(text)} - en.directives.keys():
        directives.register_directive(name, OtherDirective)
    for name in {each.lower() for each in _ROLE.findall(text)} - en.roles.keys():
        roles.register_local_role(name, _other_role)


class _AnyOptions(dict[str, Callable[[str], Any]]):
    """Accepts every option of a directive."""

    def __bool__(self) -> bool:
        return True

    def __missing__(self, name: str) -> Callable[[str], Any]:
        return str


class OtherDirective(Directive):  # type: ignore[misc] # docutils has no types
    """A directive that docutils does not know."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar[dict[str, Callable[[str], Any]]] = _AnyOptions()

    def run(self) -> Sequence[nodes.Node]:
        """Returns the content of the directive as text.

        An argument, such as a signature, becomes the term that the content describes.
        """
        name = self.name.lower()
        if _SILENT.fullmatch(name):
            return []
        if name in _CODE:
            code = "\n".join(self.content)
            return [nodes.literal_block(code, code)]
        argument = "" if name in _CONDITIONS else " ".join(" ".join(self.arguments).split())
        if name in _VERSIONS:
            return [nodes.paragraph("", "", *self._version_sentence(_VERSIONS[name], argument))]
        inner = nodes.definition()
        self.state.nested_parse(self.content, self.content_offset, inner)
        if not argument:
            return list(inner.children)
        if not inner.children:
            return [nodes.paragraph(argument, argument)]
        term = nodes.term("", "", nodes.Text(argument))
        return [nodes.definition_list("", nodes.definition_list_item("", term, inner))]

    def _version_sentence(self, label: str, argument: str) -> Sequence[nodes.Node]:
        """Returns a sentence such as "Added in version 3.1: it is faster."

        `argument` begins with the version. The rest of the sentence follows in it, or it is the
        content of the directive.
        """
        version, _, text = argument.partition(" ")
        text = " ".join([text, *self.content]).strip()
        inline, messages = self.state.inline_text(text, self.lineno)
        mark = ": " if text else "."
        return [nodes.Text(f"{label} {version}{mark}"), *inline, *messages]


def _other_role(  # the arguments are docutils'
    _role: str,
    rawtext: str,
    text: str,
    _line: int,
    _inliner: Any,
    _options: Any = None,
    _content: Any = None,
) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """Returns the shown text of a reference: `run` for `run <module.run>` and `~module.run`."""
    shown = nodes.unescape(text)
    if match := _TARGET.fullmatch(shown):
        shown = match[1]
    elif shown.startswith("~"):
        shown = shown.rpartition(".")[2].lstrip("~")
    return [nodes.inline(rawtext, shown.removeprefix("!"))], []
