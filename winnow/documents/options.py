"""Options of commands that read a folder of documents."""

from typing import Annotated

import typer

Include = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="Index only files that match, such as '*.pdf' or 'docs/**'. Repeat it for more "
        "patterns.",
        show_default="all files of known formats",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN",
        help="Leave out files that match, such as 'drafts/'. Repeat it for more patterns. The "
        "file .winnowignore of the folder lists patterns, too.",
    ),
]
BaseUrl = Annotated[
    str,
    typer.Option(
        metavar="URL",
        help="URL of the folder, such as https://example.org/docs/. Citations then link to the "
        "documents.",
    ),
]
