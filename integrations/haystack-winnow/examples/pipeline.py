"""Finds passages of a document by a filter, in a pipeline that is stored and loaded."""

from haystack import Pipeline
from haystack_integrations.components.retrievers.winnow import WinnowRetriever

pipeline = Pipeline()
pipeline.add_component("retriever", WinnowRetriever("127.0.0.1:8080", top_k=3))

loaded = Pipeline.loads(pipeline.dumps())
filters = {"field": "meta.lang", "operator": "==", "value": "en"}
question = {"query": "Who was the first woman on Mount Everest?", "filters": filters}
for document in loaded.run({"retriever": question})["retriever"]["documents"]:
    print(document.meta["title"], document.content)
