"""The MCP server: serves the tools and resources of an index to one client, or to many.

It knows neither stdio nor HTTP. `winnow mcp` and a front run it on their transports.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mcp_types as types
import structlog
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from winnow.client.aio import AsyncClientApi
from winnow.client.passages import documents_call
from winnow.errors import InvalidRequestError, NotFoundError, OverloadedError, WinnowError
from winnow.mcp.documents import TextSource
from winnow.mcp.tools import TOOLS, AgentTool
from winnow.mcp.uris import ResourceKind, ResourceName, resource_of_uri
from winnow.mcp.values import schema_of
from winnow.packaged import running_version
from winnow.quoting import quoted, shortened

_log = structlog.get_logger("mcp")
_TEXT = "text/plain"
_INTERNAL = "internal error: the server's log has the details"
_INSTRUCTIONS = (
    "Winnow answers questions from an index of passages, with their exact words. Call ask first. "
    "If it has no answer, or the task needs more text, call search, then fetch. Cite the citation "
    "or the url of each text that you use. If coverage is not complete, say so."
)
_ANNOTATIONS = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentIndex:
    """The index that a server serves, and how it is called."""

    api: AsyncClientApi
    timeout: float
    """Seconds until a call is given up."""
    message_of: Callable[[WinnowError], str] = str
    """Returns the message of an error that the agent may see."""


def open_server(index: AgentIndex, tools: Sequence[AgentTool] = TOOLS) -> Server[Any]:
    """Returns a server with these tools, and with documents and passages as resources."""
    handlers = _Handlers(index, tools)
    return Server(
        "winnow",
        version=running_version(),
        title="Winnow",
        instructions=_INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
    )


class _Handlers:
    """Handles the requests of clients."""

    def __init__(self, index: AgentIndex, tools: Sequence[AgentTool]) -> None:
        self._index = index
        self._tools = {each.name: each for each in tools}
        self._described = [_describe(each) for each in tools]

    async def list_tools(self, _context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._described)

    async def call_tool(
        self, _context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Runs a tool. The result of a failed call says what to do, so that the agent can do it.

        Raises MCPError if there is no such tool.
        """
        tool = self._tools.get(params.name)
        if tool is None:
            known = ", ".join(self._tools)
            raise _invalid_params(f"unknown tool {quoted(params.name)}: known are {known}")
        try:
            arguments = tool.arguments.model_validate(params.arguments or {})
            result = await tool.run(self._index.api, self._index.timeout, arguments)
        except ValidationError as error:
            return _failure(_argument_errors(error))
        except WinnowError as error:
            return _failure(self._message_of(error))
        except Exception as error:  # noqa: BLE001 (an error must not end the server)
            _log.error("tool failed", tool=tool.name, error=str(error), exc_info=error)
            return _failure(_INTERNAL)
        return _success(result)

    async def list_resources(
        self, _context: Any, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """Lists a page of the documents of the index."""
        cursor = params.cursor if params is not None else None
        call = documents_call(cursor or "", None, None)
        try:
            page = await self._index.api.run(call, self._index.timeout, None)
        except WinnowError as error:
            raise self._protocol_error(error) from error
        documents = [
            types.Resource(
                uri=ResourceName(ResourceKind.DOCUMENT, each.name).uri,
                name=each.name,
                mime_type=_TEXT,
            )
            for each in page.documents
            if each.name
        ]
        return types.ListResourcesResult(
            resources=documents, next_cursor=page.next_page_token or None
        )

    async def list_resource_templates(
        self, _context: Any, _params: Any
    ) -> types.ListResourceTemplatesResult:
        templates = [
            types.ResourceTemplate(
                name=kind.name.lower(),
                uri_template=kind.template,
                description=description,
                mime_type=_TEXT,
            )
            for kind, description in (
                (ResourceKind.DOCUMENT, "The text of a document, by its name."),
                (ResourceKind.PASSAGE, "The text of a passage, by its id."),
            )
        ]
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def read_resource(
        self, _context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """Returns the text of a document or passage. A long document has its first part, and the
        URI of the next part in `_meta`.
        """
        resource = resource_of_uri(params.uri)
        if resource is None:
            templates = ", ".join(each.template for each in ResourceKind)
            raise _invalid_params(f"unknown URI {quoted(params.uri)}: known are {templates}")
        try:
            found = await TextSource(self._index.api, self._index.timeout).read(resource)
        except WinnowError as error:
            raise self._protocol_error(error) from error
        meta: Any = {"next": found.next} if found.next else None
        contents = types.TextResourceContents(
            uri=params.uri, mime_type=_TEXT, text=found.text, _meta=meta
        )
        return types.ReadResourceResult(contents=[contents])

    def _protocol_error(self, error: WinnowError) -> MCPError:
        is_wrong = isinstance(error, InvalidRequestError | NotFoundError)
        code = types.INVALID_PARAMS if is_wrong else types.INTERNAL_ERROR
        return MCPError(code, self._message_of(error))

    def _message_of(self, error: WinnowError) -> str:
        message = self._index.message_of(error) or _INTERNAL
        if isinstance(error, OverloadedError) and "again" not in message:
            return f"{message} (try again in {error.retry_after:.1f} s)"
        return message


def _describe(tool: AgentTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=schema_of(tool.arguments),
        output_schema=schema_of(tool.result, "serialization"),
        annotations=_ANNOTATIONS,
    )


def _success(result: BaseModel) -> types.CallToolResult:
    """Returns the result as JSON values, and as text for clients without structured results."""
    values = result.model_dump(mode="json")
    text = json.dumps(values, ensure_ascii=False)
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=values)


def _failure(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)


def _argument_errors(error: ValidationError) -> str:
    """Names every wrong argument."""
    return "; ".join(
        f"{shortened('.'.join(map(str, each['loc'])))}: {_problem(each)}"
        for each in error.errors(include_url=False)
    )


def _problem(error: ErrorDetails) -> str:
    """Says what is wrong with an argument."""
    limits = error.get("ctx", {})
    match error["type"]:
        case "missing":
            return "is required"
        case "extra_forbidden":
            return "is not an argument of this tool"
        case "too_short":
            return f"has {limits['actual_length']} items, at least {limits['min_length']} needed"
        case "too_long":
            return f"has {limits['actual_length']} items, at most {limits['max_length']} allowed"
    message = error["msg"]
    return f"{message[:1].lower()}{message[1:]}, not {quoted(str(error['input']))}"


def _invalid_params(message: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, message)
