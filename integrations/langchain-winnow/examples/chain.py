"""Finds passages, and puts them into the prompt of a chat model."""

from langchain_core.documents import Document
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnablePassthrough
from langchain_winnow import WinnowRetriever


def quoted(documents: list[Document]) -> str:
    """Returns the documents as text, with the titles of their passages."""
    return "\n".join(f"{each.metadata['title']}: {each.page_content}" for each in documents)


prompt = ChatPromptTemplate.from_template(
    "Answer from these passages:\n{passages}\n\nQuestion: {question}"
)
retriever = WinnowRetriever(connection="127.0.0.1:8080", k=3)
chain = {"passages": retriever | quoted, "question": RunnablePassthrough()} | prompt
# append `| model | StrOutputParser()` with a chat model of yours
print(chain.invoke("Who was the first woman on Mount Everest?").to_string())
