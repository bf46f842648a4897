"""Answers with the words of a passage, then ranks passages for an engine that has an LLM."""

from llama_index_winnow import WinnowQueryEngine, WinnowRerank, WinnowRetriever

QUESTION = "Who was the first woman on Mount Everest?"

engine = WinnowQueryEngine("127.0.0.1:8080", answers=2)
response = engine.query(QUESTION)
print(response)
for source in response.source_nodes:
    print(source.metadata["answer"], source.metadata["confidence"], source.metadata["title"])

# any retriever does: the postprocessor reads nodes, not an index. With an LLM:
# RetrieverQueryEngine.from_args(retriever, llm=…, node_postprocessors=[rerank])
retriever = WinnowRetriever("127.0.0.1:8080", similarity_top_k=10)
rerank = WinnowRerank(connection="127.0.0.1:8080", top_n=3)
for ranked in rerank.postprocess_nodes(retriever.retrieve(QUESTION), query_str=QUESTION):
    print(f"{ranked.score:.2f}", ranked.text)
