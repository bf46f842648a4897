"""Arguments and results of the tools. Their JSON schemas are what agents see."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import GenerateJsonSchema

FilterText = Annotated[
    str,
    Field(
        description='Filter on the metadata of passages, such as: year >= 2010 and lang = "en". '
        "Empty for all passages. An unknown field is refused, and the error lists the known ones."
    ),
]


class ToolArguments(BaseModel):
    """Arguments of a tool. Unknown arguments are refused."""

    model_config = ConfigDict(extra="forbid")


class AskArguments(ToolArguments):
    """Arguments of the tool `ask`."""

    question: Annotated[
        str, Field(description="A complete question in plain language: 1 to 1000 characters.")
    ]
    filter: FilterText = ""
    candidates: Annotated[
        int, Field(ge=1, le=10, description="Maximum number of candidate answers to return.")
    ] = 3


class SearchArguments(ToolArguments):
    """Arguments of the tool `search`."""

    query: Annotated[str, Field(description="A question, or words to find: 1 to 1000 characters.")]
    filter: FilterText = ""
    limit: Annotated[int, Field(ge=1, le=20, description="Maximum number of passages.")] = 10


class FetchArguments(ToolArguments):
    """Arguments of the tool `fetch`."""

    id: Annotated[
        str,
        Field(
            description="Id of a search result, the URI of a document or of its next part, or the "
            "name of a document."
        ),
    ]


class ReadArguments(ToolArguments):
    """Arguments of the tool `read`."""

    question: Annotated[
        str, Field(description="A complete question in plain language: 1 to 1000 characters.")
    ]
    texts: Annotated[
        list[str],
        Field(min_length=1, max_length=100, description="The texts to read, each of any length."),
    ]


class IndexCoverage(BaseModel):
    """The part of the index that was searched."""

    complete: Annotated[
        bool, Field(description="Whether all passages were searched. If false, say so.")
    ]
    passages_known: Annotated[int, Field(description="Number of passages in the index.")]
    passages_searched: int


class CandidateAnswer(BaseModel):
    """A candidate answer, and the passage that contains it."""

    answer: Annotated[str, Field(description="The exact words of the passage.")]
    sentence: Annotated[
        str, Field(description="The sentence, list item or table row that contains the answer.")
    ]
    confidence: Annotated[
        float | None,
        Field(description="Probability that the answer is right, 0 to 1. null if it is unknown."),
    ]
    citation: Annotated[str, Field(description="Document, page and heading; else the title.")]
    id: Annotated[str, Field(description="Id of the passage, for fetch.")]
    url: Annotated[str, Field(description="Web address of the document, or the passage's URI.")]


class AskToolResult(BaseModel):
    """Result of the tool `ask`. The fields of the best answer are null if no answer is likely."""

    has_answer: Annotated[
        bool,
        Field(
            description="Whether the best answer is likely to be right. If false, the index "
            "probably has no answer, and the other fields of the answer are null."
        ),
    ]
    answer: Annotated[
        str | None, Field(description="The exact words that answer the question.")
    ] = None
    sentence: Annotated[str | None, Field(description="The sentence that contains the answer.")] = (
        None
    )
    confidence: Annotated[
        float | None, Field(description="Probability that the answer is right, 0 to 1.")
    ] = None
    citation: Annotated[str | None, Field(description="Document, page and heading.")] = None
    id: Annotated[str | None, Field(description="Id of the passage, for fetch.")] = None
    url: Annotated[
        str | None, Field(description="Web address of the document, or the passage's URI.")
    ] = None
    candidates: Annotated[
        list[CandidateAnswer],
        Field(description="Other candidates, the best first. All of them if has_answer is false."),
    ]
    coverage: IndexCoverage
    notes: Annotated[
        list[str], Field(description="What may make the answers worse, such as overload.")
    ]


class SearchHit(BaseModel):
    """A passage that was found."""

    id: Annotated[str, Field(description="Id of the passage, for fetch.")]
    title: str
    url: Annotated[str, Field(description="Web address of the document, or the passage's URI.")]
    text: Annotated[str, Field(description="Text of the passage.")]
    citation: Annotated[str, Field(description="Document, page and heading; else the title.")]


class SearchToolResult(BaseModel):
    """Result of the tool `search`."""

    results: Annotated[list[SearchHit], Field(description="Passages, the best first.")]
    coverage: IndexCoverage


class FetchToolResult(BaseModel):
    """Result of the tool `fetch`."""

    id: str
    title: str
    text: str
    url: Annotated[str, Field(description="Web address of the document, or the URI.")]
    metadata: Annotated[dict[str, Any], Field(description="Metadata of the passage.")]
    document: Annotated[
        str | None,
        Field(description="URI of the whole document, for fetch. null if it is unknown."),
    ] = None
    next: Annotated[
        str | None,
        Field(description="URI of the next part of the document, for fetch. null at its end."),
    ] = None


class TextAnswer(BaseModel):
    """The best answer in a text."""

    text: Annotated[int, Field(description="Number of the text, from 0.")]
    answer: Annotated[str, Field(description="The exact words of the text.")]
    sentence: Annotated[
        str, Field(description="The sentence, list item or table row that contains the answer.")
    ]
    confidence: Annotated[
        float | None,
        Field(description="Probability that the answer is right, 0 to 1. null if it is unknown."),
    ]
    relevance: Annotated[float, Field(description="Relevance of the text, 0 to 1.")]


class ReadToolResult(BaseModel):
    """Result of the tool `read`."""

    has_answer: Annotated[bool, Field(description="Whether the best answer is likely to be right.")]
    answers: Annotated[
        list[TextAnswer], Field(description="The best answer of each text, the best first.")
    ]
    notes: Annotated[
        list[str], Field(description="What may make the answers worse, such as a long question.")
    ]


class _WithoutTitles(GenerateJsonSchema):
    """Leaves out the titles of fields, which repeat their names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def schema_of(kind: type[BaseModel], mode: Any = "validation") -> dict[str, Any]:
    """Returns the JSON schema of arguments, or with the mode `serialization` of a result."""
    schema = kind.model_json_schema(schema_generator=_WithoutTitles, mode=mode)
    for each in (schema, *schema.get("$defs", {}).values()):
        each.pop("title", None)
    schema.pop("description", None)
    return schema
