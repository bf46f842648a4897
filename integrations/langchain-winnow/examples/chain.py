"""Finds passages, keeps the sentences that answer, and puts them into the prompt of a model."""

from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_winnow import WinnowCompressor, WinnowRetriever

# any retriever does: the compressor reads documents, not an index
retriever = WinnowRetriever(connection="127.0.0.1:8080", k=10)
compressor = WinnowCompressor(connection="127.0.0.1:8080", top_n=3, keep="sentence")


def sentences(question: str) -> str:
    """Returns the sentences that answer, each with the title of its passage."""
    documents = compressor.compress_documents(retriever.invoke(question), question)
    return "\n".join(f"{each.metadata['title']}: {each.page_content}" for each in documents)


prompt = ChatPromptTemplate.from_template(
    "Answer from these sentences:\n{sentences}\n\nQuestion: {question}"
)
chain = {"sentences": RunnableLambda(sentences), "question": RunnablePassthrough()} | prompt
# append `| model | StrOutputParser()` with a chat model
print(chain.invoke("Who was the first woman on Mount Everest?").to_string())
