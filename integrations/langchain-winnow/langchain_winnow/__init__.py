"""LangChain components for Winnow, which finds passages and reads them on ordinary CPUs."""

from langchain_winnow.compressor import WinnowCompressor
from langchain_winnow.retriever import WinnowRetriever
from winnow.client.frameworks.connection import WinnowConnection

__all__ = ["WinnowCompressor", "WinnowConnection", "WinnowRetriever"]
