"""Examples of the calls of the HTTP interface, as commands."""

import json

from winnow.stateless.http.call import HttpOperation

_EXAMPLES = {
    "Answer": {"question": "Who won the Tour de France in 2015?"},
    "Answers": {"requests": [{"question": "Who discovered penicillin?"}]},
    "Predict": {"text": "book me a flight to Oslo", "headIds": ["intent"]},
    "Put": {"passages": [{"id": "1", "title": "Oslo", "text": "Oslo is the capital of Norway."}]},
    "Delete": {"deletions": [{"id": "1"}]},
    "DeleteWhere": {"document": "policy.pdf", "dryRun": True},
    "DeleteTenant": {"tenant": "acme"},
    "SearchPassages": {"question": "Who won the Tour de France in 2015?", "passages": 5},
    "GetPassages": {"ids": ["1", "2"]},
    "ReadTexts": {"question": "Who built it?", "texts": ["It was built by Ada.", "It is old."]},
    "HighlightText": {"question": "Who built it?", "text": "It is old. It was built by Ada."},
    "RerankV1": {"query": "Who built it?", "documents": ["It is old.", "It was built by Ada."]},
    "RerankV2": {"query": "Who built it?", "documents": ["It is old.", "It was built by Ada."]},
}


def curl_command(call: HttpOperation, base: str) -> str:
    """Returns the command that makes a call. `base` is the URL of the front."""
    command = f"curl {base}{call.path}"
    if call.verb == "POST":
        body = json.dumps(_EXAMPLES.get(call.name, {}))
        command += f" -H 'content-type: application/json' -d '{body}'"
    return command
