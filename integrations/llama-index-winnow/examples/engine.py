"""Answers with the words of a passage, without an LLM, and lists the sources."""

from llama_index_winnow import WinnowQueryEngine

engine = WinnowQueryEngine("127.0.0.1:8080", answers=2)
response = engine.query("Who was the first woman on Mount Everest?")
print(response)
for source in response.source_nodes:
    print(source.metadata["answer"], source.metadata["confidence"], source.metadata["title"])
