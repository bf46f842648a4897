"""Finds passages, orders them and reads them, in a pipeline that is stored and loaded."""

from haystack import Pipeline
from haystack_integrations.components.rankers.winnow import WinnowRanker
from haystack_integrations.components.readers.winnow import WinnowReader
from haystack_integrations.components.retrievers.winnow import WinnowConnection, WinnowRetriever

connection = WinnowConnection("127.0.0.1:8080")
pipeline = Pipeline()
# any retriever does: ranker and reader take documents, not an index
pipeline.add_component("retriever", WinnowRetriever(connection, top_k=20))
pipeline.add_component("ranker", WinnowRanker(connection, top_k=5))
pipeline.add_component("reader", WinnowReader(connection, top_k=3))
pipeline.connect("retriever", "ranker")
pipeline.connect("ranker", "reader")

loaded = Pipeline.loads(pipeline.dumps())
question = {"query": "Who was the first woman on Mount Everest?"}
answers = loaded.run({"retriever": question, "ranker": question, "reader": question})
for answer in answers["reader"]["answers"]:
    print(f"{answer.score:.0%}", answer.data, "in:", answer.context)
