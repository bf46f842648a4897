"""Passages and filters between LlamaIndex and Winnow."""

from llama_index.core.schema import NodeRelationship, NodeWithScore, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

from winnow.client import Passage, Source
from winnow.client.frameworks import (
    combination,
    comparison,
    framework_errors,
    passage_metadata,
)
from winnow.filtering import Filter

_COMPARISONS = {
    FilterOperator.NIN: "not in",
    FilterOperator.ANY: "in",
    FilterOperator.CONTAINS: "==",
}
"""Operators that Winnow names otherwise."""


def node_of_passage(passage: Passage, source: Source | None, score: float) -> NodeWithScore:
    """A node with the id, the text and the metadata of a passage; its document is the source."""
    document = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=source.document)} if source else {}
    node = TextNode(
        id_=passage.id,
        text=passage.text,
        metadata=passage_metadata(passage, source),
        relationships=document,
        start_char_idx=source.start if source else None,
        end_char_idx=source.end if source else None,
    )
    return NodeWithScore(node=node, score=score)


def where_of_filters(filters: MetadataFilters | None) -> str | None:
    """The filter of Winnow that accepts the same nodes; None for no filters.

    Raises ValueError if an operator has no equivalent: Winnow does not match parts of texts.
    """
    if filters is None or not filters.filters:
        return None
    with framework_errors():
        return str(_filter(filters))


def _filter(condition: MetadataFilter | MetadataFilters) -> Filter:
    if isinstance(condition, MetadataFilters):
        parts = [_filter(each) for each in condition.filters]
        return combination(condition.condition.value if condition.condition else "and", parts)
    key, value = condition.key, condition.value
    if condition.operator is FilterOperator.IS_EMPTY:
        return comparison(key, "==", None)
    if condition.operator is FilterOperator.ALL and isinstance(value, list):
        return combination("and", [comparison(key, "==", each) for each in value])
    operator = _COMPARISONS.get(condition.operator, condition.operator.value)
    return comparison(key, operator, value)
