"""LlamaIndex components for Winnow, which finds passages and reads them on ordinary CPUs."""

from llama_index_winnow.query_engine import WinnowQueryEngine
from llama_index_winnow.rerank import WinnowRerank
from llama_index_winnow.retriever import WinnowRetriever
from winnow.client.frameworks.connection import WinnowConnection

__all__ = ["WinnowConnection", "WinnowQueryEngine", "WinnowRerank", "WinnowRetriever"]
